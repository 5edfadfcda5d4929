"""A condition of a rule: that a column has a value, or that its numbers are up to a cut point, or above it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from plar.coding.shown_values import shown_value
from plar.coding.times import kind_of_times, written_times

#: what a column is compared with: text, number or truth value; times as text; None for missing
ConditionValue: TypeAlias = str | int | float | bool | None

EQUAL: Final = "="
AT_MOST: Final = "<="
ABOVE: Final = ">"
#: the operators in the order in which ties are broken
OPERATORS: Final = (EQUAL, AT_MOST, ABOVE)
#: with ">", the condition that there is a value at all
LOWEST: Final = -sys.float_info.max


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of one column.

    Parameters
    ----------
    column : str
    operator : {"=", "<=", ">"}
        Missing values meet neither ``<=`` nor ``>``.
    value : str, int, float, bool or None
        The value, or the cut point. Times are text, as ISO 8601 writes them. None, with ``=``, is what is missing.
    """

    column: str
    operator: str
    value: ConditionValue

    @property
    def is_ordered(self) -> bool:
        """Whether it compares numbers or times by size."""
        return self.operator != EQUAL

    @property
    def is_presence(self) -> bool:
        """Whether it only asks that there is a value, of a column that was not cut anywhere."""
        return self.operator == ABOVE and self.value == LOWEST

    @property
    def kind_of_time(self) -> str | None:
        """The kind of times that it compares by size, as `kind_of_times` names it; None for numbers."""
        return kind_of_times([self.value]) if self.is_ordered else None

    @property
    def is_valid(self) -> bool:
        """Whether it can be looked up in a table."""
        if not self.is_ordered:
            return self.operator == EQUAL
        try:
            return self.operator in OPERATORS and math.isfinite(self.number)
        except (TypeError, OverflowError):
            return False

    @property
    def number(self) -> float:
        """The number, or the time in seconds, that it compares with; TypeError if it is neither."""
        if isinstance(self.value, str):
            seconds = written_times([self.value])
            if seconds is None:
                raise TypeError(repr(self.value))
            return float(seconds[0])
        if self.value is None or isinstance(self.value, bool):
            raise TypeError(repr(self.value))
        return float(self.value)


def plain_value(value: Any) -> ConditionValue:
    """A value as JSON and SQL can hold it: of types that these lack, the text that people read."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return shown_value(value)
