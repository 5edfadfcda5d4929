"""Random tables to find rules in, how plar is to read them, and what the oracle is to make of that."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import plar
from plar.granules.granules import Granules
from support import oracle
from support.rules import Condition, Rule, RuleTable
from support.strategies import DECISION, WEIGHTS, Column, Sample, small_tables

#: kinds of columns
KINDS = ("few", "few", "text", "mixed", "cut", "cut", "deciles", "constant", "missing", "copy")


@dataclass(frozen=True)
class RuleSample:
    """A table, and the options of reading beside those that say which column is which."""

    columns: dict[str, Column]
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, Any]:
        """The keyword arguments of reading."""
        weights = WEIGHTS if WEIGHTS in self.columns else None
        return {"decision": DECISION, "weights": weights, **self.reading}

    def find(self, **options: Any) -> plar.Rules:
        """The rules of plar."""
        return plar.rules(self.columns, **self.roles, **options)

    def granulate(self) -> Granules:
        """The distinct rows, as `plar.rules` reads them."""
        return plar.granulate(self.columns, **{"missing_decision": "drop", **self.roles})

    def oracle_table(self, read: plar.Rules | Granules) -> RuleTable:
        """What the oracle is to make of the table; columns and cut points are those that plar read."""
        attributes = read.conditions if isinstance(read, Granules) else read.attributes
        kept = self._rows_left()
        columns: dict[str, Sequence[Hashable]] = {}
        for name in (*attributes, *({DECISION, WEIGHTS} & set(self.columns))):
            columns[name] = [self.columns[name][row] for row in kept]
        weights = WEIGHTS if WEIGHTS in self.columns else None
        return RuleTable(oracle.table(columns, DECISION, weights), read.cuts)

    def _rows_left(self) -> list[int]:
        conditions = [column for name, column in self.columns.items() if name not in (DECISION, WEIGHTS)]
        missing = self.reading.get("missing", "value")
        drops_decision = "drop" in (missing, self.reading.get("missing_decision", "drop"))
        return [
            row
            for row, decision in enumerate(self.columns[DECISION])
            if not (drops_decision and decision is None)
            and not (missing == "drop" and any(column[row] is None for column in conditions))
        ]

    def has_rows(self) -> bool:
        """Whether any row is left."""
        return any(self.columns[WEIGHTS][row] if WEIGHTS in self.columns else 1 for row in self._rows_left())


def as_rules(result: Iterable[plar.Rule]) -> list[Rule]:
    """The rules of plar as the oracle writes them."""
    return [Rule(tuple(map(as_condition, rule.conditions)), rule.decision, rule.p_value) for rule in result]


def as_condition(condition: plar.Condition) -> Condition:
    """A condition of plar as the oracle writes it."""
    return condition.column, condition.operator, condition.value


def said(result: plar.Rules) -> dict[str, Any]:
    """All that a result says, but for the times, where it came from, and what was asked."""
    facts = result.to_dict()
    for name in ("seconds", "engine", "settings", "source"):
        del facts[name]
    return facts


@st.composite
def rule_tables(draw: st.DrawFn, max_rows: int = 60, max_weight: int = 5) -> RuleSample:
    """Numbers in bins, numbers, text and both, with missing values, weights, and contradictions."""
    sample = random_rule_table(random.Random(draw(st.integers(0, 2**32))), max_rows, max_weight)
    return sample if sample.has_rows() else RuleSample({"a0": [1], DECISION: [1]})


def any_rule_tables(max_rows: int = 60, max_weight: int | None = None) -> st.SearchStrategy[RuleSample]:
    """These, and small ones of which every cell is drawn, so that failures shrink; their weights may be huge."""
    return st.one_of(rule_tables(max_rows), small_tables().map(lambda sample: _as_rule_sample(sample, max_weight)))


def _as_rule_sample(sample: Sample, max_weight: int | None) -> RuleSample:
    columns = dict(sample.columns)
    if max_weight is not None and WEIGHTS in columns:
        columns[WEIGHTS] = [min(int(str(weight)), max_weight) for weight in columns[WEIGHTS]]
    return RuleSample(columns)


def random_rule_table(pick: random.Random, max_rows: int, max_weight: int) -> RuleSample:
    """A table of any kind; perhaps no row is left when those with missing values are dropped."""
    n = pick.randint(1, max_rows)
    hidden = [pick.randrange(4) for _ in range(n)]
    columns: dict[str, Column] = {}
    bins: dict[str, Any] = {}
    for number in range(pick.choice([1, 2, 3, 4, 5, 8])):
        name = f"a{number}"
        kind = pick.choice(KINDS)
        column = _column(kind, n, hidden, list(columns.values()), pick)
        has_missing = pick.random() < 0.3
        columns[name] = [None if has_missing and pick.random() < 0.2 else value for value in column]
        if kind == "cut":
            points = pick.sample([-0.5, 0.5, 1.0, 1.5, 2.0, 2.5, 9.0], k=pick.randint(1, 4))
            bins[name] = pick.choice([sorted(points)] * 4 + [[9.0]])  # the last puts all numbers into one bin
        if kind == "deciles":
            bins[name] = pick.choice(["auto:10", "quantile:3", "width:4"])
    columns[DECISION] = _decisions(columns, hidden, pick)
    if pick.random() < 0.4:
        columns[WEIGHTS] = [pick.randrange(max_weight + 1) for _ in range(n)]
    reading: dict[str, Any] = {"bins": bins or None}
    if pick.random() < 0.3:
        reading["missing"] = "drop"
    if pick.random() < 0.3:
        reading["missing_decision"] = "value"
    return RuleSample(columns, reading)


def _column(kind: str, n: int, hidden: list[int], earlier: list[Column], pick: random.Random) -> Column:
    """A column of a kind; what is hidden shows in it."""
    if kind == "constant":
        return [pick.choice(["x", 7])] * n
    if kind == "missing":
        return [pick.choice([None, None, "x"]) for _ in range(n)]
    if kind == "copy" and earlier:
        return list(pick.choice(earlier))
    if kind == "text":
        return ["xyzw"[h] if pick.random() < 0.8 else pick.choice("xyz") for h in hidden]
    if kind == "mixed":
        return [pick.choice([h, 2.5, "10", "b", "a"]) for h in hidden]
    if kind == "cut":
        return [h + pick.choice([-0.5, 0.0, 0.25, 0.5]) for h in hidden]
    if kind == "deciles":
        return [h + pick.randrange(50) / 10 for h in hidden]
    return [h if pick.random() < 0.7 else pick.randrange(4) for h in hidden]


def _decisions(columns: Mapping[str, Column], hidden: list[int], pick: random.Random) -> Column:
    """What the hidden says, or some columns, with more or less noise; or one class."""
    n_decisions = pick.choice([1, 2, 2, 3, 5])
    names = [f"class {j}" for j in range(n_decisions)]
    noise = pick.choice([0.0, 0.05, 0.3, 1.0])
    causes = pick.sample(list(columns), k=min(len(columns), pick.randint(1, 3)))
    by_columns = pick.random() < 0.5
    meaning: dict[Hashable, str] = {}
    decisions: Column = []
    for row, h in enumerate(hidden):
        key: Hashable = tuple(columns[name][row] for name in causes) if by_columns else h
        told: str | None = meaning.setdefault(key, pick.choice(names))
        if pick.random() < noise:
            told = pick.choice([*names, None] if noise == 0.3 else names)
        decisions.append(told)
    return decisions
