"""Approximations and contradictions by their definitions, in plain Python: nothing from plar.

A class is the set of rows that are equal in the columns. The lower approximation of a decision is the union of the
classes in which every row has it, the upper one that of the classes in which some row has it.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from support.oracle import MISSING

Values = tuple[Hashable, ...]


@dataclass(frozen=True)
class Question:
    """A table, and what is asked of it; cut points are given by column, of the decision too."""

    columns: Mapping[str, Sequence[Any]]
    decision: tuple[str, ...] = ("d",)
    attributes: tuple[str, ...] | None = None
    weights: str | None = None
    missing: str = "value"
    missing_decision: str = "value"
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def conditions(self) -> tuple[str, ...]:
        """All columns but the decision and the weights."""
        return tuple(name for name in self.columns if name not in (*self.decision, self.weights))

    @property
    def known(self) -> tuple[str, ...]:
        """The columns whose values are compared."""
        return self.conditions if self.attributes is None else self.attributes

    @property
    def options(self) -> dict[str, Any]:
        """The same as plar takes it."""
        bins = {name: list(cuts) for name, cuts in self.cuts.items() if name not in self.decision}
        decision_cuts = [list(cuts) for name, cuts in self.cuts.items() if name in self.decision]
        options: dict[str, Any] = {"decision": list(self.decision), "weights": self.weights}
        options |= {"missing": self.missing, "missing_decision": self.missing_decision}
        if self.attributes is not None:
            options["attributes"] = list(self.attributes)
        if bins:
            options["bins"] = bins
        if decision_cuts:
            options["decision_bins"] = decision_cuts[0]
        return options

    def take(self, rows: Sequence[int]) -> Question:
        """The same of other rows."""
        columns = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        return Question(
            columns, self.decision, self.attributes, self.weights, self.missing, self.missing_decision, self.cuts
        )


@dataclass(frozen=True)
class Answer:
    """What the definitions say."""

    n_objects: int
    quality: Fraction
    #: rows, lower, upper of each decision, in their order
    decisions: dict[Values, tuple[int, int, int]]
    #: values, rows, and rows by decision, in their order
    contradictions: list[tuple[Values, int, dict[Values, int]]]
    n_classes: int
    #: for each row the possible decisions in words; None if it is dropped
    possible: list[list[str] | None]


def answer(question: Question) -> Answer:
    """Compute it."""
    n_rows = len(next(iter(question.columns.values())))
    weight = {i: int(question.columns[question.weights][i]) if question.weights else 1 for i in range(n_rows)}
    kept = [i for i in range(n_rows) if weight[i] and not _is_dropped(question, i)]
    known = {i: tuple(value_of(question, name, i) for name in question.known) for i in kept}
    decision = {i: tuple(value_of(question, name, i) for name in question.decision) for i in kept}
    classes: dict[Values, list[int]] = {}
    for i in kept:
        classes.setdefault(known[i], []).append(i)
    numbers: dict[Values, tuple[int, int, int]] = {}
    for one in sorted(set(decision.values()), key=_order):
        in_lower = [i for rows in classes.values() if all(decision[j] == one for j in rows) for i in rows]
        in_upper = [i for rows in classes.values() if any(decision[j] == one for j in rows) for i in rows]
        with_it = [i for i in kept if decision[i] == one]
        numbers[one] = (
            sum(weight[i] for i in with_it),
            sum(weight[i] for i in in_lower),
            sum(weight[i] for i in in_upper),
        )
    n_objects = sum(weight[i] for i in kept)
    n_certain = sum(lower for _, lower, _ in numbers.values())
    return Answer(
        n_objects=n_objects,
        quality=Fraction(n_certain, n_objects) if n_objects else Fraction(1),
        decisions=numbers,
        contradictions=_contradictions(classes, decision, weight),
        n_classes=len(classes),
        possible=[
            [
                _label(question, one)
                for one in numbers
                if i in known and any(decision[j] == one for j in classes[known[i]])
            ]
            if i in known
            else None
            for i in range(n_rows)
        ],
    )


def _contradictions(
    classes: Mapping[Values, Sequence[int]], decision: Mapping[int, Values], weight: Mapping[int, int]
) -> list[tuple[Values, int, dict[Values, int]]]:
    found = []
    for values, rows in classes.items():
        counts = Counter[Values]()
        for i in rows:
            counts[decision[i]] += weight[i]
        if len(counts) > 1:
            found.append((values, sum(counts.values()), dict(sorted(counts.items(), key=lambda item: _order(item[0])))))
    return sorted(found, key=lambda one: (-one[1], _order(one[0])))


def is_missing(value: Any) -> bool:
    """Whether a value means missing."""
    return value is None or value in MISSING or (isinstance(value, float) and math.isnan(value))


def _is_dropped(question: Question, i: int) -> bool:
    drops = question.missing == "drop"
    names = [name for name in question.conditions if drops]
    names += [name for name in question.decision if drops or question.missing_decision == "drop"]
    return any(is_missing(question.columns[name][i]) for name in names)


def value_of(question: Question, name: str, i: int) -> Hashable:
    """A value as it compares: None for missing, the number of its bin if the column is cut."""
    value: Hashable = question.columns[name][i]
    if is_missing(value):
        return None
    if name in question.cuts:
        return bisect_left(question.cuts[name], float(str(value)))
    return value


def interval(cuts: Sequence[float], number: int) -> str:
    """A bin in words."""
    if number == 0:
        return f"≤ {cuts[0]:g}"
    if number == len(cuts):
        return f"> {cuts[-1]:g}"
    return f"({cuts[number - 1]:g}, {cuts[number]:g}]"


def shown(question: Question, names: Sequence[str], values: Values) -> tuple[Hashable, ...]:
    """Values as a result has them: bins in words."""
    return tuple(
        interval(question.cuts[name], value) if name in question.cuts and isinstance(value, int) else value
        for name, value in zip(names, values, strict=True)
    )


def _label(question: Question, decision: Values) -> str:
    return ", ".join(
        "missing" if value is None else _text(value) for value in shown(question, question.decision, decision)
    )


def _text(value: Hashable) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _order(values: Values) -> tuple[tuple[int, float, str], ...]:
    """Numbers by their size, also in text, then text, then what is missing."""
    return tuple(_order_of_one(value) for value in values)


def _order_of_one(value: Hashable) -> tuple[int, float, str]:
    if value is None:
        return 2, 0.0, ""
    try:
        return 0, float(str(value)), str(value)
    except ValueError:
        return 1, 0.0, str(value)


# -- random tables ------------------------------------------------------------------------------------------


def random_question(seed: int) -> Question:
    """A random table with a random question: consistent and not, with weights, missing values, bins, …."""
    pick = random.Random(seed)
    n_rows = pick.choice([1, 2, 3, 5, 8, 12, 20, 40])
    names = [f"a{j}" for j in range(pick.randrange(1, 5))]
    kinds = {name: pick.choice(["few", "few", "text", "numbers", "missing", "constant"]) for name in names}
    columns: dict[str, list[Any]] = {name: [_cell(kinds[name], pick) for _ in range(n_rows)] for name in names}
    decisions = ("d",) if pick.random() < 0.75 else ("d", "e")
    n_decisions = pick.choice([1, 2, 2, 3, 5])
    cuts: dict[str, Sequence[float]] = {}
    for name in decisions:
        columns[name] = [pick.randrange(n_decisions) for _ in range(n_rows)]
        if pick.random() < 0.4:
            columns[name] = [None if pick.random() < 0.2 else f"c{value}" for value in columns[name]]
        elif len(decisions) == 1 and pick.random() < 0.2 and n_decisions > 1:
            cuts[name] = [0.5] if n_decisions == 2 else [0.5, 1.5]
    if pick.random() < 0.3:  # the decision follows from the columns
        columns["d"] = [f"{[columns[name][i] for name in names]}"[:9] for i in range(n_rows)]
        cuts.pop("d", None)
    weights = None
    if pick.random() < 0.4:
        weights = "w"
        columns["w"] = [pick.choice([0, 1, 1, 2, 1000, 2**36]) for _ in range(n_rows)]
    for name in names:
        if kinds[name] == "numbers" and pick.random() < 0.6:
            cuts[name] = pick.choice([[0.75], [0.25, 1.0], [0.5, 1.5, 2.5]])
    attributes = None
    if pick.random() < 0.5:
        attributes = tuple(pick.sample(names, pick.randrange(len(names) + 1)))
    missing = pick.choice(["value", "value", "drop"])
    missing_decision = pick.choice(["value", "drop"])
    return Question(columns, decisions, attributes, weights, missing, missing_decision, cuts)


def _cell(kind: str, pick: random.Random) -> Any:
    match kind:
        case "few":
            return pick.randrange(3)
        case "text":
            return pick.choice(["u", "v", "10", "9", "NA", None])
        case "numbers":
            return pick.choice([0.5, 1.0, 1.5, 2.0, 2.5, None, math.nan])
        case "missing":
            return pick.choice([None, None, 1])
        case _:
            return 7
