"""Random decision tables and search options for Hypothesis.

Small tables are drawn cell by cell, so that a failure shrinks to something to look at; large and structured
ones are made from a drawn seed, because drawing 1,600 cells one by one is slow.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import strategies as st

from support import oracle

DECISION = "d"
WEIGHTS = "w"
#: plar counts exactly up to this many objects
MAX_OBJECTS = 2**40

Column = list[Hashable]


@dataclass(frozen=True)
class Sample:
    """A table to try: its columns, the decision named ``d``, multiplicities, if any, named ``w``."""

    columns: dict[str, Column]

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in (DECISION, WEIGHTS))

    @property
    def weights(self) -> str | None:
        return WEIGHTS if WEIGHTS in self.columns else None

    @property
    def roles(self) -> dict[str, Any]:
        """The keyword arguments that tell plar which column is which."""
        return {"decision": DECISION, "weights": self.weights}

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(self.columns)

    def table(self, conditions: Sequence[str] | None = None) -> oracle.Table:
        names = self.conditions if conditions is None else conditions
        roles = {name: self.columns[name] for name in (DECISION, WEIGHTS) if name in self.columns}
        return oracle.table({**{name: self.columns[name] for name in names}, **roles}, DECISION, self.weights)

    def take(self, rows: Sequence[int]) -> Sample:
        return Sample({name: [column[i] for i in rows] for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(self.columns[DECISION])


def _as_columns(rows: Sequence[Sequence[Hashable]], decisions: Sequence[Hashable]) -> dict[str, Column]:
    columns: dict[str, Column] = {f"a{j}": list(values) for j, values in enumerate(zip(*rows, strict=True))}
    return {**columns, DECISION: list(decisions)}


def _with_weights(columns: dict[str, Column], weights: Sequence[int]) -> Sample:
    # at least one row must stay
    return Sample({**columns, WEIGHTS: list(weights) if any(weights) else [1, *weights[1:]]})


@st.composite
def small_tables(draw: st.DrawFn) -> Sample:
    """Up to 12 rows and 5 attributes, every cell drawn."""
    n_attributes, n = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    cell = st.none() | st.integers(0, draw(st.integers(0, 3)))
    rows = draw(st.lists(st.tuples(*[cell] * n_attributes), min_size=n, max_size=n))
    decisions = draw(st.lists(st.integers(0, draw(st.integers(0, 3))), min_size=n, max_size=n))
    columns = _as_columns(rows, decisions)
    if draw(st.booleans()):
        return Sample(columns)
    weight = draw(st.sampled_from([st.integers(0, 4), st.sampled_from([1000, 1001, 1002]), st.integers(0, 2**36)]))
    return _with_weights(columns, draw(st.lists(weight, min_size=n, max_size=n)))


@st.composite
def proportional_tables(draw: st.DrawFn) -> Sample:
    """Classes whose decision counts are proportional, or only nearly so: SCE's equality at its hardest."""
    pick = random.Random(draw(st.integers(0, 2**32)))
    n_attributes, n_decisions = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    shares = st.sampled_from([0, 1, 2, 3, 1000, 1001, 2**20, 2**20 + 1, 2**31])
    base = draw(st.lists(shares, min_size=2, max_size=4))
    perturbed = draw(st.sampled_from([0.0, 0.1, 0.5]))
    scale = max(1, MAX_OBJECTS // (64 * max(1, sum(base))))
    factors = [1, 2, 3, 7, min(scale, 1000)]
    rows, decisions, weights = [], [], []
    for _ in range(draw(st.integers(1, 16))):
        row = tuple(pick.randrange(n_decisions) for _ in range(n_attributes))
        factor = min(pick.choice(factors), scale)
        for d, share in enumerate(base):
            rows.append(row)
            decisions.append(d)
            weights.append(factor * share + (pick.random() < perturbed))
    return _with_weights(_as_columns(rows, decisions), weights)


@st.composite
def large_tables(draw: st.DrawFn, max_rows: int = 200) -> Sample:
    """Up to 200 rows and 8 attributes: constant, duplicate, many-valued, informative columns; any weights."""
    pick = random.Random(draw(st.integers(0, 2**32)))
    n, n_attributes = draw(st.integers(1, max_rows)), draw(st.integers(1, 8))
    n_decisions = draw(st.sampled_from([1, 2, 2, 3, 5, 20]))
    kinds = st.sampled_from(["few", "few", "some", "many", "constant", "copy", "text", "telling"])
    hidden = [pick.randrange(4) for _ in range(n)]
    columns: dict[str, Column] = {}
    for j, kind in enumerate(draw(st.lists(kinds, min_size=n_attributes, max_size=n_attributes))):
        columns[f"a{j}"] = _column(kind, n, hidden, list(columns.values()), pick)

    names = list(columns)
    causes = pick.sample(names, k=min(len(names), draw(st.integers(0, 3))))
    noise = draw(st.sampled_from([0.0, 0.02, 0.3, 1.0]))
    meaning: dict[Hashable, int] = {}
    decisions: Column = []
    for i in range(n):
        key = tuple(columns[name][i] for name in causes)
        told = meaning.setdefault(key, pick.randrange(n_decisions))
        decisions.append(pick.randrange(n_decisions) if pick.random() < noise else told)
    columns[DECISION] = decisions

    weigh = draw(st.sampled_from(["none", "none", "small", "near", "huge"]))
    if weigh == "none":
        return Sample(columns)
    most = min(2**36, MAX_OBJECTS // n)
    ranges = {"small": [range(6)], "near": [range(1000, 1003)], "huge": [range(most), range(3)]}[weigh]
    return _with_weights(columns, [pick.choice(pick.choice(ranges)) for _ in range(n)])


def _column(kind: str, n: int, hidden: list[int], earlier: list[Column], pick: random.Random) -> Column:
    if kind == "constant":
        return [pick.choice([0, None])] * n
    if kind == "copy" and earlier:
        return list(pick.choice(earlier))
    if kind == "many":
        return [pick.randrange(2 * n) for _ in range(n)]
    if kind == "text":
        return [pick.choice(["red", "green", "blue", "?", None]) for _ in range(n)]
    if kind == "telling":
        return [h if pick.random() < 0.9 else pick.randrange(4) for h in hidden]
    return [pick.randrange(2 if kind == "few" else 5) for _ in range(n)]


def tables() -> st.SearchStrategy[Sample]:
    """Tables of every kind."""
    return st.one_of(small_tables(), large_tables(), proportional_tables())


def unweighted_tables() -> st.SearchStrategy[Sample]:
    """Tables without multiplicities."""
    return tables().map(lambda s: Sample({name: c for name, c in s.columns.items() if name != WEIGHTS}))


#: thresholds that many small fractions meet exactly, or miss by a rounding
thresholds = st.sampled_from([0.0, 0.0, 1e-12, 1e-9, 0.01, 0.1, 0.125, 0.2, 0.25, 0.3, 0.5, 0.6, 1.0])


@st.composite
def options(draw: st.DrawFn, conditions: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments of a search over these conditions."""
    include = draw(st.lists(st.sampled_from(conditions), max_size=2, unique=True))
    limit = st.none() | st.integers(max(1, len(include)), len(conditions))
    return {
        "include": tuple(include),
        "epsilon": draw(thresholds),
        "tolerance": draw(thresholds),
        "max_attributes": draw(limit),
        "minimal": draw(st.booleans()),
    }
