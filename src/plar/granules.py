"""The granularity representation G^(C∪D): the distinct rows of a table, each with its multiplicity |E|."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plar.coding.assemble import settle
from plar.coding.codes import Column, combine
from plar.coding.store import read_columns, write_columns
from plar.errors import TableError, unknown_name
from plar.partition import Codes, Index, distinct, smallest_codes

__all__ = ["MAX_OBJECTS", "Granulable", "Granules", "open_granules", "regroup", "too_many"]

#: counts are exact up to this many objects
MAX_OBJECTS = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Granules:
    """Distinct rows over conditions and decision, as dictionary codes, with their multiplicities.

    Parameters
    ----------
    conditions : tuple of str
        Names of the condition attributes, in table order.
    columns : tuple of (n,) arrays
        Codes of each condition, in the smallest unsigned type; every code below its cardinality is used.
    dictionaries : tuple of sequences
        ``dictionaries[j][code]`` is the value of condition j; missing is None.
    decision : tuple of str
        Names of the decision columns.
    classes : (n,) array of uint32
        The decision of each granule as one code, several decision columns taken together.
    decision_values : tuple of sequences
        For each decision column its value by class code.
    counts : (n,) array of int64
        How many objects each granule stands for, all positive.
    """

    conditions: tuple[str, ...]
    columns: tuple[Codes, ...]
    dictionaries: tuple[Sequence[Any], ...]
    decision: tuple[str, ...]
    classes: Index
    decision_values: tuple[Sequence[Any], ...]
    counts: NDArray[np.int64]
    n_objects: int

    def __len__(self) -> int:
        """Return the number of granules."""
        return len(self.counts)

    @property
    def n_classes(self) -> int:
        """Number of distinct decisions."""
        return len(self.decision_values[0])

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""
        return tuple(len(d) for d in self.dictionaries)

    @property
    def coded(self) -> list[tuple[Codes, int]]:
        """Codes and number of codes of each condition."""
        return list(zip(self.columns, self.cardinalities, strict=True))

    @staticmethod
    def from_columns(
        conditions: Iterable[tuple[str, Column]],
        decision: Iterable[tuple[str, Column]],
        counts: NDArray[np.int64] | None = None,
        *,
        missing: str = "value",
        grouped: bool = False,
    ) -> Granules:
        """Make granules of coded columns; options as of `plar.coding.assemble.settle`.

        Examples
        --------
        >>> from plar.coding.codes import Column
        >>> a = Column(np.array([0, 1, 0], np.uint8), ["x", "y"])
        >>> d = Column(np.array([0, 0, 0], np.uint8), [True])
        >>> Granules.from_columns([("a", a)], [("d", d)]).counts.tolist()
        [2, 1]
        """
        named = list(conditions)
        k = len(named)
        named += decision
        counts = settle(named, counts, missing=missing, grouped=grouped)
        classes, decision_values = combine([column for _, column in named[k:]])
        return Granules(
            conditions=tuple(name for name, _ in named[:k]),
            columns=tuple(column.codes for _, column in named[:k]),
            dictionaries=tuple(column.values for _, column in named[:k]),
            decision=tuple(name for name, _ in named[k:]),
            classes=classes,
            decision_values=decision_values,
            counts=counts,
            n_objects=int(counts.sum()),
        )

    def positions(self, attributes: Iterable[str | int]) -> list[int]:
        """Positions of attributes among the conditions, in the order given."""
        places = {name: j for j, name in enumerate(self.conditions)}
        found = []
        for a in attributes:
            if isinstance(a, str):
                if a not in places:
                    raise unknown_name("condition", a, self.conditions)
                found.append(places[a])
            else:
                if not -len(self.conditions) <= a < len(self.conditions):
                    raise unknown_name("condition", a, self.conditions)
                found.append(a % len(self.conditions))
        return found

    @property
    def n_missing(self) -> dict[str, int]:
        """How many objects lack a value, for each attribute and decision where some do."""
        coded = [*zip(self.conditions, self.columns, self.dictionaries, strict=True)]
        coded += [
            (name, self.classes, values) for name, values in zip(self.decision, self.decision_values, strict=True)
        ]
        lacking = {}
        for name, codes, values in coded:
            gone = [code for code, value in enumerate(values) if value is None]
            if gone:
                lacking[name] = int(self.counts[np.isin(codes, gone)].sum())
        return lacking

    def coarsen(self, attributes: Iterable[str | int]) -> Granules:
        """G^(C∪D) → G^(P∪D) for P ⊆ C: drop the other attributes and add up the counts.

        Attributes keep the order given.

        Examples
        --------
        >>> granules = Granules.from_columns([("a", Column(np.array([0, 1], np.uint8), ["x", "y"]))],
        ...                     [("d", Column(np.array([0, 0], np.uint8), [True]))])
        >>> granules.coarsen([]).counts.tolist()
        [2]
        """
        kept = self.positions(attributes)
        return regroup(
            replace(
                self,
                conditions=tuple(self.conditions[j] for j in kept),
                columns=tuple(self.columns[j] for j in kept),
                dictionaries=tuple(self.dictionaries[j] for j in kept),
            )
        )

    def with_roles(
        self,
        decision: str | int | Sequence[str | int] | None = None,
        conditions: Iterable[str | int] | None = None,
    ) -> Granules:
        """Granules over some of the conditions; the decision is theirs already and can only be repeated.

        Examples
        --------
        >>> granules = Granules.from_columns([("a", Column(np.array([0, 1], np.uint8), ["x", "y"]))],
        ...                     [("d", Column(np.array([0, 0], np.uint8), [True]))])
        >>> granules.with_roles("d").conditions
        ('a',)
        """
        if decision is not None:
            given = [decision] if isinstance(decision, (str, int)) else list(decision)
            everything = (*self.conditions, *self.decision)
            found = []
            for d in given:
                if isinstance(d, str) and d not in everything:
                    raise unknown_name("decision", d, self.decision)
                found.append(
                    d if isinstance(d, str) else everything[d] if -len(everything) <= d < len(everything) else d
                )
            if tuple(found) != self.decision:
                raise TableError(
                    f"The granules were made for the decision {list(self.decision)}, not {found}. "
                    "Granulate the table anew for another decision."
                )
        if conditions is None:
            return self
        kept = self.positions([conditions] if isinstance(conditions, (str, int)) else conditions)
        if not kept:
            raise TableError("No condition is left. Name at least one.")
        if len(set(kept)) < len(kept):
            raise TableError("A condition is given twice. Name it once.")
        return self if kept == list(range(len(self.conditions))) else self.coarsen(kept)

    def merge(self, other: Granules) -> Granules:
        """Granules of two tables over the same attributes, taken together.

        Examples
        --------
        >>> granules = Granules.from_columns([("a", Column(np.array([0, 1], np.uint8), ["x", "y"]))],
        ...                     [("d", Column(np.array([0, 0], np.uint8), [True]))])
        >>> both = granules.merge(granules)
        >>> len(both), both.n_objects
        (2, 4)
        """
        for kind, ours, theirs in [
            ("conditions", self.conditions, other.conditions),
            ("decision", self.decision, other.decision),
        ]:
            if ours != theirs:
                odd = sorted(set(ours) ^ set(theirs)) or "the order differs"
                raise TableError(f"Granules over different {kind} cannot be merged: {odd}. Coarsen both to the same.")
        if self.n_objects + other.n_objects > MAX_OBJECTS:
            raise TableError(too_many(self.n_objects + other.n_objects))
        return regroup(_stack(self, other))

    def refine(self, attributes: Iterable[str | int], source: Granules | Granulable) -> Granules:
        """G^(P∪D) → G^(Q∪D) for Q = P ∪ attributes: split every granule by further attributes.

        Parameters
        ----------
        attributes : iterable of str or int
            Conditions of `source`; those already here change nothing.
        source : Granules or DecisionTable
            The same objects, described by at least P ∪ attributes.

        Examples
        --------
        >>> fine = Granules.from_columns([("a", Column(np.array([0, 1], np.uint8), ["x", "y"]))],
        ...                 [("d", Column(np.array([0, 0], np.uint8), [True]))])
        >>> len(fine.coarsen([]).refine(["a"], fine))
        2
        """
        fine = source if isinstance(source, Granules) else source.granulate()
        more = [fine.conditions[j] for j in fine.positions(attributes)]
        finer = fine.coarsen([*self.conditions, *(a for a in dict.fromkeys(more) if a not in self.conditions)])
        if finer.decision != self.decision or not _same_objects(self, finer.coarsen(self.conditions)):
            raise TableError(
                f"The source ({fine.n_objects} objects) is not the data of these granules ({self.n_objects} "
                "objects). Refine from the table or the finer granules that they came from."
            )
        return finer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: a column per attribute and decision, one of counts; the roles are metadata.

        The file appears whole or not at all. `open` reads it back.
        """
        conditions = zip(self.conditions, self.columns, self.dictionaries, strict=True)
        decision = []
        for name, values in zip(self.decision, self.decision_values, strict=True):
            places = {value: code for code, value in enumerate(dict.fromkeys(values))}
            lut = np.array([places[value] for value in values], np.uint32)
            decision.append((name, Column(lut[self.classes], list(places))))
        write_columns(path, [(name, Column(c, v)) for name, c, v in conditions], decision, self.counts)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Granules:
        """Read granules that `save` wrote."""
        granules = open_granules(path)
        if granules is None:
            raise TableError(f"{os.fspath(path)!r} holds no granules. Make it with Granules.save or plar granulate.")
        return granules


