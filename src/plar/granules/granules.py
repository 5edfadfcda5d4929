"""The granularity representation G^(C∪D): the distinct rows of a table, each with its multiplicity |E|."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plar.bins import Cuts
from plar.coding.assemble import check_objects, count_missing, merge_equal, merge_equal_rows
from plar.coding.codes import Column, concat_columns, joint_codes, recode
from plar.coding.column_names import positions_of
from plar.coding.index_like import Profile, index_like, merged_profiles, profile_of
from plar.coding.row_limit import MAX_OBJECTS
from plar.coding.shown_values import first_in_order
from plar.errors import AllRowsDropped, NoRows, PythonOnly, TableError
from plar.files.find import find_files
from plar.granules.consumable_columns import ConsumableColumns
from plar.granules.equal_columns import equal_columns
from plar.granules.fingerprint import Fingerprint, fingerprint_of
from plar.granules.granule_files import holds_granules, read_granules, write_granules
from plar.granules.subtraction import counts_left
from plar.grouping.partition import Codes, Index, count_distinct

__all__ = ["MAX_OBJECTS", "Granules", "granules_in"]


@dataclass(frozen=True, slots=True, eq=False)
class Granules:
    """Distinct rows over conditions and decision, as dictionary codes, with their multiplicities.

    Parameters
    ----------
    conditions, decision : tuple of str
        Names of the condition attributes, in table order, and of the decision columns.
    columns : sequence of (n,) arrays
        Codes of each condition, in the smallest unsigned type; every code below its cardinality is used.
    dictionaries : tuple of sequences
        ``dictionaries[j][code]`` is the value of condition j; missing is None.
    decision_codes : (n,) array of uint32
        The decision of each granule as one code, several decision columns taken together.
    decision_values : tuple of sequences
        For each decision column its value by decision code.
    counts : (n,) array of int64
        How many objects each granule stands for, all positive.
    n_objects : int
        The sum of the counts.
    names : tuple of str
        All columns of the table in its order, to which positions refer. Default: conditions, then decision.
    cuts : mapping of str to tuple of float
        Cut points of the conditions whose values are numbers of bins.
    text : bool
        Whether the values are as written in a text file, so that numbers are text too.
    consistent : bool or None
        Whether no two granules agree on all conditions; None where that was not looked at.
    n_rows : int
        Rows of the table, each counted once whatever its weight. Default: `n_objects`.
    profiles : mapping of str to Profile
        Of the conditions that were different in nearly every row: what they held before any was cut.
    n_without_decision : int
        Rows, each counted by its weight, that were dropped because they have no decision.
    categorical_decision : bool
        Whether the table declared its decision to be categories, whatever the values look like.
    """

    conditions: tuple[str, ...]
    columns: Sequence[Codes]
    dictionaries: tuple[Sequence[Any], ...]
    decision: tuple[str, ...]
    decision_codes: Index
    decision_values: tuple[Sequence[Any], ...]
    counts: NDArray[np.int64]
    n_objects: int
    names: tuple[str, ...] = ()
    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    text: bool = False
    consistent: bool | None = None
    n_rows: int = 0
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    n_without_decision: int = 0
    categorical_decision: bool = False

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", (*self.conditions, *self.decision))
        if not self.n_rows:
            object.__setattr__(self, "n_rows", self.n_objects)

    def __repr__(self) -> str:
        """The sizes on one line, without the values."""
        sizes = f"{len(self)} distinct of {self.n_objects} rows, {len(self.conditions)} columns"
        return f"<Granules: {sizes}, decision {', '.join(map(repr, self.decision))}>"

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_decisions(self) -> int:
        """Number of distinct decisions."""
        return len(self.decision_values[0])

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""
        return tuple(len(values) for values in self.dictionaries)

    @property
    def index_like(self) -> dict[str, str]:
        """The conditions that only number or name the rows, and why; see `plar.coding.index_like`."""
        return index_like(self.conditions, self.names, self.profiles, self.n_rows)

    def class_sizes(self) -> NDArray[np.int64]:
        """How many objects have each decision."""
        return np.bincount(self.decision_codes, self.counts, self.n_decisions).astype(np.int64)

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
        policies: Sequence[str] | None = None,
        grouped: bool = False,
        names: Sequence[str] = (),
        cuts: Mapping[str, Cuts] | None = None,
        text: bool = False,
        n_rows: int = 0,
        profiles: Mapping[str, Profile] | None = None,
        n_without_decision: int = 0,
        may_be_empty: bool = False,
    ) -> Granules:
        """Make granules of coded columns; options are those of `plar.coding.assemble.merge_equal_rows`.

        The profiles may be filled while the conditions are taken. `n_without_decision` rows were dropped before.
        If no row is left, there is an error, unless the granules may be empty.
        """
        named_columns = list(conditions)
        n_conditions = len(named_columns)
        named_columns += decision
        if policies is not None and policies[-1] == "drop":
            n_without_decision += count_missing([column for _, column in named_columns[n_conditions:]], counts)
        consistent: bool | None = True
        try:  # rows are dropped and merged in this list
            counts, consistent = merge_equal_rows(
                named_columns, n_conditions, counts, policies=policies, grouped=grouped
            )
        except AllRowsDropped:
            if not may_be_empty:
                raise
            counts = np.empty(0, np.int64)
        condition_columns = named_columns[:n_conditions]
        decision_columns = named_columns[n_conditions:]
        decision_codes, decision_values = joint_codes([column for _, column in decision_columns])
        return Granules(
            conditions=tuple(name for name, _ in condition_columns),
            columns=tuple(column.codes for _, column in condition_columns),
            dictionaries=tuple(column.values for _, column in condition_columns),
            decision=tuple(name for name, _ in decision_columns),
            decision_codes=decision_codes,
            decision_values=decision_values,
            counts=counts,
            n_objects=int(counts.sum()),
            names=tuple(names),
            cuts=cuts or {},
            text=text,
            consistent=consistent,
            n_rows=n_rows,
            profiles=profiles or {},
            n_without_decision=n_without_decision,
        )

    def first_values(self, attribute: int, codes: Collection[int], n: int) -> list[tuple[int, Any]]:
        """The first `n` of some values of a condition, each with its code, in the order that people expect."""
        values = self.dictionaries[attribute]
        return first_in_order(((code, values[code]) for code in codes), n)

    def n_combinations(self, attributes: str | int | Iterable[str | int]) -> int:
        """How many combinations of values some attributes have: classes of U/P.

        Examples
        --------
        >>> import plar
        >>> plar.granulate({"a": ["x", "y", "y"], "b": [1, 1, 2], "d": [1, 1, 1]}, "d").n_combinations("a")
        2
        """
        coded_columns = [(self.columns[j], len(self.dictionaries[j])) for j in self.positions(attributes)]
        return count_distinct(coded_columns, len(self))

    @property
    def nbytes(self) -> int:
        """Bytes of codes, decisions and counts, without the values."""
        return sum(array.nbytes for array in (*self.columns, self.decision_codes, self.counts))

    def positions(self, attributes: str | int | Iterable[str | int]) -> list[int]:
        """Positions of attributes among the conditions, each once; an int is a position in the table, along `names`."""
        return positions_of(attributes, self.conditions, self.names)

    @property
    def n_missing(self) -> dict[str, int]:
        """How many rows have no value, for each column and decision with missing values."""
        # columns are looked up one at a time: for one that is kept as lanes its codes are made anew
        n_missing = {
            name: self._count_missing(self.columns[j], values)
            for j, (name, values) in enumerate(zip(self.conditions, self.dictionaries, strict=True))
            if None in values
        }
        return n_missing | self.n_missing_decisions

    @property
    def n_missing_decisions(self) -> dict[str, int]:
        """How many rows have no value, for each decision with missing values."""
        return {
            name: self._count_missing(self.decision_codes, values)
            for name, values in zip(self.decision, self.decision_values, strict=True)
            if None in values
        }

    def _count_missing(self, codes: Codes | Index, values: Sequence[Any]) -> int:
        missing = [code for code, value in enumerate(values) if value is None]
        return int(self.counts[np.isin(codes, missing)].sum())

    def fingerprint(self) -> Fingerprint:
        """Sums of hashes that depend on the values and counts, not on the order of the rows or their codes."""
        values_of_conditions = zip(self.conditions, self.dictionaries, strict=True)
        conditions = [
            (codes, [name_and_values])
            for codes, name_and_values in zip(self.columns, values_of_conditions, strict=True)
        ]
        decision = (self.decision_codes, list(zip(self.decision, self.decision_values, strict=True)))
        return fingerprint_of([*conditions, decision], self.counts)

    def equal_columns(self, groups: Iterable[Sequence[int]]) -> list[list[int]]:
        """Conditions that are equal up to the names of their values, given as positions, among those of each group."""

        def ask(function: Callable[[Sequence[Codes]], Any]) -> list[Any]:
            return [function(self.columns)]  # these granules are one piece

        return equal_columns(groups, self.cardinalities, ask)

    def coarsen(self, attributes: str | int | Iterable[str | int]) -> Granules:
        """G^(C∪D) → G^(P∪D) for P ⊆ C: drop the other attributes and add up the counts.

        Attributes keep the order given. Positions count along the table, as everywhere.

        Examples
        --------
        >>> import plar
        >>> granules = plar.granulate({"a": ["x", "y"], "d": [1, 1]}, "d")
        >>> granules.coarsen([]).counts.tolist()
        [2]
        """
        positions = self.positions(attributes)
        columns = [self.columns[j] for j in positions]
        dictionaries = tuple(self.dictionaries[j] for j in positions)
        coded_columns = zip(columns, map(len, dictionaries), strict=True)
        coded_decision = (self.decision_codes, self.n_decisions)
        first_rows, counts, consistent = merge_equal(coded_columns, [coded_decision], self.counts)
        decision_codes = self.decision_codes
        if first_rows is not None:
            columns = [codes[first_rows] for codes in columns]
            decision_codes = decision_codes[first_rows]
        conditions = tuple(self.conditions[j] for j in positions)
        return replace(
            self,
            conditions=conditions,
            columns=tuple(columns),
            dictionaries=dictionaries,
            decision_codes=decision_codes,
            counts=counts,
            cuts={name: self.cuts[name] for name in (*conditions, *self.decision) if name in self.cuts},
            consistent=consistent,
            profiles={name: self.profiles[name] for name in conditions if name in self.profiles},
        )

    def with_counts(self, counts: ArrayLike) -> Granules:
        """The same granules with other multiplicities, whole numbers; those of 0 go. Nothing is read again.

        Examples
        --------
        >>> import plar
        >>> granules = plar.granulate({"a": ["x", "y", "y"], "d": [1, 1, 1]}, "d")
        >>> granules.with_counts([4, 0]).n_objects
        4
        """
        new_counts = np.asarray(counts)
        is_whole = new_counts.dtype.kind in "biu"
        if new_counts.shape != self.counts.shape or not is_whole or (new_counts < 0).any():
            raise TableError(
                f"with_counts takes {len(self)} whole numbers from 0 on, one per granule. "
                f"Got {new_counts.dtype} of shape {new_counts.shape}."
            )
        check_objects(float(new_counts.sum(dtype=np.float64)))
        if not new_counts.any():
            raise NoRows("All counts are 0, so no granule is left. Check them.")
        conditions, decision = self.named_columns()
        granules = Granules.from_columns(
            conditions,
            decision,
            new_counts.astype(np.int64),
            grouped=True,
            names=self.names,
            cuts=self.cuts,
            text=self.text,
        )
        # granules that agree on some conditions may be gone now
        return replace(
            granules,
            consistent=self.consistent or None,
            n_rows=self.n_rows,
            profiles=self.profiles,
            n_without_decision=self.n_without_decision,
            categorical_decision=self.categorical_decision,
        )

    def for_one_search(self) -> Granules:
        """The same granules with columns that an engine may overwrite, so that no cell is held twice."""
        return replace(self, columns=ConsumableColumns(self.columns))

    def named_columns(self) -> tuple[list[tuple[str, Column]], list[tuple[str, Column]]]:
        """Coded columns of the conditions and of the decision, each under its name."""
        conditions = [
            (name, Column(codes, values))
            for name, codes, values in zip(self.conditions, self.columns, self.dictionaries, strict=True)
        ]
        decision = [
            (name, recode(self.decision_codes, values))
            for name, values in zip(self.decision, self.decision_values, strict=True)
        ]
        return conditions, decision

    def merge(self, other: Granules) -> Granules:
        """Granules of two tables over the same attributes, taken together.

        Examples
        --------
        >>> import plar
        >>> granules = plar.granulate({"a": ["x", "y"], "d": [1, 1]}, "d")
        >>> both = granules.merge(granules)
        >>> len(both), both.n_objects
        (2, 4)
        """
        self._check_same_attributes(other, "merge")
        check_objects(self.n_objects + other.n_objects)
        return merge_granules([self, other])

    def subtract(self, other: Granules) -> Granules:
        """The granules without the rows of others over the same attributes, which must all be there.

        What was merged is taken out again, whatever the order of the rows: counts go down, and granules of which no
        row is left go.

        Examples
        --------
        >>> import plar
        >>> january = plar.granulate({"a": ["x", "y"], "d": [1, 1]}, "d")
        >>> february = plar.granulate({"a": ["y", "z"], "d": [1, 1]}, "d")
        >>> february.merge(january).subtract(january).fingerprint() == february.fingerprint()
        True
        """
        self._check_same_attributes(other, "subtract")
        parts = [granules.named_columns() for granules in (self, other)]
        columns = _union_each([[*conditions, *decision] for conditions, decision in parts])
        remaining = self.with_counts(counts_left(columns, self.counts, other.counts))
        n_rows = max(self.n_rows - other.n_rows, len(remaining))
        return replace(
            remaining,
            n_rows=n_rows,
            profiles=remaining._profiles_of_uncut(n_rows),
            n_without_decision=max(self.n_without_decision - other.n_without_decision, 0),
        )

    def _profiles_of_uncut(self, n_rows: int) -> dict[str, Profile]:
        """Profiles by the values that are here; those of columns that were cut are not."""
        profiles = {
            name: profile_of(values, n_rows)
            for name, values in zip(self.conditions, self.dictionaries, strict=True)
            if name not in self.cuts
        }
        return {name: profile for name, profile in profiles.items() if profile is not None}

    def _check_same_attributes(self, other: object, verb: str) -> None:
        """Refuse what is no granules, or granules over other attributes or with other bins."""
        if not isinstance(other, Granules):
            raise TableError(f"{verb} takes Granules, got {type(other).__name__}. Make them with plar.granulate.")
        done = "merged" if verb == "merge" else "subtracted"
        _check_same("conditions", self.conditions, other.conditions, done)
        _check_same("decision", self.decision, other.decision, done)
        differing = [a for a in (*self.conditions, *self.decision) if self.cuts.get(a) != other.cuts.get(a)]
        if differing:
            raise TableError(
                f"Granules whose bins are cut at different points cannot be {done}: {differing[:5]}. Granulate the "
                "tables with the same cut points",
                PythonOnly(": bins={column: list of numbers}"),
                ".",
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: a column per attribute and decision, and one of counts; the roles are metadata.

        The file is written completely or not at all. `open` reads it back.
        """
        write_granules(path, self)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Granules:
        """Read granules that `save` wrote; all files of a glob are merged."""
        granules = granules_in(path, find_files(path))
        if granules is None:
            raise TableError(f"{os.fspath(path)!r} holds no granules. Make it with Granules.save or plar granulate.")
        return granules


