"""Granules on a cluster: where they are, and what the driver knows about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any, Self, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD, StorageLevel

from plar.bins import Bins, leaves_as_they_are
from plar.coding.assemble import check_objects
from plar.coding.column_names import positions_of
from plar.coding.index_like import Profile, index_like
from plar.coding.shown_values import first_in_order
from plar.engines.base import Engine
from plar.engines.spark.columns_layout import GatheredBlocks
from plar.engines.spark.long_dictionaries import LongDictionaries
from plar.engines.spark.pieces import Cardinalities, Piece, project, shuffle_by_conditions
from plar.engines.spark.session import explained
from plar.errors import Given, TableError
from plar.granules.equal_columns import equal_columns
from plar.granules.fingerprint import Fingerprint
from plar.grouping.partition import Codes, count_distinct
from plar.input.roles import Roles
from plar.runtime.spark_calls import spark_call

T = TypeVar("T")


@dataclass(eq=False)
class SparkGranules:
    """The distinct rows of a table, in pieces on a cluster; plar's functions accept them in place of the table.

    They are kept until `unpersist` or the end of a ``with`` block. A session that plar has started stops
    then, or when nothing refers to them any more, unless other granules use it.
    """

    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    #: all columns of the table
    names: tuple[str, ...]
    #: one per partition
    pieces: RDD[Piece]
    coding: Cardinalities
    #: number of objects with a missing value, by attribute or decision, where there are any
    n_missing: dict[str, int]
    #: the fingerprint, if the values are known
    hashed: Fingerprint | None = None
    #: cut points of the columns whose values are bin numbers
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    #: values by code of each condition, None where the driver does not know them
    dictionaries: tuple[Sequence[Any] | None, ...] = ()
    #: a sample of the values of conditions and decision, if they are known
    samples: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: rows of the table, each counted once, and profiles of conditions, as in `Granules`
    n_rows: int = 0
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    #: rows that were dropped because they have no decision, counted with their weights
    n_without_decision: int = 0
    #: whether the table declared its decision to be categories
    categorical_decision: bool = False
    #: whether the values are as written in text files
    text: bool = False
    #: the dictionaries that the driver does not have
    long_dictionaries: LongDictionaries | None = None
    #: frees what the pieces are computed from
    release: Callable[[], None] | None = None
    #: granules in each piece, and objects in all, once they are computed
    sizes: list[int] = field(init=False)
    n_objects: int = field(init=False)
    #: the columns layout, once it is built
    blocks: GatheredBlocks | None = field(default=None, init=False)
    #: what evaluations in the rows layout moved, and coarser granules: all freed together
    moved: list[RDD[Piece]] = field(default_factory=list, init=False)
    coarse: list[SparkGranules] = field(default_factory=list, init=False)
    is_released: bool = field(default=False, init=False)
    #: the granules that these were made from
    fine: SparkGranules | None = field(default=None, init=False)
    #: an engine that keeps their session running, if plar has started it
    engine: Engine | None = field(default=None, init=False)

    def computed(self, by_columns: int | None = None) -> Self:
        """Compute the pieces, and keep them in the cluster's memory and on its disks.

        Of at most `by_columns` granules, if given, only the columns layout is kept.
        """
        try:
            if by_columns is not None:
                self.blocks = GatheredBlocks(self.pieces, self.coding, by_columns)
                self.sizes = self.blocks.sizes
                self.n_objects = int(self.blocks.counts.sum())
            else:
                with explained("granulate the table"):
                    pieces = self.pieces.persist(StorageLevel.MEMORY_AND_DISK)
                    sizes = pieces.map(lambda piece: (piece.n_rows, int(piece.counts.sum()))).collect()
                self.sizes = [n_rows for n_rows, _ in sizes]
                self.n_objects = sum(n_objects for _, n_objects in sizes)
            check_objects(self.n_objects)
        except BaseException:
            self.unpersist()
            raise
        return self

    def __repr__(self) -> str:
        """The sizes on one line, without values."""
        rows = f"{len(self)} distinct of {self.n_objects} rows in {len(self.sizes)} pieces"
        decision = ", ".join(map(repr, self.decision))
        return f"<SparkGranules: {rows}, {len(self.conditions)} columns, decision {decision}>"

    def __len__(self) -> int:
        """Return the number of granules."""
        return sum(self.sizes)

    @property
    def n_decisions(self) -> int:
        """Number of distinct decisions."""
        return self.coding.n_decisions

    @property
    def n_missing_decisions(self) -> dict[str, int]:
        """How many objects have no value, for each decision with missing values."""
        return {name: self.n_missing[name] for name in self.decision if name in self.n_missing}

    @property
    @spark_call
    def decision_values(self) -> tuple[Sequence[Any], ...]:
        """For each decision column its value by decision code."""
        if self.long_dictionaries is not None and self.long_dictionaries.has_decisions:
            return tuple(zip(*self.long_dictionaries.decisions(), strict=True))
        return tuple(self.samples.get(name, ()) for name in self.decision)

    @spark_call
    def first_values(self, attribute: int, codes: Collection[int], n: int) -> list[tuple[int, Any]]:
        """The first `n` of some values of a condition; see `Granules.first_values`."""
        values = self.dictionaries[attribute]
        if values is not None:
            return first_in_order(((code, values[code]) for code in codes), n)
        assert self.long_dictionaries is not None
        return self.long_dictionaries.first_values(self.conditions[attribute], codes, n)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of distinct values of each condition."""
        return self.coding.cardinalities

    @property
    def index_like(self) -> dict[str, str]:
        """The conditions that only number or name the rows, and why; see `plar.coding.index_like`."""
        return index_like(self.conditions, self.names, self.profiles, self.n_rows)

    @spark_call
    def class_sizes(self) -> NDArray[np.int64]:
        """How many objects have each decision."""
        n = self.n_decisions
        if self.blocks is not None:
            return np.bincount(self.blocks.decision_codes, self.blocks.counts, n).astype(np.int64)
        sizes = self.pieces.map(lambda piece: np.bincount(piece.decision_codes, piece.counts, n))
        with explained("count the decisions"):
            return np.asarray(sizes.sum(), np.int64)

    def positions(self, attributes: str | int | Iterable[str | int]) -> list[int]:
        """Positions of attributes among the conditions; see `Granules.positions`."""
        return positions_of(attributes, self.conditions, self.names)

    def fingerprint(self) -> Fingerprint:
        """Sums of hashes that depend on the values and counts only; see `Granules.fingerprint`."""
        if self.hashed is None:
            raise TableError(
                "A checkpoint or a proof needs the values of the table, but these granules on Spark hold only codes. "
                "Pass the table itself with its conditions instead of granules."
            )
        return self.hashed

    @spark_call
    def equal_columns(self, groups: Iterable[Sequence[int]]) -> list[list[int]]:
        """Conditions that are equal up to a renaming of their values; see `Granules.equal_columns`."""
        coding = self.coding
        pieces = self.pieces

        def ask(function: Callable[[tuple[Codes, ...]], T]) -> list[T]:
            return pieces.map(lambda piece: function(piece.columns(coding))).collect()

        with explained("compare the columns"):
            return equal_columns(groups, coding.cardinalities, ask)

    @spark_call
    def coarsen(self, attributes: str | int | Iterable[str | int]) -> SparkGranules:
        """G^(C∪D) → G^(P∪D) for P ⊆ C, on the cluster."""
        positions = self.positions(attributes)
        fine_coding = self.coding
        coding = fine_coding.of(positions)
        conditions = tuple(self.conditions[a] for a in positions)
        names = (*conditions, *self.decision)
        projections = self.pieces.map(lambda piece: project(piece, fine_coding, positions))
        coarse = replace(
            self,
            conditions=conditions,
            pieces=shuffle_by_conditions(projections, coding, len(self.sizes)),
            coding=coding,
            n_missing={name: self.n_missing[name] for name in names if name in self.n_missing},
            hashed=None,
            cuts={name: self.cuts[name] for name in names if name in self.cuts},
            dictionaries=tuple(self.dictionaries[a] for a in positions),
            profiles={name: self.profiles[name] for name in conditions if name in self.profiles},
            release=None,
        )
        coarse.fine = self  # which must not be garbage before: its session would stop
        self.coarse.append(coarse.computed())
        return coarse

    @spark_call
    def n_combinations(self, attributes: str | int | Iterable[str | int]) -> int:
        """Number of distinct combinations of values of some attributes: the classes of U/P."""
        if self.blocks is not None:
            positions = self.positions(attributes)
            columns = self.blocks.columns
            columns.fetch(positions)
            return count_distinct([(columns[a], self.cardinalities[a]) for a in positions], len(self))
        coarse = self.coarsen(attributes)  # equal ones are never in two pieces
        coding = coarse.coding
        counts = coarse.pieces.map(lambda piece: count_distinct(list(piece.coded(coding)), piece.n_rows))
        with explained("count the combinations"):
            return int(counts.sum())

    def with_roles(self, roles: Roles) -> SparkGranules:
        """Granules over some of the conditions; the other roles were given when the rows were granulated."""
        late = {
            "missing": roles.missing != "value",
            "missing_decision": roles.missing_decision != "value" and bool(self.n_missing_decisions),
            "bins": roles.bins is not None and not self._are_cut(roles, roles.bins),
            "numeric": bool(roles.numeric),
        }
        for option, is_given in late.items():
            if is_given:
                raise TableError("The table is already granulated. Pass ", Given(option), " when granulating it.")
        return self if roles.conditions == self.conditions else self.coarsen(roles.conditions)

    def _are_cut(self, roles: Roles, bins: Bins) -> bool:
        """Whether all that these bins would cut is cut already."""
        n_values = dict(zip(self.conditions, self.cardinalities, strict=True))
        for name in roles.conditions:
            rule = bins.rule(name)
            if rule is None or (name in self.cuts and name not in bins.columns):
                continue
            if not leaves_as_they_are(rule, name, self.samples.get(name), n_values[name], roles.decimal):
                return False
        return True

    def check_usable(self) -> None:
        """Refuse granules that were released."""
        if self.is_released:
            raise TableError("These granules were released: unpersist was called. Granulate the table again.")

    def unpersist(self) -> None:
        """Free the cluster's memory and disks; the granules cannot be used afterwards."""
        self.is_released = True
        while self.coarse:
            self.coarse.pop().unpersist()
        frees: list[Callable[[], object]] = [rdd.unpersist for rdd in (*self.moved, self.pieces)]
        if self.blocks is not None:
            frees.insert(0, self.blocks.unpersist)
        if self.release is not None:
            frees.append(self.release)
        for free in frees:
            with suppress(Exception):  # a cluster that has shut down has freed it already
                free()
        if self.engine is not None:
            self.engine.close()

    def close_with(self, engine: Engine) -> None:
        """Close an engine together with these granules, or when they are garbage."""
        self.engine = engine
        finalizer = finalize(self, _close_in_thread, engine)
        finalizer.atexit = False  # the JVM ends with this process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()


def _close_in_thread(engine: Engine) -> None:
    """Close an engine in a thread of its own: garbage may be collected in the middle of a call to the JVM."""
    Thread(target=engine.close).start()
