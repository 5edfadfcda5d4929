"""The columns that predict the target: what `plar.select` returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plar.errors import TableError, UnknownNameError, printable, unknown_name
from plar.options.table import TARGET_TYPES
from plar.results.from_json import from_json
from plar.results.saved import check_settings, save, writable
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from plar.results.report.pages import Page

__all__ = ["Rejection", "Selection", "SelectionStep", "TargetAtValue", "TargetByValue"]

#: why candidates are not selected, in a few words
NOT_SHOWN: Final = "not shown to beat chance"
REDUNDANT: Final = "nothing more beside others"
UNDECIDED: Final = "not decided"


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """One column that was selected, and why.

    Parameters
    ----------
    column : str
    excess : float
        How much it says about the target beyond chance: its gain in Gini impurity, summed over the rows, minus the gain
        that a shuffled target would give; the least over the sets that were compared. For a target of numbers, in the
        place of the impurity, the squared deviations of their ranks, from 0 to 1, from the mean.
    share : float
        The excess as a share of what was left to say there, from 0 to 1.
    p_value : float
        How likely it would say as much by chance: the largest over the sets.
    adjusted : float
        The p-value that decided: times the number of candidates left; in the second part that without any other
        column, times the number of all candidates. At most `alpha`.
    given : tuple of str
        The selected columns that were held fixed where the p-value is largest; empty where none was.
    seconds : float
    """

    column: str
    excess: float
    share: float
    p_value: float
    adjusted: float
    given: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a candidate was not selected.

    Parameters
    ----------
    p_value : float
        How likely it would say as much by chance.
    given : tuple of str
        The selected columns beside which it says nothing more; empty if it was not shown to beat chance by itself.
    """

    p_value: float
    given: tuple[str, ...]


#: what is said of a target of numbers
QUARTILES = ("lower quartile", "median", "upper quartile")


@dataclass(frozen=True, slots=True)
class TargetAtValue:
    """The target in the rows that have one value of a column.

    Parameters
    ----------
    value : str
        The value, or the interval of numbers; "missing" for none.
    rows : int
        Rows that have it, counted with their weights.
    numbers : tuple of float or None
        The share of each class; for a target of numbers its quartiles. None where there is none.
    """

    value: str
    rows: int
    numbers: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TargetByValue:
    """The target by the values of one column; see `Selection.shares`.

    Parameters
    ----------
    heads : tuple of str
        What the numbers of each value are: the classes, of many the most frequent ones and all others together; or the
        quartiles.
    values : tuple of TargetAtValue
        The most frequent values, in their order, then all others together, if there are any. Empty where the target
        is the same in all rows.
    n_others : int
        How many values the last one stands for; 0 if all are shown.
    """

    heads: tuple[str, ...]
    values: tuple[TargetAtValue, ...]
    n_others: int


