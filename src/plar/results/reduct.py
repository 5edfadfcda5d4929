"""The result: the chosen columns, how they were found, and what is proven about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from plar.errors import TableError
from plar.options import DEFAULT_ALPHA, FormatKwargs
from plar.results.from_json import from_json
from plar.results.proof import Proof
from plar.results.saved import check_settings, save, writable
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from plar.engines.base import Engine
    from plar.measures import Measure
    from plar.results.report.pages import Page

__all__ = ["Certificate", "Change", "Reduct", "Step", "from_dict"]


#: what `to_frame` calls the reasons why columns are chosen, beside steps
_ROLES = {"core": "core", "asked for": "included", "kept": "kept"}


@dataclass(frozen=True, slots=True)
class Step:
    """One greedy step. Under SCE its numbers come from rounded logarithms and are good to 2.4e-10 nats.

    Parameters
    ----------
    attribute : str
        The column added.
    theta : float
        Θ(D|R) with it.
    significance : float
        Its gain: how much it lowered Θ(D|R) (the outer significance).
    ties : tuple of str
        All candidates that were as good, in table order; the first was taken. With `alpha`, those tested before it,
        which were no better than chance, are not listed.
    candidates : mapping of str to float
        The gain of every candidate.
    active : int
        Rows still undecided: the chosen columns do not yet determine their decision as well as all columns do.
    p_value : float or None
        How likely the gain is by chance, times the number of candidates and at most 1; None in results of earlier
        versions.
    seconds : float
    """

    attribute: str
    theta: float
    significance: float
    ties: tuple[str, ...]
    candidates: Mapping[str, float]
    active: int
    p_value: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is proven about a reduct, exactly, for every measure.

    Parameters
    ----------
    preserved : bool
        Θ(D|R) = Θ(D|C): nothing is lost.
    redundant : tuple of str
        Columns that are individually removable: without any one of them Θ(D|R) stays the same.
    minimal : bool
        No column is removable.
    """

    preserved: bool
    redundant: tuple[str, ...]
    minimal: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What `Reduct.update` changed.

    Parameters
    ----------
    before : tuple of str
        The columns of the old reduct.
    added : tuple of str
        Columns that it lacked, in the order of the new one.
    dropped : tuple of str
        Columns that are no longer needed, or no longer there, in their old order.
    """

    before: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Reduct:
    """The columns that keep all information about the decision; what `plar.reduce` returns.

    Parameters
    ----------
    attributes : tuple of str
        The chosen columns: the core in table order, then as selected; may be empty. After an update the old ones
        first.
    core : tuple of str
        The columns that are in every reduct.
    core_significances : mapping of str to float
        The gain of each of them: how much Θ(D|C) would rise without it (the inner significance).
    conditions, decision : tuple of str
        The columns to choose from, and the target.
    measure, engine : str
    theta, theta_all : float
        Θ(D|R) and Θ(D|C).
    complete, consistent : bool
        Whether the search met its stop rule; whether rows that are equal in all columns always share a decision.
    steps : tuple of Step
    certificate : Certificate
    n_objects, n_granules, n_decisions : int
        Rows counted with their weights, distinct rows, distinct decisions.
    n_combinations : int or None
        Combinations of values that the chosen columns have (classes of U/R). None in results of earlier versions.
    cardinalities, missing : mapping of str to int
        Distinct values of each column; rows without a value, for columns, and the decision, where there are some.
    cuts : mapping of str to tuple of float
        Cut points of the columns that `bins` cut: value x is in the bin of the first cut point ≥ x.
    source : str or None
        The path of the table, if it was read from one.
    settings : mapping of str to object
        The options of `plar.reduce` that the result depends on, as given.
    seconds : mapping of str to float
        By phase: read, granulate, core, search, certificate.
    rejected : mapping of str to float
        With `alpha`: the p-value of each candidate, if the search stopped because none of them beats chance.
    bounds : (int, int) or None
        With ``search="smallest"``: the proven least cost of any reduct, and the cost of this one.
    change : Change or None
        What was added and dropped, if this is an updated reduct; see `update`.
    equivalent : tuple of tuples of str, or None
        Groups of columns that are equal up to the names of their values, so that any one can replace the others.
        Columns of more than 65,536 values, and those in which the bins found no cut, are not compared. None unless
        asked for; not part of the JSON.
    proof : Proof or None
        With ``search="smallest"``: why no reduct is cheaper, for `plar.verify`; not part of the JSON.

    Examples
    --------
    >>> import plar
    >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": ["N", "Y", "Y"]}, "d", measure="PR")
    >>> r.attributes, r.certificate.preserved, r.certificate.minimal
    (('b',), True, True)
    >>> r
    <Reduct: 1 of 2 columns by PR, preserved, minimal>
    """

    attributes: tuple[str, ...]
    core: tuple[str, ...]
    core_significances: Mapping[str, float]
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    measure: str
    engine: str
    theta: float
    theta_all: float
    complete: bool
    consistent: bool
    steps: tuple[Step, ...]
    certificate: Certificate
    n_objects: int
    n_granules: int
    n_decisions: int
    n_combinations: int | None
    cardinalities: Mapping[str, int]
    missing: Mapping[str, int]
    cuts: Mapping[str, tuple[float, ...]]
    rejected: Mapping[str, float]
    source: str | None
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]
    bounds: tuple[int, int] | None = None
    change: Change | None = None
    equivalent: tuple[tuple[str, ...], ...] | None = field(default=None, compare=False)
    proof: Proof | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        words = [f"{len(self.attributes)} of {len(self.conditions)} columns by {self.measure}"]
        if self.certificate.preserved:
            words.append("preserved")
        if self.certificate.minimal:
            words.append("minimal")
        return f"<Reduct: {', '.join(words)}>"

    def __str__(self) -> str:
        """A summary for people."""
        from plar.results.report.views import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        from plar.results.report.views import notebook_table

        return notebook_table(self)

    @property
    def n_beyond_chance(self) -> int | None:
        """How many steps, counted from the first, beat chance.

        The level is `alpha`, by default 0.05. None in results of earlier versions.
        """
        if any(step.p_value is None for step in self.steps):
            return None
        level = self.settings.get("alpha") or DEFAULT_ALPHA
        for i, step in enumerate(self.steps):
            if step.p_value is not None and step.p_value > level:
                return i
        return len(self.steps)

    @property
    def objects_per_combination(self) -> float | None:
        """Rows for each combination of the chosen values; if there are few, new rows often show new combinations."""
        return self.n_objects / self.n_combinations if self.n_combinations else None

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; the keys are the names of the fields, without `equivalent` and `proof`."""
        fields = asdict(replace(self, proof=None))
        return {name: value for name, value in fields.items() if name not in ("equivalent", "proof")}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)

    def to_frame(self) -> polars.DataFrame:
        """One row for each column of the table, as a polars frame.

        Columns: ``column``, ``rank`` from 1 on for the chosen ones, ``role`` (core, selected, included, in an update
        kept, or why it is not chosen), ``like``, the chosen column that it could stand in for, ``gain``, and
        ``p_value``. Unknown numbers are null.

        Examples
        --------
        >>> import plar
        >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [7, 7, 7, 7], "d": [0, 1, 1, 0]}
        >>> plar.reduce(table, "d").to_frame().select("column", "rank", "role").rows()
        [('a', 1, 'core'), ('b', 2, 'core'), ('c', None, 'constant')]
        """
        from plar.results.report.ranking import ranked

        rank_of = {name: rank for rank, name in enumerate(self.attributes, 1)}
        p_values = {**self.rejected, **{step.attribute: step.p_value for step in self.steps}}
        rows = []
        for column in sorted(ranked(self), key=lambda column: column.place):
            role = column.role.removesuffix(", removable")
            if column.name in rank_of:
                role = _ROLES.get(role, "selected")
            of = None if column.of is None else writable(column.of)
            rows.append(
                (writable(column.name), rank_of.get(column.name), role, of, column.gain, p_values.get(column.name))
            )
        kinds = [pl.String, pl.Int64, pl.String, pl.String, pl.Float64, pl.Float64]
        names = ["column", "rank", "role", "like", "gain", "p_value"]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def report(self, path: str | os.PathLike[str] | None = None, command: str | None = None) -> Page | None:
        """Write the result as one HTML page for people, whole or not at all; needs the extra ``report``.

        Without a path the page is returned: text that a notebook shows as a page. It loads nothing from
        elsewhere, and shows the chosen columns, how they were found, what is proven about them, and every
        candidate of every step. `command` is the shell command that gave this result; by default one is made
        from `source` and `settings`.
        """
        from plar.results.report.pages import page, save_or_return

        return save_or_return(page(self, command), path)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Figure:
        """Draw how Θ(D|R) fell, and the gain of each chosen column; needs the extra ``report``.

        Both panels are drawn on two `ax`, with one the first only, by default on a new figure. A notebook shows it;
        elsewhere save it with ``savefig``, since pyplot does not know it.

        Examples
        --------
        >>> import plar
        >>> r = plar.reduce({"a": [0, 0, 1], "b": [0, 1, 1], "d": [0, 1, 1]}, "d")
        >>> [panel.get_title(loc="left") for panel in r.plot().axes]
        ['Uncertainty left', '1 of 2 columns chosen']
        """
        from plar.results.plot import plot

        return plot(self, ax)

    def update(
        self,
        data: Any,
        y: Any = None,
        *,
        minimal: bool = True,
        measure: Measure | None = None,
        engine: str | Engine = "auto",
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        time_limit: float | str | None = None,
        verbose: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
        on_step: Callable[[Step], None] | None = None,
        **reading: Unpack[FormatKwargs],
    ) -> Reduct:
        """Find a reduct of new rows, or of more or fewer, that keeps as many of these columns as it can.

        It begins with the columns that are still there, and adds what is missing: the rest of the core, then the best
        column, step by step. At the end it drops what is no longer needed, the last added first, the oldest columns
        last. All columns that are looked at are those that this reduct was chosen from (`conditions`), as far as they
        are there. Whatever ended the old search early (`tolerance`, `alpha`, `max_attributes`), the new reduct keeps
        everything; those of `include` stay in it, and those of `exclude` out.

        Parameters
        ----------
        data : Granules, or any table that `plar.reduce` takes
            With `Granules.merge` and `Granules.subtract` rows come and go without reading the others again.
        y : (n,) array_like, optional
            The decision beside the data, if it was given so before.
        minimal : bool
            Whether to drop columns that can go without a loss.
        measure : Measure, optional
            The measure of this reduct, if it is not one of plar's.
        engine, n_jobs, memory_limit, time_limit, verbose, progress, on_step
            As for `plar.reduce`.
        **reading
            The options of `plar.reduce` that say how a table is read (header, separator, decimal, encoding, numeric,
            na, missing, missing_decision, weights); by default as for this reduct. Columns are cut where they were.

        Returns
        -------
        Reduct
            Its `change` says what was added and dropped.

        Examples
        --------
        >>> import plar
        >>> may = {"sky": ["sun", "rain", "sun"], "wind": [0, 0, 1], "play": ["yes", "no", "yes"]}
        >>> old = plar.reduce(may, "play")
        >>> june = plar.granulate({"sky": ["sun", "sun"], "wind": [0, 1], "play": ["yes", "no"]}, "play")
        >>> new = old.update(june.merge(plar.granulate({"sky": ["rain"], "wind": [0], "play": ["no"]}, "play")))
        >>> old.attributes, new.attributes, new.change.added
        (('sky',), ('sky', 'wind'), ('wind',))
        """
        # a search knows its results, and not the other way round: it is looked up by name, like an engine
        search = import_module("plar.replication.update")
        updated: Reduct = search.update(
            self,
            data,
            y,
            minimal,
            measure,
            engine,
            n_jobs,
            memory_limit,
            time_limit,
            verbose,
            progress,
            on_step,
            reading,
        )
        return updated

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Select the chosen columns of any table that has them, and the decision if it is there.

        Files are read with the options of `plar.reduce`: header, separator, decimal, encoding, na.

        Parameters
        ----------
        data : table or path
        output : {"values", "bins"}
            The values as they are; or, for the columns in `cuts`, bin numbers from 0; missing stays missing.

        Returns
        -------
        A table of the same kind (a polars frame for a path)
            All rows, the chosen columns in table order, then the decision.
        """
        from plar.input.tables.table import select_columns
        from plar.options import ReadOptions, wants_bins

        reading = ("header", "separator", "decimal", "encoding", "na")
        options = ReadOptions(**{name: self.settings[name] for name in reading if name in self.settings})
        cuts = self.cuts if wants_bins(output) else {}
        with SafeInterrupts():
            return select_columns(data, self.attributes, self.decision, cuts, options)


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Reduct:
    """Make a result from what `Reduct.to_dict` returned."""
    try:
        reduct: Reduct = from_json(Reduct, _completed(saved))
        _check_names(reduct)
        check_settings(reduct.settings)
        return reduct
    except TypeError as error:
        raise TableError(f"{where} is not a saved reduct: {error} is missing or does not fit.") from None


def _check_names(reduct: Reduct) -> None:
    """Refuse columns that are not among the conditions, and steps whose column was no candidate."""
    names = {*reduct.attributes, *reduct.core, *reduct.certificate.redundant}
    if reduct.change is not None and not _is_change_of(reduct.attributes, reduct.change):
        raise TypeError("'change'")
    for step in reduct.steps:
        names.update((step.attribute, *step.ties, *step.candidates))
        if step.attribute not in step.candidates:
            raise TypeError("'attributes'")
    if not names <= set(reduct.conditions):
        raise TypeError("'attributes'")


def _is_change_of(attributes: Sequence[str], change: Change) -> bool:
    """Whether a change leads to these columns."""
    added = tuple(name for name in attributes if name not in change.before)
    dropped = tuple(name for name in change.before if name not in attributes)
    return change.added == added and change.dropped == dropped


def _completed(saved: Any) -> Any:
    """Add what results of earlier versions lack."""
    if not isinstance(saved, Mapping):
        return saved
    steps = saved.get("steps")
    if isinstance(steps, (list, tuple)):
        steps = [{"p_value": None, **step} if isinstance(step, Mapping) else step for step in steps]
    defaults: dict[str, Any] = {
        "n_combinations": None,
        "rejected": {},
        "bounds": None,
        "change": None,
        "equivalent": None,
        "proof": None,
        "n_decisions": saved.get("n_classes"),
    }
    return {**defaults, **saved, "steps": steps}