def open_granules(path: str | os.PathLike[str]) -> Granules | None:
    """Read a granule file; None where there is no file, or one that `Granules.save` has not written.

    A granule file that is damaged raises TableError.
    """
    found = read_columns(path)
    if found is None:
        return None
    conditions, decision, counts = found
    if float(counts.sum(dtype=np.float64)) > MAX_OBJECTS:
        raise TableError(too_many(int(counts.sum(dtype=np.float64))))
    return Granules.from_columns(conditions, decision, counts)


class Granulable(Protocol):
    """A table: what can be granulated."""

    def granulate(self) -> Granules:
        """Return the distinct rows with their multiplicities."""


def too_many(n_objects: int) -> str:
    """Say that counts would not be exact."""
    return f"The table stands for {n_objects} objects, above the limit {MAX_OBJECTS}. Scale the weights down."


def regroup(granules: Granules) -> Granules:
    """Merge equal rows into one granule each, adding up their counts."""
    coded = [
        (granules.classes, granules.n_classes),
        *zip(granules.columns, granules.cardinalities, strict=True),
    ]
    order, starts = distinct(coded, len(granules))
    if len(starts) - 1 == len(granules):
        return granules
    first = order[starts[:-1]]
    return replace(
        granules,
        columns=tuple(c[first] for c in granules.columns),
        classes=granules.classes[first],
        counts=np.add.reduceat(granules.counts[order], starts[:-1].astype(np.intp)),
    )


