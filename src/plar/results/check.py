"""Whether a reduct or a selection still stands on new rows: what `plar.check` returns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from plar.coding.row_limit import MAX_OBJECTS
from plar.errors import TableError
from plar.matching.condition import ConditionValue
from plar.results.from_json import from_json
from plar.results.saved import check_settings, save, writable
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars

    from plar.results.report.pages import Page

__all__ = ["Check", "CheckedColumn", "Mending", "NeverSeen", "Witness"]

#: what can be checked
KINDS: Final = ("reduct", "selection")
#: how a column came into the result
ROLES: Final = ("core", "selected", "included")
#: what became of a column
THERE: Final = "there"
GONE: Final = "gone"
RETYPED: Final = "another type"
STATES: Final = (THERE, GONE, RETYPED)


@dataclass(frozen=True, slots=True)
class NeverSeen:
    """Values, or combinations of values, that new rows have and the old ones had not.

    Parameters
    ----------
    n : int
        How many different ones.
    n_rows : int
        New rows that have one of them, counted with their weights.
    examples : tuple of str
        Some of them in words, those of the most rows first.
    """

    n: int
    n_rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """What became of one column of the result.

    Parameters
    ----------
    column : str
    role : {"core", "selected", "included"}
        How it came into the result.
    state : {"there", "gone", "another type"}
        "another type" if it had numbers or times, and has text now. Only a column that is there can be tested.
    given : tuple of str
        The columns that are held fixed in its test: of a reduct those before it, of a selection those recorded in its
        step; without those that are gone.
    p_value : float or None
        How likely it would say as much about the new rows by chance, given those columns. It is the p-value of a search
        on the new rows whose only candidate is this column, and which includes the others: it is multiplied by
        nothing, because one question is asked of each column. None if it could not be tested.
    p_value_then : float or None
        The p-value that decided when it was selected, times the number of candidates. None for columns that were not
        tested.
    gain : float or None
        What it says on the new rows beside the columns before it: of a reduct how much it lowers Θ; of a selection the
        share of what was left to say, from 0 to 1, as `plar.select` measures it.
    gain_then : float or None
        The same when it was selected; None where that is not recorded.
    replicates : bool or None
        Whether the p-value is at most `alpha`; False for a column that is gone or has another type.
    new_values : NeverSeen or None
        Values that it never had before; None if the old ones are not known.
    """

    column: str
    role: str
    state: str
    given: tuple[str, ...]
    p_value: float | None
    p_value_then: float | None
    gain: float | None
    gain_then: float | None
    replicates: bool
    new_values: NeverSeen | None


@dataclass(frozen=True, slots=True)
class Witness:
    """Two kinds of rows that agree in the columns of a reduct, although they have to be told apart.

    Parameters
    ----------
    columns : tuple of str
        The columns that tell them apart; rows agree in all others. None of these columns is too many: in the table
        there are no two such rows that differ in fewer of them and nothing else.
    row, other : tuple of (str, int, float, bool or None)
        The values of the rows, in the order of `Check.conditions`; intervals of columns that were cut are text.
    decisions, other_decisions : tuple of (str, int)
        Their decisions, in words, each with how many rows have it.
    """

    columns: tuple[str, ...]
    row: tuple[ConditionValue, ...]
    other: tuple[ConditionValue, ...]
    decisions: tuple[tuple[str, int], ...]
    other_decisions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Mending:
    """The fewest columns with which a reduct keeps everything again.

    Parameters
    ----------
    columns : tuple of str
        The columns to add; of several such sets the first by the positions of its columns.
    at_least : int
        No fewer columns do it: this is proven. Equal to the number of columns, unless time was up.
    """

    columns: tuple[str, ...]
    at_least: int

    @property
    def is_fewest(self) -> bool:
        """Whether it is proven that no fewer columns do."""
        return self.at_least == len(self.columns)


@dataclass(frozen=True, slots=True, repr=False)
class Check:
    """Whether the columns of a result still do their work on new rows; what `plar.check` returns.

    Parameters
    ----------
    stands : bool
        Of a reduct: its columns are all there, and they keep everything that all columns say about the decision in the
        new rows. Of a selection: every selected column replicates.
    checked : {"reduct", "selection"}
        What was checked.
    columns : tuple of CheckedColumn
        The columns of the result, in its order.
    preserves : bool or None
        Whether Θ(D|R) = Θ(D|C) in the new rows, for the columns R that are there; None for a selection.
    preserved_then : bool or None
        Whether that was so when the reduct was found: not if `alpha`, a tolerance or a limit ended its search.
    theta, theta_all : float or None
        Θ(D|R) and Θ(D|C) in the new rows; None for a selection.
    witness : Witness or None
        Two kinds of rows that the columns cannot tell apart, if they do not preserve Θ(D|C).
    mending : Mending or None
        The fewest columns that have to be added then.
    conditions, decision : tuple of str
        The columns that were looked at and are there: of a reduct all that it was chosen from (C), of a selection those
        of its steps; and the target.
    measure : str or None
        Of the reduct.
    alpha : float
        The level of the p-values.
    gone : tuple of str
        Conditions of the result that the new table lacks.
    retyped : mapping of str to str
        Conditions of another type, each with the difference in words.
    n_rows, n_rows_then : int
        New rows, and rows of the table that the result is about, counted with their weights.
    n_combinations : int
        Combinations of values that the columns of the result have in the new rows.
    new_combinations : NeverSeen or None
        Those that no old row has; None if the old rows are not known.
    new_decisions : NeverSeen or None
        Decisions that no old row has; None if the old ones are not known.
    cuts : mapping of str to tuple of float
        Cut points of the columns that were cut into bins, as the result has them; times in seconds.
    intervals : mapping of str to tuple of str
        Their bins in words.
    notes : tuple of str
        What is to be known about the result, a line each.
    engine : str
    source, source_then : str or None
        The paths of the new table, and of the one that the result is about, if they were read from one.
    settings : mapping of str to object
        The options that the result depends on.
    seconds : mapping of str to float
        By phase: read, granulate, check, mend.

    Examples
    --------
    >>> import plar
    >>> january = {"sky": ["sun", "rain", "sun", "rain"], "wind": [0, 0, 1, 1], "play": ["yes", "no", "yes", "no"]}
    >>> february = {"sky": ["sun", "rain", "sun", "rain"], "wind": [0, 0, 1, 1], "play": ["yes", "no", "no", "no"]}
    >>> c = plar.check(plar.reduce(january, "play"), february)
    >>> c.stands, c.witness.columns, c.mending.columns
    (False, ('wind',), ('wind',))
    """

    stands: bool
    checked: str
    columns: tuple[CheckedColumn, ...]
    preserves: bool | None
    preserved_then: bool | None
    theta: float | None
    theta_all: float | None
    witness: Witness | None
    mending: Mending | None
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    measure: str | None
    alpha: float
    gone: tuple[str, ...]
    retyped: Mapping[str, str]
    n_rows: int
    n_rows_then: int
    n_combinations: int
    new_combinations: NeverSeen | None
    new_decisions: NeverSeen | None
    cuts: Mapping[str, tuple[float, ...]]
    intervals: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    engine: str
    source: str | None
    source_then: str | None
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        verdict = "stands" if self.stands else "does not stand"
        return f"<Check: the {self.checked} {verdict} on {self.n_rows:,} rows>"

    def __str__(self) -> str:
        """A summary for people."""
        from plar.results.report.check_text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        from plar.results.report.check_views import notebook_table

        return notebook_table(self)

    @property
    def tested(self) -> tuple[CheckedColumn, ...]:
        """The columns that have to replicate: of a selection without those that it included untested."""
        if self.checked == "reduct":
            return self.columns
        return tuple(column for column in self.columns if column.role != "included")

    @property
    def replicating(self) -> tuple[str, ...]:
        """Those of them that replicate."""
        return tuple(column.column for column in self.tested if column.replicates)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; the keys are the names of the fields, and `kind`."""
        return {"kind": "check", **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)

    def to_frame(self) -> polars.DataFrame:
        """One row for each column of the result, as a polars frame.

        Columns: ``column``, ``role``, ``state``, ``p_value_then``, ``p_value``, ``gain_then``, ``gain``,
        ``replicates``, ``new_values`` (how many) and ``new_rows`` (how many rows have them). Unknown numbers are null.
        """
        schema = {
            "column": pl.String,
            "role": pl.String,
            "state": pl.String,
            "p_value_then": pl.Float64,
            "p_value": pl.Float64,
            "gain_then": pl.Float64,
            "gain": pl.Float64,
            "replicates": pl.Boolean,
            "new_values": pl.Int64,
            "new_rows": pl.Int64,
        }
        rows = []
        for one in self.columns:
            news = one.new_values
            rows.append(
                (
                    writable(one.column),
                    one.role,
                    one.state,
                    one.p_value_then,
                    one.p_value,
                    one.gain_then,
                    one.gain,
                    one.replicates,
                    None if news is None else news.n,
                    None if news is None else news.n_rows,
                )
            )
        return pl.DataFrame(rows, schema=schema, orient="row")

    def report(self, path: str | os.PathLike[str] | None = None, command: str | None = None) -> Page | None:
        """Write the result as one HTML page for people, whole or not at all; needs the extra ``report``.

        Without a path the page is returned: text that a notebook shows as a page. It loads nothing from elsewhere.
        `command` is the shell command that gave this result, if there is one.
        """
        from plar.results.report.check_views import check_page
        from plar.results.report.pages import save_or_return

        return save_or_return(check_page(self, command), path)


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Check:
    """Make a result from what `Check.to_dict` returned."""
    try:
        result: Check = from_json(Check, saved)
        for name, is_right in _checks(result):
            if not is_right:
                raise TypeError(repr(name))
        check_settings(result.settings)
        return result
    except TypeError as error:
        raise TableError(f"{where} is not a saved check: {error} is missing or does not fit.") from None


