"""What is checked: a reduct or a selection, and how new rows are read to be compared with those that it is about."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from plar.engines.base import GranuleSet
from plar.errors import Given, ParameterError, PythonOnly, TableError, UnknownNameError, printable, shown_names
from plar.input.tables import DecisionTable
from plar.options import DEFAULT_ALPHA, FormatKwargs, ReadingKwargs, ReadOptions
from plar.results.loading import load
from plar.results.reading import reading_as
from plar.results.reduct import Reduct
from plar.results.selection import Selection
from plar.session.session import Session, has_roles

#: options with which the table of the result was read, and new rows are read too
_READING: Final = ("header", "separator", "decimal", "encoding", "na", "missing", "missing_decision", "weights")
#: those of them that granules can still follow
_OF_GRANULES: Final = ("missing", "missing_decision")


@dataclass(frozen=True, slots=True)
class Subject:
    """A result that is checked, by what a reduct and a selection have in common.

    Parameters
    ----------
    result : Reduct or Selection
    columns : tuple of str
        Those that it chose.
    conditions : tuple of str
        Those that are read: of a reduct all that it was chosen from.
    decision : tuple of str
    alpha : float
        The level that it was tested at.
    n_rows : int
    """

    result: Reduct | Selection
    columns: tuple[str, ...]
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    alpha: float
    n_rows: int

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """Cut points of its table."""
        return self.result.cuts

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that it depends on."""
        return self.result.settings

    @property
    def kind(self) -> str:
        """What messages call it."""
        return "reduct" if isinstance(self.result, Reduct) else "selection"


def subject_of(result: object) -> Subject:
    """A result, or the file of one, to be checked; anything else is refused."""
    if isinstance(result, (str, os.PathLike)):
        where = repr(os.fspath(result))
        result = load(result)
    else:
        where = f"This {type(result).__name__}"
    if isinstance(result, Reduct):
        alpha = result.settings.get("alpha") or DEFAULT_ALPHA
        return Subject(result, result.attributes, result.conditions, result.decision, alpha, result.n_objects)
    if isinstance(result, Selection):
        chosen = set(result.columns)
        # without any, the rows are read all the same
        conditions = tuple(name for name in result.conditions if name in chosen) or result.conditions
        return Subject(result, result.columns, conditions, result.target, result.alpha, result.n_rows)
    raise TableError(f"{where} is neither a reduct nor a selection. Check what plar.reduce or plar.select returned.")


def without_columns(reading: FormatKwargs, function: str) -> ReadingKwargs:
    """The options of reading that a function was given, of which none may choose or cut columns."""
    for name in ("conditions", "drop", "bins", "decision_bins"):
        if name in reading:
            raise ParameterError(
                f"{function} takes columns and cut points from the result. Leave ", Given(name), " out."
            )
    return cast(ReadingKwargs, reading)


def first_reading(subject: Subject, data: Any, given: ReadOptions, names_given: Collection[str]) -> ReadOptions:
    """How new rows are opened, before their columns are known: as given, else as the table of the result."""
    if has_roles(data):
        return given
    try:
        recorded = reading_as(subject.settings, _READING, data)
    except TableError:  # a path on the cluster, or nowhere
        recorded = {name: subject.settings[name] for name in _READING if name in subject.settings}
    options = {name: value for name, value in recorded.items() if name not in names_given}
    decision = None if given.y is not None else list(subject.decision)
    return replace(given, decision=decision, **options)


def opened(subject: Subject, session: Session) -> DecisionTable:
    """The new table, whose decision must be that of the result."""
    try:
        table = session.table
    except UnknownNameError:
        if not subject.settings.get("y"):
            raise
        raise ParameterError(
            f"The target {printable(subject.decision[0])!r} was given beside the table of the {subject.kind}. Pass the "
            "new one too",
            PythonOnly(", as y="),
            ", or a table that has it as a column.",
        ) from None
    if table.decision != subject.decision and table.roles.coded_y is None:
        raise TableError(
            f"The {subject.kind} is about the target {shown_names(subject.decision)}, and the new rows have "
            f"{shown_names(table.decision)}. Pass rows with the same one."
        )
    return table


def columns_there(table: DecisionTable, names: Sequence[str]) -> tuple[str, ...]:
    """Those of some columns that a table has."""
    there = set(table.source.data.conditions if table.is_granulated else table.names)
    there.difference_update([table.weights] if table.weights is not None else [])
    return tuple(name for name in names if name in there)


def reading_of(
    subject: Subject, table: DecisionTable, names: Sequence[str], names_given: Collection[str]
) -> ReadOptions:
    """How some columns of an opened table are read: cut as they were for the result."""
    options = replace(table.options, conditions=list(names), drop=())
    cuts = {name: list(subject.cuts[name]) for name in names if name in subject.cuts}
    if table.is_granulated:
        return _reading_of_granules(subject, table.source.data, options, cuts, names_given)
    decision_bins = next((list(subject.cuts[name]) for name in subject.decision if name in subject.cuts), None)
    options = replace(options, bins=cuts or None, decision_bins=decision_bins)
    if "numeric" not in names_given:
        used = {*names, *subject.decision}
        numeric = [name for name in subject.settings.get("numeric") or () if name in used and name in table.names]
        options = replace(options, numeric=numeric)
    return options


def _reading_of_granules(
    subject: Subject,
    granules: GranuleSet,
    options: ReadOptions,
    cuts: Mapping[str, list[float]],
    names_given: Collection[str],
) -> ReadOptions:
    """The same for granules, which may be cut already, and then at the same points."""
    names = [*options.conditions, *subject.decision]  # type: ignore[misc]  # a list, made above
    for name in names:
        there = granules.cuts.get(name)
        recorded = subject.cuts.get(name)
        cannot_follow = name in subject.decision and there is None and recorded is not None
        if cannot_follow or (there is not None and (recorded is None or tuple(there) != tuple(recorded))):
            raise TableError(
                f"The distinct rows were not cut at the cut points that the {subject.kind} has for "
                f"{printable(name)!r}. Granulate the table with these, or pass the table itself."
            )
    bins = {name: points for name, points in cuts.items() if name not in granules.cuts}
    policies = {
        name: subject.settings[name] for name in _OF_GRANULES if name in subject.settings and name not in names_given
    }
    if not _has_missing(granules, names):
        policies = {}
    return replace(options, bins=bins or None, **policies)


def _has_missing(granules: GranuleSet, names: Sequence[str]) -> bool:
    """Whether rows may be dropped for want of a value; granules on a cluster refuse to drop any."""
    n_missing = granules.n_missing
    return any(name in n_missing for name in names)
