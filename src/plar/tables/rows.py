"""What every kind of table can do; `plar.tables.table` chooses the class by what the data are."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plar.bin_rules import Cuts
from plar.bins import apply, cut_columns
from plar.coding.codes import Column, combine
from plar.coding.weights import check_labels, row_weights
from plar.granules import Granules
from plar.limits import check_memory
from plar.options import ReadOptions
from plar.roles import Roles, assign
from plar.tables.output import check_output

__all__ = ["Rows", "Selection", "granulate_columns"]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Columns to take, in this order, and where some of them are cut into bins; `na` and `decimal` as of reading."""

    kept: tuple[str, ...]
    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    decimal: str = "."

    def cut(self, values: Any, name: str, *, text: bool = False) -> Any:
        """A column as it is, or its bins."""
        if name not in self.cuts:
            return values
        if text:  # where nothing is missing too
            return apply(values, self.cuts[name], name, na=(*self.na, ""), decimal=self.decimal)
        return apply(values, self.cuts[name], name, na=self.na)

    def places(self, names: Sequence[str]) -> list[int]:
        """Where the columns stand in a table."""
        at = {name: place for place, name in enumerate(names)}
        return [at[name] for name in self.kept]


@dataclass(frozen=True, slots=True, eq=False)
class Rows(ABC):
    """Opened data of one kind: nothing is read yet but what tells the names.

    Parameters
    ----------
    data : object
        As given, or what reads it.
    names : tuple of str
        All columns, in table order.
    """

    data: Any
    names: tuple[str, ...]

    @abstractmethod
    def __str__(self) -> str:
        """What it is, in a word or two."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read here."""
        return ()

    @property
    def text(self) -> bool:
        """Whether values compare as written, blanks around them trimmed."""
        return False

    @property
    def declared(self) -> tuple[str, ...]:
        """What the data themselves say the decision is."""
        return ()

    @property
    def labels(self) -> frozenset[int]:
        """Labels of columns that are ints, where a library has such."""
        return frozenset()

    @property
    def n_rows(self) -> int:
        """How many rows there are at least, as far as that is known."""
        return 0

    def assign(self, options: ReadOptions, labels: Column | None, label: str) -> Roles:
        """Give the columns their roles."""
        return assign(self.names, options, labels, label)

    @abstractmethod
    def encode(self, names: Sequence[str], na: tuple[str, ...]) -> Iterable[Column]:
        """Code these columns, in turn; can be asked for again."""

    def granulate(self, roles: Roles) -> Granules:
        """Read the rows and return the distinct ones with their multiplicities."""
        return granulate_columns(self, roles)

    @abstractmethod
    def select(self, selection: Selection) -> Any:
        """Take columns, in the same kind of table."""

    @abstractmethod
    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Write what `select` takes."""

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse a place where `sink` could not write."""
        check_output(path, self.files)

    def values_of(self, granules: Any, name: str) -> Iterable[Any]:
        """Some values of a condition, once the rows are granulated."""
        found: Iterable[Any] = granules.dictionaries[granules.conditions.index(name)]
        return found


def granulate_columns(rows: Rows, roles: Roles) -> Granules:
    """Code the columns, numbers cut into bins where that is asked for, and find the equal rows."""
    check_memory("Coding the columns", rows.n_rows * len(roles.used))  # a byte a cell at least
    cuts: dict[str, Cuts] = {}
    coded = list(rows.encode(roles.read, roles.na)) if roles.bins is None else _binned(rows, roles, cuts)
    n_rows = len(coded[0].codes)
    counts = np.ones(n_rows, np.int64)
    if roles.labels is not None:
        check_labels(roles.labels, n_rows)
    if roles.weights is not None:
        counts = row_weights(coded.pop(), counts)
    decision = [coded.pop() for _ in roles.decision][::-1] if roles.labels is None else [roles.labels]
    return Granules.from_columns(
        _emptied(roles.conditions, coded),
        zip(roles.decision, decision, strict=True),
        counts,
        missing=roles.missing,
        cuts=cuts,
    )


def _emptied(names: Sequence[str], columns: list[Column]) -> Iterable[tuple[str, Column]]:
    """Give the columns away, so that each can be freed when it is replaced."""
    columns.reverse()
    return ((name, columns.pop()) for name in names)


def _binned(rows: Rows, roles: Roles, cuts: dict[str, Cuts]) -> list[Column]:
    assert roles.bins is not None
    beside = [*roles.used[len(roles.conditions) :]]
    last = list(rows.encode([*beside, *roles.read[len(roles.used) :]], roles.na))
    decided = last[: len(beside)] if roles.labels is None else [roles.labels]
    classes, _ = combine(decided)
    counts = np.ones(len(classes), np.int64)
    if roles.missing == "drop":
        for column in (*decided, *rows.encode(roles.conditions, roles.na)):
            check_labels(roles.labels or column, len(column.codes))
            if column.missing is not None:
                counts[column.codes == column.missing] = 0
    if roles.weights is not None:
        check_labels(roles.labels or last[-1], len(last[-1].codes))
        counts *= row_weights(last[-1], np.ones(len(counts), np.int64))

    def conditions() -> Iterable[tuple[str, Column]]:
        for name, column in zip(roles.conditions, rows.encode(roles.conditions, roles.na), strict=True):
            check_labels(roles.labels or column, len(column.codes))
            yield name, column

    decimal = roles.decimal if rows.text else None  # text of typed tables is no number
    return [*cut_columns(conditions(), roles.bins, classes, counts, cuts, decimal=decimal), *last]