def _checks(result: Check) -> Iterator[tuple[str, bool]]:
    """Whether each field goes with the others."""
    is_reduct = result.checked == "reduct"
    conditions = set(result.conditions)
    yield "checked", result.checked in KINDS
    yield "columns", all(map(_fits, result.columns)) and _is_each_once(one.column for one in result.columns)
    yield "preserves", is_reduct == (result.preserves is not None)
    for name, value in {"theta": result.theta, "theta_all": result.theta_all, "measure": result.measure}.items():
        yield name, is_reduct == (value is not None)
    yield "witness", (result.witness is not None) == (result.preserves is False)
    if result.witness is not None:
        yield "witness", _can_be(result.witness, result)
    yield "mending", result.mending is None or _mends(result.mending, result)
    yield "gone", conditions.isdisjoint(result.gone)
    for count in ("n_rows", "n_rows_then"):
        yield count, 0 <= getattr(result, count) <= MAX_OBJECTS
    news = (result.new_combinations, result.new_decisions, *(one.new_values for one in result.columns))
    yield "n_rows", all(one is None or 0 <= one.n <= one.n_rows <= result.n_rows for one in news)
    yield "stands", result.stands == _stands(result)
    fits = {len(result.intervals.get(name, ())) == len(points) + 1 for name, points in result.cuts.items()}
    yield "intervals", fits <= {True} and set(result.intervals) == set(result.cuts)


