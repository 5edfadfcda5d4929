"""Whether old columns still do on new rows, from the definitions; and random pairs of tables to ask it of.

The oracle is plain Python and shares nothing with the package: Θ is that of `support.oracle`, sets are tried one after
another.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from support import oracle
from support.strategies import DECISION, WEIGHTS, Sample, large_tables, proportional_tables, small_tables

#: the values of a row in all conditions
Row = tuple[Hashable, ...]


# ------------------------------------------------------------------------------------------ does it stand?


def stands(table: oracle.Table, attributes: Sequence[str], measure: oracle.Measure) -> bool:
    """Θ(D|R) = Θ(D|C)."""
    return oracle.equal(table, attributes, table.conditions, measure)


def witnesses(table: oracle.Table, attributes: Sequence[str], measure: oracle.Measure) -> set[frozenset[Row]]:
    """All pairs of classes of U/C that agree in R and may not be one: together they have another Θ than apart."""
    places = [table.conditions.index(a) for a in attributes]
    rows = sorted(set(table.rows), key=repr)
    pairs: set[frozenset[Row]] = set()
    for one, other in combinations(rows, 2):
        if any(one[j] != other[j] for j in places):
            continue
        both = _only(table, {one, other})
        if not oracle.equal(both, (), table.conditions, measure):
            pairs.add(frozenset((one, other)))
    return pairs


def _only(table: oracle.Table, rows: Collection[Row]) -> oracle.Table:
    """The objects with these rows."""
    kept = [i for i, row in enumerate(table.rows) if row in rows]
    return oracle.Table(
        table.conditions,
        tuple(table.rows[i] for i in kept),
        tuple(table.decisions[i] for i in kept),
        tuple(table.weights[i] for i in kept),
    )


def decisions_of(table: oracle.Table, row: Row) -> Counter[Hashable]:
    """The decisions of the objects with one row, each with how many have it."""
    return oracle.partition(table, table.conditions)[row]


def telling_apart(table: oracle.Table, one: Row, other: Row) -> tuple[str, ...]:
    """The conditions in which two rows differ, in table order."""
    return tuple(a for a, x, y in zip(table.conditions, one, other, strict=True) if x != y)


def mending(table: oracle.Table, attributes: Sequence[str], measure: oracle.Measure) -> set[frozenset[str]]:
    """All smallest sets of columns with which R preserves Θ(D|C); the empty one alone if R does by itself."""
    others = [a for a in table.conditions if a not in attributes]
    for size in range(len(others) + 1):
        sets = {
            frozenset(added) for added in combinations(others, size) if stands(table, [*attributes, *added], measure)
        }
        if sets:
            return sets
    raise AssertionError("C preserves Θ(D|C)")


# ------------------------------------------------------------------------------------------ what is new?


def new_values(old: oracle.Table, new: oracle.Table, attribute: str) -> Counter[Hashable]:
    """The values of a column that the old table lacks, each with how many objects of the new one have it."""
    seen = {row[old.conditions.index(attribute)] for row in old.rows}
    place = new.conditions.index(attribute)
    counted: Counter[Hashable] = Counter()
    for row, weight in zip(new.rows, new.weights, strict=True):
        if row[place] not in seen:
            counted[row[place]] += weight
    return counted


def new_combinations(old: oracle.Table, new: oracle.Table, attributes: Sequence[str]) -> Counter[Row]:
    """The combinations of values that the old table lacks, each with how many objects of the new one have it."""
    seen = oracle.partition(old, attributes)
    return Counter({row: sum(n.values()) for row, n in oracle.partition(new, attributes).items() if row not in seen})


# ------------------------------------------------------------------------------------------ the update


@dataclass(frozen=True)
class Updated:
    """What an update gives: the columns in order, what was added and dropped, and who ties at each step."""

    attributes: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    redundant: tuple[str, ...]


def update(
    table: oracle.Table,
    old: Sequence[str],
    measure: oracle.Measure,
    *,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    minimal: bool = True,
) -> Updated:
    """The old columns that are there, the rest of the core, greedy steps; then what can go, the last first."""
    C = table.conditions
    R = [a for a in old if a in C]
    R += [a for a in oracle.core(table, measure) if a not in R]
    steps: list[tuple[str, tuple[str, ...]]] = []
    while not stands(table, R, measure):
        thetas = {a: oracle.theta_int(table, [*R, a], measure) for a in C if a not in R and a not in exclude}
        limit = min(thetas.values()) + oracle.tie_bound(table, measure)
        ties = tuple(a for a, theta in thetas.items() if theta <= limit)
        R.append(ties[0])
        steps.append((ties[0], ties))
    if minimal:
        for a in reversed(R.copy()):
            rest = [b for b in R if b != a]
            if a not in include and stands(table, rest, measure):
                R = rest
    return Updated(
        attributes=tuple(R),
        added=tuple(a for a in R if a not in old),
        dropped=tuple(a for a in old if a not in R),
        steps=tuple(steps),
        redundant=tuple(a for a in R if stands(table, [b for b in R if b != a], measure)),
    )


# ------------------------------------------------------------------------------------------ pairs of tables


@dataclass(frozen=True)
class Pair:
    """An old table, and a new one of the same kind: rows came and went, values changed, columns may be gone."""

    old: Sample
    new: Sample

    @property
    def gone(self) -> tuple[str, ...]:
        """Conditions that the new table lacks."""
        return tuple(name for name in self.old.conditions if name not in self.new.conditions)

    @property
    def common(self) -> tuple[str, ...]:
        """The old conditions that are there, in the old order."""
        return tuple(name for name in self.old.conditions if name in self.new.conditions)

    def new_table(self) -> oracle.Table:
        """The new rows over what is left of the old conditions."""
        return self.new.table(self.common)


HAPPENS = ("the same rows", "some rows", "more rows", "other rows", "a few cells", "shuffled")


@st.composite
def pairs(
    draw: st.DrawFn, old_tables: st.SearchStrategy[Sample] | None = None, *, may_lose_columns: bool = True
) -> Pair:
    """Tables of any kind, and what may happen to them until the next month."""
    if old_tables is None:
        old_tables = st.one_of(small_tables(), small_tables(), large_tables(40), proportional_tables())
    old = draw(old_tables)
    pick = random.Random(draw(st.integers(0, 2**32)))
    happens = draw(
        st.sampled_from(["the same rows", "some rows", "more rows", "other rows", "a few cells", "shuffled"])
    )
    rows = list(_rows_of(old))
    if happens == "some rows":
        rows = pick.sample(rows, max(1, len(rows) * 2 // 3))
    elif happens == "more rows":
        rows += [_changed(row, old, pick, 0.5) for row in pick.choices(rows, k=1 + len(rows) // 3)]
    elif happens == "other rows":
        rows = [_changed(row, old, pick, 0.7) for row in pick.choices(rows, k=len(rows))]
    elif happens == "a few cells":
        rows = [_changed(row, old, pick, 0.05) for row in rows]
    elif happens == "shuffled":
        pick.shuffle(rows)
    columns = {name: [row[name] for row in rows] for name in old.columns}
    if WEIGHTS in columns and not any(columns[WEIGHTS]):
        columns[WEIGHTS] = [1] * len(rows)
    if may_lose_columns and len(old.conditions) > 1 and draw(st.integers(0, 4)) == 0:
        del columns[pick.choice(old.conditions)]
    return Pair(old, Sample(columns))


def _rows_of(sample: Sample) -> Iterator[dict[str, Any]]:
    for values in zip(*sample.columns.values(), strict=True):
        yield dict(zip(sample.columns, values, strict=True))


def _changed(row: Mapping[str, Any], sample: Sample, pick: random.Random, share: float) -> dict[str, Any]:
    """A row in which some cells hold another value of their column, a new one, or none."""
    changed = dict(row)
    for name in sample.columns:
        if name == WEIGHTS or pick.random() >= share:
            continue
        others = [value for value in sample.columns[name] if value is not None]
        if name == DECISION or not others or pick.random() < 0.7:
            changed[name] = pick.choice(sample.columns[name])
        elif pick.random() < 0.5:
            changed[name] = None
        else:
            changed[name] = "new" if isinstance(others[0], str) else 1000 + pick.randrange(3)
    return changed
