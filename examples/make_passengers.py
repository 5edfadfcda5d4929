"""Write passengers.csv: people on a ship, some of whom survived. All of them are made up, with a fixed seed.

Women, children and the better classes survive more often; nothing else makes a difference, though fares go with the
class. Some ages and most cabins are unknown.

Run ``python examples/make_passengers.py`` to write ``passengers.csv`` beside this script, or give another path.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

FIRST = ("Anna", "Ben", "Clara", "David", "Elsa", "Frank", "Greta", "Hugo", "Ida", "Jonas", "Karin", "Leo")
LAST = ("Adams", "Berg", "Carter", "Dahl", "Evans", "Fischer", "Grant", "Holm", "Irving", "Jensen", "Keller", "Lund")
PORTS = ("Cherbourg", "Queenstown", "Southampton")


def passengers(n: int = 900) -> list[dict[str, object]]:
    """Return one row for each passenger."""
    pick = random.Random(1912)
    rows: list[dict[str, object]] = []
    for number in range(1, n + 1):
        sex = pick.choice(("male", "male", "female"))
        passenger_class = pick.choice((1, 2, 3, 3))
        age = round(max(0.5, pick.gauss(30, 14)), 1)
        chance = 0.1 + 0.5 * (sex == "female") + 0.15 * (3 - passenger_class) + 0.5 * (age < 12)
        rows.append(
            {
                "PassengerId": number,
                "Name": f"{pick.choice(LAST)}, {pick.choice(FIRST)} {pick.choice(FIRST)} ({number % 97})",
                "class": passenger_class,
                "sex": sex,
                "age": age if pick.random() < 0.85 else "",
                "siblings": pick.choice((0, 0, 0, 1, 1, 2)),
                "ticket": f"{pick.choice('ABC')}/{pick.randrange(10_000, 99_999)}",
                "fare": round(pick.lognormvariate(4 - passenger_class, 0.5), 2),
                "cabin": f"{pick.choice('ABCDEF')}{pick.randrange(1, 120)}" if pick.random() < 0.25 else "",
                "embarked": pick.choice(PORTS),
                "survived": "yes" if pick.random() < chance else "no",
            }
        )
    return rows


def main(path: Path) -> None:
    """Write the table to `path`."""
    rows = passengers()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("passengers.csv"))
