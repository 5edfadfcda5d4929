"""The reduct of new rows that keeps as much of an old one as it can: `Reduct.update`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from plar.engines.base import Engine, GranuleSet
from plar.errors import Given, ParameterError, TableError, shown_names
from plar.measures import MEASURES, Measure, as_measure
from plar.options import FormatKwargs, ReadOptions, RunOptions, SearchOptions
from plar.replication.subject import columns_there, first_reading, opened, reading_of, subject_of, without_columns
from plar.results.proof import Proof
from plar.results.reduct import Certificate, Change, Reduct
from plar.search.greedy import GreedySearch
from plar.session.progress import reporting
from plar.session.reporter import OnStep, Progress
from plar.session.session import Session


class UpdateSearch(GreedySearch):
    """A greedy search that begins with the columns of an old reduct, in their order, and with the rest of the core."""

    def __init__(self, session: Session, measure: Measure, options: SearchOptions, old: Reduct) -> None:
        super().__init__(session, measure, options)
        self._old = old

    def find(self, granules: GranuleSet | None = None) -> Reduct:
        """Find the reduct; columns that the old one had to leave out stay out."""
        excluded = set(self._old.settings.get("exclude") or ())
        self.excluded = frozenset(a for a, name in enumerate(self.granules.conditions) if name in excluded)
        return super().find(granules)

    def _first_attributes(self) -> list[int]:
        """The old columns that are there, then what the core has beside them."""
        there = set(self.granules.conditions)
        old = self.granules.positions([name for name in self._old.attributes if name in there])
        return old + [a for a in self.core if a not in old]

    def result_with(
        self,
        chosen: Sequence[int],
        theta: float,
        certificate: Certificate,
        bounds: tuple[int, int] | None = None,
        proof: Proof | None = None,
    ) -> Reduct:
        """The result, with what changed."""
        reduct = super().result_with(chosen, theta, certificate, bounds, proof)
        before = self._old.attributes
        change = Change(
            before=before,
            added=tuple(name for name in reduct.attributes if name not in before),
            dropped=tuple(name for name in before if name not in reduct.attributes),
        )
        settings = {**reduct.settings, "exclude": list(self.names_of(sorted(self.excluded)))}
        return replace(reduct, settings=settings, change=change)


def update(
    old: Reduct,
    data: Any,
    y: Any,
    minimal: bool,
    measure: Measure | None,
    engine: str | Engine,
    n_jobs: int | None,
    memory_limit: int | str | None,
    time_limit: float | str | None,
    verbose: bool,
    progress: Progress | None,
    on_step: OnStep | None,
    reading: FormatKwargs,
) -> Reduct:
    """Find the reduct of new rows; see `Reduct.update`."""
    given = ReadOptions.of(Reduct.update, None, y, without_columns(reading, "Reduct.update"))
    subject = subject_of(old)
    chosen_measure = _measure_of(old, measure)
    read = first_reading(subject, data, given, reading)
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit, time_limit=time_limit)
    with reporting(verbose, progress, on_step) as reporter, Session(data, read, run, reporter) as session:
        table = opened(subject, session)
        there = columns_there(table, subject.conditions)
        if not there:
            names = shown_names(subject.conditions)
            raise TableError(f"None of the columns of the reduct is there: {names}. Pass rows that have them.")
        session.assign(reading_of(subject, table, there, reading))
        included = old.settings.get("include") or ()
        options = SearchOptions(
            include=[name for name in included if name in there],
            epsilon=old.settings.get("epsilon", 0.0),
            minimal=minimal,
        )
        return UpdateSearch(session, chosen_measure, options, old).run()


def _measure_of(old: Reduct, measure: Measure | None) -> Measure:
    """The measure of a reduct; one of the user's own has to be given again."""
    if measure is None:
        if old.measure not in MEASURES:
            raise ParameterError(f"The measure {old.measure!r} is not one of plar's. Pass ", Given("measure"), ".")
        return as_measure(old.measure)
    if as_measure(measure).name != old.measure:
        raise ParameterError(
            f"The reduct is one by the measure {old.measure!r}, not {as_measure(measure).name!r}. Leave ",
            Given("measure"),
            " out, or search anew with plar.reduce.",
        )
    return as_measure(measure)