def _union(a: Codes, a_values: Sequence[Any], b: Codes, b_values: Sequence[Any]) -> tuple[Codes, list[Any]]:
    """Put two coded columns under each other, over the union of their values."""
    places = {value: code for code, value in enumerate(a_values)}
    lut = np.array([places.setdefault(value, len(places)) for value in b_values], np.uint32)
    return smallest_codes(np.concatenate([a.astype(np.uint32), lut[b]]), len(places)), list(places)


def _stack(a: Granules, b: Granules) -> Granules:
    """All granules of both, not yet regrouped."""
    stacked = [_union(*columns) for columns in zip(a.columns, a.dictionaries, b.columns, b.dictionaries, strict=True)]
    classes, values = _union(
        a.classes,
        list(zip(*a.decision_values, strict=True)),
        b.classes,
        list(zip(*b.decision_values, strict=True)),
    )
    return Granules(
        conditions=a.conditions,
        columns=tuple(codes for codes, _ in stacked),
        dictionaries=tuple(values for _, values in stacked),
        decision=a.decision,
        classes=classes.astype(np.uint32),
        decision_values=tuple(list(column) for column in zip(*values, strict=True)),
        counts=np.concatenate([a.counts, b.counts]),
        n_objects=a.n_objects + b.n_objects,
    )


def _same_objects(a: Granules, b: Granules) -> bool:
    """Whether both stand for the same multiset of rows: their difference counts to zero everywhere."""
    if a.n_objects != b.n_objects or len(a) != len(b):
        return False
    return not regroup(_stack(a, replace(b, counts=-b.counts))).counts.any()
