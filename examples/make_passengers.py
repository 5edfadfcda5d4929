"""Write passengers.csv: people on a ship, some of whom survived. Names, tickets and numbers are made up.

python examples/make_passengers.py passengers.csv
"""

from __future__ import annotations

import csv
import random
import sys

FIRST = ("Anna", "Ben", "Clara", "David", "Elsa", "Frank", "Greta", "Hugo", "Ida", "Jonas", "Karin", "Leo")
LAST = ("Adams", "Berg", "Carter", "Dahl", "Evans", "Fischer", "Grant", "Holm", "Irving", "Jensen", "Keller", "Lund")


def passengers(n: int = 1200) -> list[dict[str, object]]:
    """Women, children and the better classes survive more often; nothing else makes a difference."""
    pick = random.Random(1912)
    rows: list[dict[str, object]] = []
    for number in range(1, n + 1):
        sex = pick.choice(("male", "male", "female"))
        passenger_class = pick.choice((1, 2, 3, 3))
        age = round(max(0.5, pick.gauss(30, 14)), 1)
        chance = 0.1 + 0.5 * (sex == "female") + 0.15 * (3 - passenger_class) + 0.5 * (age < 12)
        rows.append(
            {
                "passenger": number,
                "name": f"{pick.choice(LAST)}, {pick.choice(FIRST)} {pick.choice(FIRST)} ({number % 97})",
                "class": passenger_class,
                "sex": sex,
                "age": age,
                "siblings": pick.choice((0, 0, 0, 1, 1, 2)),
                "ticket": f"{pick.choice('ABC')}/{pick.randrange(10_000, 99_999)}",
                "fare": round(pick.lognormvariate(4 - passenger_class, 0.5), 2),
                "cabin": f"{pick.choice('ABCDEF')}{pick.randrange(1, 120)}" if pick.random() < 0.25 else "",
                "port": pick.choice(("Cherbourg", "Queenstown", "Southampton")),
                "survived": "yes" if pick.random() < chance else "no",
            }
        )
    return rows


if __name__ == "__main__":
    rows = passengers()
    with open(sys.argv[1], "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