def _stands(result: Check) -> bool:
    """Whether the result stands, by its other fields."""
    if result.checked == "reduct":
        return bool(result.preserves) and all(one.state == THERE for one in result.columns)
    return all(one.replicates for one in result.tested)


def _fits(one: CheckedColumn) -> bool:
    is_tested = one.state == THERE and one.p_value is not None
    p_values = [p for p in (one.p_value, one.p_value_then) if p is not None]
    return (
        one.role in ROLES
        and one.state in STATES
        and all(0 <= p <= 1 for p in p_values)
        and (is_tested or not one.replicates)
    )


def _can_be(witness: Witness, result: Check) -> bool:
    """Whether a witness can be one of this table."""
    if not len(witness.row) == len(witness.other) == len(result.conditions):
        return False
    rows = zip(result.conditions, witness.row, witness.other, strict=True)
    differing = [name for name, value, other in rows if (type(value), value) != (type(other), other)]
    counts = [n_rows for _, n_rows in (*witness.decisions, *witness.other_decisions)]
    in_result = {one.column for one in result.columns}
    return (
        set(differing) == set(witness.columns)
        and bool(differing)
        and in_result.isdisjoint(differing)
        and bool(witness.decisions and witness.other_decisions)
        and min(counts) > 0
    )


def _mends(mending: Mending, result: Check) -> bool:
    others = set(result.conditions).difference(one.column for one in result.columns)
    return (
        result.preserves is False
        and set(mending.columns) <= others
        and _is_each_once(mending.columns)
        and 1 <= mending.at_least <= len(mending.columns)
    )


def _is_each_once(names: Any) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed)