def granules_in(path: str | os.PathLike[str], files: Sequence[Path]) -> Granules | None:
    """Read and merge the files of a path, if `Granules.save` wrote them; None if it wrote none of them.

    A granule file that is damaged raises TableError, and so do tables among granule files.
    """
    granule_files = [file for file in files if holds_granules(file)]
    if not granule_files:
        return None
    if len(granule_files) < len(files):
        raise TableError(f"{os.fspath(path)!r} matches granules and tables. Read {str(granule_files[0])!r} on its own.")
    return reduce(Granules.merge, map(_read, granule_files))


def _read(file: Path) -> Granules:
    stored = read_granules(file)
    check_objects(stored.counts.sum(dtype=np.float64))
    granules = Granules.from_columns(
        stored.conditions,
        stored.decision,
        stored.counts,
        names=stored.names,
        cuts=stored.cuts,
        text=stored.text,
        n_rows=stored.n_rows,
        profiles=stored.profiles,
        n_without_decision=stored.n_without_decision,
    )
    return replace(granules, categorical_decision=stored.categorical_decision)


def _check_same(role: str, ours: Sequence[str], theirs: Sequence[str], done: str) -> None:
    """Refuse granules with other columns in a role."""
    if ours != theirs:
        difference = sorted(set(ours) ^ set(theirs)) or "the order differs"
        raise TableError(f"Granules over different {role} cannot be {done}: {difference}. Coarsen both to the same.")


