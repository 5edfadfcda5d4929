"""Values of the decision in words, and the order in which people expect them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from plar.coding.shown_values import MISSING, shown_value, value_order
from plar.results.saved import writable

#: what sorts decisions: the order of the value of each decision column
DecisionOrder: TypeAlias = tuple[tuple[int, float, str, str], ...]

#: between the values of several decision columns, and between possible decisions
_BETWEEN_COLUMNS = ", "
_BETWEEN_DECISIONS = " | "


class DecisionWords:
    """The words for decisions, each given by the values of the decision columns.

    Parameters
    ----------
    names : sequence of str
        The decision columns.
    intervals : mapping of str to sequence of str
        The bins of columns that were cut, in words.
    """

    def __init__(self, names: Sequence[str], intervals: Mapping[str, Sequence[str]]) -> None:
        self._intervals = [intervals.get(name) for name in names]

    def label(self, values: Sequence[Any]) -> str:
        """A decision in words.

        >>> DecisionWords(["a", "b"], {"b": ["≤ 1", "> 1"]}).label([None, 1])
        'missing, > 1'
        """
        words = []
        for value, intervals in zip(values, self._intervals, strict=True):
            if value is None:
                words.append(MISSING)
            else:
                words.append(shown_value(value) if intervals is None else intervals[value])
        return writable(_BETWEEN_COLUMNS.join(words))

    @staticmethod
    def order(values: Sequence[Any]) -> DecisionOrder:
        """What sorts decisions."""
        return tuple(map(value_order, values))


def joined(labels: Iterable[str]) -> str:
    """Possible decisions, given in their order, as one text."""
    return _BETWEEN_DECISIONS.join(labels)
