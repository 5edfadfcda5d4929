"""Weights: a column of whole numbers, which says how many objects each row stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.errors import NoRows, TableError
from plar.partition import Array

__all__ = ["MAX_OBJECTS", "BadWeight", "row_weights", "too_many", "whole", "whole_counts"]

#: counts are exact up to this many objects
MAX_OBJECTS = 1 << 40


class BadWeight(TableError):
    """A weight is no whole number from 0 on."""

    def __init__(self, value: object, where: str) -> None:
        super().__init__(f"The weight in {where} is {value!r}. Weights are whole numbers: 0, 1, 2, …")
        self.value = value


def too_many(n_objects: int) -> str:
    """Say that counts would not be exact."""
    return f"The table stands for {n_objects} objects, above the limit {MAX_OBJECTS}. Scale the weights down."


def whole(value: Any) -> float | None:
    """A weight as a number, None where it is not whole."""
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else -1.0
        return number if number >= 0 and number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


def whole_counts(weights: Array) -> NDArray[np.int64]:
    """Turn sums of weights into counts, exact because floats are up to 2^53."""
    total = float(weights.sum())
    if total > MAX_OBJECTS:
        raise TableError(too_many(int(total)))
    if not total:
        raise NoRows("All weights are 0, so that no row is left. Check the weights.")
    return weights.astype(np.int64)


def row_weights(column: Column, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Multiply the counts of rows by their weights."""
    numbers = np.zeros(len(column.values))
    for code, value in enumerate(column.values):
        number = whole(value)
        if number is None:
            rows = (column.codes == code) & (counts > 0)
            if rows.any():
                raise BadWeight(value, f"row {int(rows.argmax()) + 1}")
        numbers[code] = number or 0.0
    return whole_counts(numbers[column.codes] * counts)
