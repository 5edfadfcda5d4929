"""A rule by numbers, and how searches pass it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from plar.rule_search.coded_table import CodedCondition

#: whether a search should stop with what it has
IsLate: TypeAlias = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class CodedRule:
    """A rule by numbers: its conditions, the rows that it matches by decision, and its p-value if it was tested."""

    conditions: tuple[CodedCondition, ...]
    decision: int
    counts: tuple[int, ...]
    p_value: float | None = None

    @property
    def support(self) -> int:
        """How many rows of its decision it matches."""
        return self.counts[self.decision]


#: takes a rule that was found
AddRule: TypeAlias = Callable[[CodedRule], None]
