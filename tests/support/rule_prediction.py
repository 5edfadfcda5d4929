"""What rules predict, from the definitions in the documents: plain Python, exact sums, nothing from plar.

A rule is a pair of its conditions, each a triple of column, operator and value, and of its evidence: what it adds to
each decision, in millionths of a nat.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from support.oracle import MISSING

Condition = tuple[str, str, Any]
Row = Mapping[str, Any]

#: above it is whatever is not missing
LOWEST = -1.7976931348623157e308
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class RuleSet:
    """Rules, and how many rows have each decision."""

    rules: Sequence[tuple[Sequence[Condition], Sequence[int]]]
    class_sizes: Sequence[int]

    def prior(self) -> list[int]:
        """What each decision has before any rule, in millionths of a nat."""
        return [micro_nats(math.log(share)) for share in prior_shares(self.class_sizes)]

    def matching(self, row: Row, mark: str = ".") -> list[int]:
        """The rules whose conditions a row meets, by number."""
        asked: dict[str, list[Any]] = {}
        for conditions, _ in self.rules:
            for column, operator, value in conditions:
                if operator == "=":
                    asked.setdefault(column, []).append(value)
        return [
            number
            for number, (conditions, _) in enumerate(self.rules)
            if all(meets(row[c], op, v, asked.get(c, []), mark) for c, op, v in conditions)
        ]

    def scores(self, row: Row, mark: str = ".") -> list[int]:
        """What each decision has for a row."""
        totals = self.prior()
        for number in self.matching(row, mark):
            totals = [total + added for total, added in zip(totals, self.rules[number][1], strict=True)]
        return totals

    def decision(self, row: Row, mark: str = ".") -> int:
        """The number of the decision that has most, of equals the first."""
        scores = self.scores(row, mark)
        return scores.index(max(scores))

    def shares(self, row: Row, mark: str = ".") -> list[float]:
        """How likely a row has each decision."""
        scores = self.scores(row, mark)
        weights = [math.exp((score - max(scores)) / 1e6) for score in scores]
        return [weight / math.fsum(weights) for weight in weights]


def micro_nats(nats: float) -> int:
    """Whole millionths of a nat."""
    return round(nats * 1_000_000)


def prior_shares(class_sizes: Sequence[int]) -> list[float]:
    """The share of each decision among all rows, with one row more of each."""
    return [(size + 1) / (sum(class_sizes) + len(class_sizes)) for size in class_sizes]


def meets(value: Any, operator: str, asked: Any, others: Sequence[Any], mark: str) -> bool:
    """Whether a value meets a condition; `others` are all values that rules ask of its column with =."""
    if is_missing(value):
        return operator == "=" and asked is None
    if asked is None:
        return False
    if operator == "=":
        return is_same(value, asked, others, mark)
    if (operator, asked) == (">", LOWEST):
        return True
    number = size(value, mark)
    bound = size(asked, ".")
    return number <= bound if operator == "<=" else number > bound


def is_missing(value: Any) -> bool:
    """Whether a value is none."""
    return value is None or bool(value != value) or (isinstance(value, str) and value in MISSING)


def is_same(value: Any, asked: Any, others: Sequence[Any], mark: str) -> bool:
    """Whether a value is what a condition asks for, which another table may hold in another type."""
    value = spelled(value)
    if any(exactly(value, other) for other in others):
        return exactly(value, asked)
    if isinstance(value, str) != isinstance(asked, str):
        return bool(written(value, mark) == written(asked, mark))
    moments = moment(value), moment(asked)
    return moments[0] is not None and moments[0] == moments[1]


def exactly(value: Any, other: Any) -> bool:
    """Whether two values are equal as they are: times are text."""
    value = spelled(value)
    return isinstance(value, str) == isinstance(other, str) and bool(value == other)


def spelled(value: Any) -> Any:
    """A time as text; other values as they are."""
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return value


def written(value: Any, mark: str) -> Any:
    """What a value says, whatever type holds it: a number, True and False among them, or text."""
    value = spelled(value)
    if isinstance(value, str):
        pointed = value if mark == "." else value.replace(".", "?").replace(mark, ".")
        if _NUMBER.fullmatch(pointed):
            return Fraction(Decimal(pointed)) if "e" not in pointed.lower() else Fraction(float(pointed))
        return {"true": Fraction(1), "false": Fraction(0)}.get(value.lower(), value)
    if isinstance(value, float) and not math.isinf(value):
        return Fraction(Decimal(repr(value)))
    return str(value) if isinstance(value, float) else Fraction(value)


def moment(value: Any) -> Any:
    """When a time is, with its kind; None for other values."""
    text = spelled(value)
    if not isinstance(text, str):
        return None
    if re.fullmatch(r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?", text):
        return "clock", dt.time.fromisoformat(text)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?", text):
        return "point", dt.datetime.fromisoformat(text)
    return None


def size(value: Any, mark: str) -> float:
    """A number, or a time in seconds."""
    kind, when = moment(value) or ("number", value)
    if kind == "point":
        since: float = (when - _EPOCH) / dt.timedelta(seconds=1)
        return since
    if kind == "clock":
        return float(when.hour * 3600 + when.minute * 60 + when.second + when.microsecond / 1e6)
    return float(value.replace(mark, ".")) if isinstance(value, str) else float(value)