def merge_granules(parts: Sequence[Granules], n_uncut: Mapping[str, int] | None = None) -> Granules:
    """The granules of all parts, over the same attributes, those of the first part first.

    `n_uncut` says how many different values columns had before they were cut, as far as that is known.
    """
    columns_of_parts = [part.named_columns() for part in parts]
    conditions = _union_each([conditions for conditions, _ in columns_of_parts])
    decision = _union_each([decision for _, decision in columns_of_parts])
    first = parts[0]
    n_values = {
        name: len(column.values) - (column.missing is not None) for name, column in conditions if name not in first.cuts
    }
    granules = Granules.from_columns(
        conditions,
        decision,
        np.concatenate([part.counts for part in parts]),
        names=first.names,
        cuts=first.cuts,
        text=all(part.text for part in parts),
        n_rows=sum(part.n_rows for part in parts),
        profiles=merged_profiles([part.profiles for part in parts], {**n_values, **(n_uncut or {})}),
        n_without_decision=sum(part.n_without_decision for part in parts),
    )
    return replace(granules, categorical_decision=any(part.categorical_decision for part in parts))


def _union_each(parts: Sequence[Sequence[tuple[str, Column]]]) -> list[tuple[str, Column]]:
    """Each column of all parts, one part after another."""
    columns = []
    for same in zip(*parts, strict=True):
        name, _ = same[0]
        columns.append((name, concat_columns([column for _, column in same])))
    return columns
