"""What the columns of a table say for certain about each decision: what `plar.approximations` returns."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from plar.coding.column_names import free_name
from plar.coding.row_limit import MAX_OBJECTS
from plar.errors import Parameter, ParameterError, TableError, invalid
from plar.matching.condition import ConditionValue
from plar.results.from_json import from_json
from plar.results.saved import check_settings, save, writable
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars

__all__ = ["Approximations", "Contradiction", "DecisionApproximation"]

#: the value of the decision; several, if there are several decision columns
DecisionKey: TypeAlias = ConditionValue | tuple[ConditionValue, ...]

#: how many contradictions a result holds, the largest: fewer if they have more counts, but at least the minimum
MAX_CONTRADICTIONS: Final = 1_000
MAX_COUNTS: Final = 100_000
MIN_CONTRADICTIONS: Final = 20


@dataclass(frozen=True, slots=True)
class DecisionApproximation:
    """What is known for certain about one decision; all numbers are rows, counted with their weights.

    Parameters
    ----------
    values : tuple of (str, int, float, bool or None)
        The decision: the value of each decision column; intervals of one that was cut are text.
    label : str
        The same in words.
    n_rows : int
        Rows with this decision.
    lower : int
        Rows that certainly have it: all rows that equal one of them in the columns have this decision.
    upper : int
        Rows that possibly have it: some row that equals them in the columns has this decision.
    boundary : int
        Rows that possibly, but not certainly have it: the difference.
    accuracy : float
        The lower approximation as a share of the upper one; 1 if both are empty.
    """

    values: tuple[ConditionValue, ...]
    label: str
    n_rows: int
    lower: int
    upper: int
    boundary: int
    accuracy: float

    @property
    def decision(self) -> DecisionKey:
        """The value of the decision, or a tuple of them if there are several decision columns."""
        return self.values[0] if len(self.values) == 1 else self.values


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rows that are equal in all columns, and have different decisions.

    Parameters
    ----------
    values : tuple of (str, int, float, bool or None)
        Their values of the columns; intervals of columns that were cut are text.
    n_rows : int
        How many they are, counted with their weights.
    counts : tuple of (int, int)
        Pairs of a decision, by its place in the list of decisions, and of how many of these rows have it.
    """

    values: tuple[ConditionValue, ...]
    n_rows: int
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Approximations:
    """The approximations of all decisions by some columns; what `plar.approximations` returns.

    Parameters
    ----------
    attributes, decision : tuple of str
        The columns that are known, and the decision columns.
    quality : float
        The share of rows whose decision is certain: Σ lower / rows, −Θ_PR(D|B). 1 if there are no rows.
    by_decision : tuple of DecisionApproximation
        In the order of the decisions; see `decisions`.
    n_objects, n_granules : int
        Rows, counted with their weights, and how many different ones there are, in the columns and the decision.
    n_classes : int
        Combinations of values that the columns have.
    n_contradictions : int
        How many of these have rows of several decisions.
    largest_contradictions : tuple of Contradiction
        Those with the most rows, up to a thousand; see `contradictions`.
    cuts : mapping of str to tuple of float
        Cut points of the columns that were cut into bins, also of the decision; times in seconds.
    intervals : mapping of str to tuple of str
        Their bins in words.
    notes : tuple of str
        What is to be known about the result, a line each.
    engine : str
    source : str or None
        The path of the table, if it was read from one.
    settings : mapping of str to object
        The options that the result depends on.
    seconds : mapping of str to float
        By phase: read, granulate, approximate.

    Examples
    --------
    >>> import plar
    >>> weather = {"outlook": ["sun", "sun", "rain", "rain"], "play": ["yes", "yes", "yes", "no"]}
    >>> a = plar.approximations(weather, "play")
    >>> a.quality, a.decisions["yes"].lower, a.decisions["yes"].upper, a.decisions["no"].accuracy
    (0.5, 2, 4, 0.0)
    """

    attributes: tuple[str, ...]
    decision: tuple[str, ...]
    quality: float
    by_decision: tuple[DecisionApproximation, ...]
    n_objects: int
    n_granules: int
    n_classes: int
    n_contradictions: int
    largest_contradictions: tuple[Contradiction, ...]
    cuts: Mapping[str, tuple[float, ...]]
    intervals: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    engine: str
    source: str | None
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.decision))
        return f"<Approximations: {len(self.by_decision)} decisions of {names}, quality {self.quality:.4g}>"

    def __str__(self) -> str:
        """A summary for people."""
        from plar.results.report.approximation_text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        from plar.results.report.approximation_views import notebook_table

        return notebook_table(self)

    @property
    def decisions(self) -> dict[DecisionKey, DecisionApproximation]:
        """The approximations of each decision, by its value; by a tuple if there are several decision columns."""
        return {approximation.decision: approximation for approximation in self.by_decision}

    @property
    def n_certain(self) -> int:
        """Rows whose decision is certain: those in a lower approximation."""
        return sum(approximation.lower for approximation in self.by_decision)

    @property
    def n_undecided(self) -> int:
        """Rows that equal rows of other decisions in all columns."""
        return self.n_objects - self.n_certain

    def to_frame(self) -> polars.DataFrame:
        """One row for each decision, as a polars frame.

        Columns: ``decision`` (in words), ``rows``, ``lower``, ``upper``, ``boundary`` and ``accuracy``.
        """
        schema = {
            "decision": pl.String,
            "rows": pl.Int64,
            "lower": pl.Int64,
            "upper": pl.Int64,
            "boundary": pl.Int64,
            "accuracy": pl.Float64,
        }
        rows = [(a.label, a.n_rows, a.lower, a.upper, a.boundary, a.accuracy) for a in self.by_decision]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def contradictions(self, limit: int | None = MIN_CONTRADICTIONS) -> polars.DataFrame:
        """Rows that are equal in all columns and have different decisions, as a polars frame: most rows first.

        A row of the frame is a combination of values. Its columns are `attributes`, then ``rows``, and for each
        decision among them how many of these rows have it. Equally many rows are in the order of their values. There
        are `n_contradictions` of them, of which the largest are kept; None asks for all that are.

        Examples
        --------
        >>> import plar
        >>> weather = {"outlook": ["sun", "sun", "rain", "rain"], "play": ["yes", "yes", "yes", "no"]}
        >>> plar.approximations(weather, "play").contradictions().rows(named=True)
        [{'outlook': 'rain', 'rows': 2, 'play = no': 1, 'play = yes': 1}]
        """
        shown = self.largest(limit)
        columns: dict[str, Any] = {}
        for place, name in enumerate(self.attributes):
            columns[name] = _series([contradiction.values[place] for contradiction in shown])
        n_rows = [contradiction.n_rows for contradiction in shown]
        columns[free_name("rows", columns)] = pl.Series(n_rows, dtype=pl.Int64)
        target = ", ".join(self.decision)
        counts = [dict(contradiction.counts) for contradiction in shown]
        for number in sorted({number for of_one in counts for number in of_one}):
            label = writable(f"{target} = {self.by_decision[number].label}")
            columns[free_name(label, columns)] = [of_one.get(number, 0) for of_one in counts]
        return pl.DataFrame(columns)

    def largest(self, limit: int | None = MIN_CONTRADICTIONS) -> tuple[Contradiction, ...]:
        """The same contradictions as `Contradiction` objects."""
        kept = self.largest_contradictions
        if limit is None:
            return kept
        if isinstance(limit, bool) or not hasattr(limit, "__index__") or operator.index(limit) < 0:
            raise invalid("limit", "a whole number from 0 on", limit, or_none=True)
        if limit > len(kept) and len(kept) < self.n_contradictions:
            raise ParameterError(
                Parameter("limit"),
                f" is {limit:,}, but of {self.n_contradictions:,} contradictions only the {len(kept):,} largest are "
                "kept. Ask for these, or mark all rows with Approximations.mark.",
            )
        return kept[:limit]

    def mark(self, data: Any, y: Any = None) -> Any:
        """Say of every row whether its decision is certain: the table with two columns more.

        ``approximation`` is "certain" or "undecided", and ``possible_decisions`` has the decisions of all rows that
        equal it in the columns, joined by " | ". They are judged by the rows of `data` themselves, with the columns,
        options and cut points of this result. Rows that the options drop, or whose weight is 0, have neither.

        A Spark DataFrame becomes a DataFrame, which its tasks make when it is needed, maybe in another order of rows;
        any other table becomes a polars frame. `y` are the labels, if they were given beside the table.

        Examples
        --------
        >>> import plar
        >>> weather = {"outlook": ["sun", "rain", "rain"], "play": ["yes", "yes", "no"]}
        >>> plar.approximations(weather, "play").mark(weather)["possible_decisions"].to_list()
        ['yes', 'no | yes', 'no | yes']
        """
        from plar.results.marking import mark

        with SafeInterrupts():
            return mark(self, data, y)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; the keys are the names of the fields, and `kind`."""
        return {"kind": "approximations", **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)


def _series(values: Sequence[ConditionValue]) -> polars.Series:
    """Values as a column of their type; as text if they have several."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        try:
            return pl.Series(values)
        except (OverflowError, pl.exceptions.PolarsError):  # numbers of more than 64 bits
            pass
    return pl.Series([None if value is None else writable(str(value)) for value in values], dtype=pl.String)