class ColumnFacts(NamedTuple):
    """What is known of a column of the table; see `Selection.to_frame`."""

    column: str
    rank: int | None
    role: str
    share_alone: float | None
    share: float | None
    p_value: float | None
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """The columns that predict the target, the best first; what `plar.select` returns.

    Parameters
    ----------
    columns : tuple of str
        The selected columns: those of `include`, then as they were selected.
    included : tuple of str
        Those that were included without a test.
    steps : tuple of SelectionStep
        The others, in their order.
    rejected : mapping of str to Rejection
        The candidates that were decided against. Those neither here nor selected were not decided: the search stopped
        at `max_columns` or a limit, or looks only at all selected columns together (``given="all"``).
    left_out : mapping of str to str
        Columns that were no candidates, each with the reason.
    alone : mapping of str to float
        What each candidate says by itself, as a share of what there is to say about the target.
    by_values : mapping of str to TargetByValue
        The target by the values of each selected column; `shares` shows one as a table.
    conditions, target : tuple of str
        The columns to choose from, and the target.
    alpha : float
    given : {"each", "all"}
    complete : bool
        False if the time limit was reached, or Ctrl-C stopped the search.
    n_rows : int
        Rows with a target, counted with their weights.
    target_type : {"classes", "numbers"}
        What the target was taken for: classes, or numbers, whose ranks are predicted.
    n_classes : int or None
        Different values of the target, if these are classes.
    missing : mapping of str to int
        Rows without a value, for columns where there are some.
    cuts : mapping of str to tuple of float
        Cut points of the numbers that were compared in bins: value x is in the bin of the first cut point ≥ x.
    notes : tuple of str
        What was done without being asked for, a line each: rows left out, columns cut, and so on.
    engine : str
    source : str or None
        The path of the table, if it was read from one.
    settings : mapping of str to object
        The options that the result depends on.
    seconds : mapping of str to float
        By phase: read, granulate, select.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(3)]
    >>> target = [a + 2 * b for a, b in zip(bits[0], bits[1])]
    >>> s = plar.select({"a": bits[0], "b": bits[1], "copy": bits[1], "noise": bits[2], "t": target}, "t")
    >>> s.columns, s.rejected["copy"].given, s.rejected["noise"].given
    (('a', 'b'), ('b',), ())
    """

    columns: tuple[str, ...]
    included: tuple[str, ...]
    steps: tuple[SelectionStep, ...]
    rejected: Mapping[str, Rejection]
    left_out: Mapping[str, str]
    alone: Mapping[str, float]
    by_values: Mapping[str, TargetByValue]
    conditions: tuple[str, ...]
    target: tuple[str, ...]
    alpha: float
    given: str
    complete: bool
    n_rows: int
    target_type: str
    n_classes: int | None
    missing: Mapping[str, int]
    cuts: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...]
    engine: str
    source: str | None
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        return f"<Selection: {len(self.columns)} of {len(self.conditions)} columns>"

    def __str__(self) -> str:
        """A summary for people."""
        from plar.results.report.selection_text import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; the keys are the names of the fields, and `kind`."""
        return {"kind": "selection", **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)

    def to_frame(self) -> polars.DataFrame:
        """One row for each column of the table, as a polars frame.

        Columns: ``column``, ``rank`` from 1 on for the selected ones, ``role`` (selected, included, rejected,
        left out, undecided), ``share_alone`` of what there is to say that it says by itself, ``share`` at its step,
        ``p_value``, and ``reason`` in words. Unknown numbers are null.
        """
        kinds = [pl.String, pl.Int64, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.String]
        schema = dict(zip(ColumnFacts._fields, kinds, strict=True))
        rows = [
            fact._replace(column=writable(fact.column), reason=writable(fact.reason)) for fact in self.column_facts()
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def column_facts(self) -> list[ColumnFacts]:
        """What is known of each column of the table, in its order; `to_frame` shows it."""
        step_of = {step.column: step for step in self.steps}
        rank_of = {name: rank for rank, name in enumerate(self.columns, 1)}
        facts = []
        for name in self.conditions:
            step = step_of.get(name)
            tested = step or self.rejected.get(name)
            fact = ColumnFacts(
                column=name,
                rank=rank_of.get(name),
                role=self._role(name),
                share_alone=self.alone.get(name),
                share=None if step is None else step.share,
                p_value=None if tested is None else tested.p_value,
                reason=self._reason(name),
            )
            facts.append(fact)
        return facts

    def shares(self, column: str) -> polars.DataFrame:
        """The target by the values of a selected column, as a polars frame.

        A row for each value, or interval of numbers: ``value``, ``rows``, and the share of each class, or, for a target
        of numbers, its quartiles. At most 50 values have a row, the most frequent ones, and at most 10 classes a
        column; the last row or column then says how many others it stands for.

        Examples
        --------
        >>> import plar
        >>> table = {"a": [i % 2 for i in range(80)], "t": ["yes" if i % 2 else "no" for i in range(80)]}
        >>> plar.select(table, "t").shares("a").rows()
        [('0', 40, 1.0, 0.0), ('1', 40, 0.0, 1.0)]
        """
        if column not in self.by_values:
            if column in self.conditions:
                selected = ", ".join(self.columns) or "none"
                raise UnknownNameError(f"Column {column!r} was not selected. The selected columns are: {selected}.")
            raise unknown_name("selected column", column, self.columns)
        by_value = self.by_values[column]
        schema: dict[str, Any] = {"value": pl.String, "rows": pl.Int64}
        for head in by_value.heads:
            name = writable(head)
            while name in schema:
                name += "_"
            schema[name] = pl.Float64
        rows = [(writable(line.value), line.rows, *line.numbers) for line in by_value.values]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _role(self, name: str) -> str:
        """What became of a column."""
        if name in self.included:
            return "included"
        if name in self.columns:
            return "selected"
        if name in self.rejected:
            return "rejected"
        return "left out" if name in self.left_out else "undecided"

    def _reason(self, name: str) -> str:
        """Why that became of a column."""
        if name in self.included:
            return "included without a test"
        if name in self.columns:
            return "says more than chance"
        rejection = self.rejected.get(name)
        if rejection is None:
            return self.left_out.get(name, "the search stopped before")
        if rejection.given:
            return f"says nothing more beside {', '.join(map(printable, rejection.given))}"
        return NOT_SHOWN

    def report(self, path: str | os.PathLike[str] | None = None, command: str | None = None) -> Page | None:
        """Write the result as one HTML page for people, whole or not at all; needs the extra ``report``.

        Without a path the page is returned: text that a notebook shows as a page. It loads nothing from elsewhere.
        `command` is the shell command that gave this result; by default one is made from `source` and `settings`.
        """
        from plar.results.report.pages import save_or_return, selection_page

        return save_or_return(selection_page(self, command), path)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw what each selected column says, in the order of their selection; needs the extra ``report``.

        By default on a new figure. A notebook shows it; elsewhere save it with ``savefig``, since pyplot does not know
        it.

        Examples
        --------
        >>> import plar
        >>> bits = [[i >> j & 1 for i in range(256)] for j in range(3)]
        >>> s = plar.select({"a": bits[0], "noise": bits[2], "t": bits[0]}, "t")
        >>> [panel.get_title(loc="left") for panel in s.plot().axes]
        ['1 of 2 columns selected for t']
        """
        from plar.results.plot_selection import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        from plar.results.report.selection_views import notebook_table

        return notebook_table(self)

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Take the selected columns of a table that has them, and the target if it is there; see `Reduct.transform`."""
        from plar.input.tables.table import select_columns
        from plar.options import ReadOptions, wants_bins

        reading = ("header", "separator", "decimal", "encoding", "na")
        options = ReadOptions(**{name: self.settings[name] for name in reading if name in self.settings})
        cuts = self.cuts if wants_bins(output) else {}
        with SafeInterrupts():
            return select_columns(data, self.columns, self.target, cuts, options)


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Selection:
    """Make a result from what `Selection.to_dict` returned."""
    try:
        selection: Selection = from_json(Selection, saved)
        _check(selection)
        check_settings(selection.settings)
        return selection
    except TypeError as error:
        raise TableError(f"{where} is not a saved selection: {error} is missing or does not fit.") from None


def _check(selection: Selection) -> None:
    """Refuse columns that are not where they must be, and numbers of other classes; TypeError names the field."""
    columns = set(selection.columns)
    conditions = set(selection.conditions)
    besides: set[str] = set().union(*(step.given for step in selection.steps))
    besides.update(*(rejection.given for rejection in selection.rejected.values()))
    fits = {
        "columns": columns <= conditions and len(columns) == len(selection.columns),
        "steps": (*selection.included, *(step.column for step in selection.steps)) == selection.columns
        and besides <= columns,
        "rejected": conditions.difference(columns) >= selection.rejected.keys(),
        "left_out": conditions.difference(columns) >= selection.left_out.keys(),
        "alone": conditions >= selection.alone.keys(),
        "by_values": columns == selection.by_values.keys() and all(map(_fits, selection.by_values.values())),
        "given": selection.given in ("each", "all"),
        "target_type": selection.target_type in TARGET_TYPES,
    }
    for name, is_right in fits.items():
        if not is_right:
            raise TypeError(repr(name))


def _fits(by_value: TargetByValue) -> bool:
    return all(len(line.numbers) == len(by_value.heads) for line in by_value.values)
