"""Write january.csv and february.csv: customers of a telephone company. All of them are made up, with a fixed seed.

Who leaves depends on plan and calls in both months, and on the discount in January only, when those who asked for one
were about to leave; in February a campaign gave discounts to anyone. The fee follows from plan and region in January;
from February on students pay less. A new plan, family, begins in February.

Run ``python examples/make_months.py`` to write both files into the current folder, or give another folder.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

BASE_FEE = {"basic": 10, "plus": 20, "pro": 30, "family": 40}
#: fees differ by region
EXTRA_FEE = {"north": 0, "south": 2, "islands": 5}
DEVICES = ("phone", "tablet", "router")


def customers(month: str, n: int = 3000) -> list[dict[str, object]]:
    """Return one row for each customer of a month."""
    is_january = month == "january"
    pick = random.Random(month)
    plans = ["basic", "basic", "plus", "pro"] if is_january else ["basic", "basic", "plus", "pro", "family"]
    rows: list[dict[str, object]] = []
    for number in range(1, n + 1):
        plan = pick.choice(plans)
        region = pick.choice([*EXTRA_FEE])
        student = pick.random() < 0.2
        calls = pick.randint(0, 9)
        risk = 0.05 + 0.25 * (plan == "basic") + 0.03 * calls
        leaves = pick.random() < risk
        asks = pick.random() < (0.5 if leaves else 0.2)
        discount = asks if is_january else pick.random() < 0.3
        fee = BASE_FEE[plan] + EXTRA_FEE[region]
        if student and not is_january:
            fee -= 3
        rows.append(
            {
                "customer": f"{month[:3]}-{number}",
                "plan": plan,
                "region": region,
                "student": "yes" if student else "no",
                "device": pick.choice(DEVICES),
                "calls": calls,
                "minutes": round(pick.gauss(120, 40), 1),
                "discount": "yes" if discount else "no",
                "fee": fee,
                "left": "yes" if leaves else "no",
            }
        )
    return rows


def main(folder: Path) -> None:
    """Write the tables into a folder."""
    for month in ("january", "february"):
        rows = customers(month)
        with (folder / f"{month}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