def make_decision(
    values: Sequence[ConditionValue], label: str, n_rows: int, lower: int, upper: int
) -> DecisionApproximation:
    """The approximations of a decision, with what follows from their sizes."""
    return DecisionApproximation(
        values=tuple(values),
        label=label,
        n_rows=n_rows,
        lower=lower,
        upper=upper,
        boundary=upper - lower,
        accuracy=lower / upper if upper else 1.0,
    )


def quality_of(by_decision: Sequence[DecisionApproximation], n_objects: int) -> float:
    """The share of rows whose decision is certain."""
    return sum(approximation.lower for approximation in by_decision) / n_objects if n_objects else 1.0


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Approximations:
    """Make a result from what `Approximations.to_dict` returned."""
    try:
        result: Approximations = from_json(Approximations, saved)
        for name, is_right in _checks(result):
            if not is_right:
                raise TypeError(repr(name))
        check_settings(result.settings)
        return result
    except TypeError as error:
        raise TableError(f"{where} is not a saved set of approximations: {error} is missing or does not fit.") from None


def _checks(result: Approximations) -> Iterator[tuple[str, bool]]:
    """Whether each field goes with the others."""
    n_objects = result.n_objects
    yield "decision", len(result.decision) > 0
    yield "by_decision", all(_fits(approximation, result) for approximation in result.by_decision)
    yield "n_objects", n_objects == sum(approximation.n_rows for approximation in result.by_decision)
    yield "quality", result.quality == quality_of(result.by_decision, n_objects)
    yield "n_contradictions", len(result.largest_contradictions) <= result.n_contradictions <= result.n_classes
    yield "n_granules", result.n_classes <= result.n_granules <= n_objects
    yield "largest_contradictions", all(_is_possible(one, result) for one in result.largest_contradictions)
    fits = {len(result.intervals.get(name, ())) == len(points) + 1 for name, points in result.cuts.items()}
    yield "intervals", fits <= {True} and set(result.intervals) == set(result.cuts)


def _fits(approximation: DecisionApproximation, result: Approximations) -> bool:
    """Whether the numbers of a decision can be right."""
    one = approximation
    if not 0 <= one.lower <= one.n_rows <= one.upper <= result.n_objects <= MAX_OBJECTS:
        return False
    again = make_decision(one.values, one.label, one.n_rows, one.lower, one.upper)
    return one == again and len(one.values) == len(result.decision)


def _is_possible(contradiction: Contradiction, result: Approximations) -> bool:
    """Whether a contradiction can be one of this table."""
    numbers = [number for number, _ in contradiction.counts]
    counts = [n_rows for _, n_rows in contradiction.counts]
    is_known = all(0 <= number < len(result.by_decision) for number in numbers)
    return (
        is_known
        and len(set(numbers)) == len(numbers) > 1
        and min(counts) > 0
        and sum(counts) == contradiction.n_rows
        and len(contradiction.values) == len(result.attributes)
    )
