"""The approximations of the decisions of a session's table: one pass over its granules, and what people are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

from plar.engines.base import GranuleSet
from plar.errors import NoRows
from plar.input.tables import DecisionTable
from plar.matching.condition import ConditionValue, plain_value
from plar.options import Columns
from plar.results.approximations import (
    MAX_CONTRADICTIONS,
    MAX_COUNTS,
    MIN_CONTRADICTIONS,
    Approximations,
    Contradiction,
    DecisionApproximation,
    make_decision,
    quality_of,
)
from plar.results.decision_words import DecisionWords
from plar.results.report.words import half_open
from plar.search.selection_notes import n_dropped, on_dropped, on_rows
from plar.session.session import Session
from plar.session.warnings import warn_before
from plar.uncertainty.approximation import Approximation


def approximations_in(session: Session, attributes: Columns | None = None) -> Approximations:
    """The approximations by some columns, by default all conditions."""
    table = session.table
    names = table.conditions if attributes is None else table.columns(attributes)
    try:
        granules = session.granules
    except NoRows as error:
        return _of_no_rows(session, names, str(error))
    session.tell_size()
    warn_before(session, names)
    session.reporter.phase("approximate", 0, 0)
    began = perf_counter()
    approximation = session.engine.approximate(granules, names, MAX_CONTRADICTIONS)
    seconds = perf_counter() - began
    return _result(session, names, granules, approximation, seconds)


def _result(
    session: Session, names: Sequence[str], granules: GranuleSet, approximation: Approximation, seconds: float
) -> Approximations:
    cuts = {name: granules.cuts[name] for name in (*names, *granules.decision) if name in granules.cuts}
    intervals = {name: tuple(half_open(points)) for name, points in cuts.items()}
    words = DecisionWords(granules.decision, intervals)
    decisions = list(zip(*granules.decision_values, strict=True))
    order = sorted(range(len(decisions)), key=lambda code: words.order(decisions[code]))
    by_decision = [
        _decision(granules.decision, intervals, words, decisions[code], code, approximation) for code in order
    ]
    number_of = {code: number for number, code in enumerate(order)}
    return Approximations(
        attributes=tuple(names),
        decision=granules.decision,
        quality=quality_of(by_decision, granules.n_objects),
        by_decision=tuple(by_decision),
        n_objects=granules.n_objects,
        n_granules=approximation.n_granules,
        n_classes=approximation.n_classes,
        n_contradictions=approximation.n_contradictions,
        largest_contradictions=tuple(_contradictions(names, intervals, number_of, approximation)),
        cuts={name: tuple(points) for name, points in cuts.items()},
        intervals=intervals,
        notes=tuple(_notes(granules, session.table)),
        engine=session.engine.name,
        source=session.table.path,
        settings=session.table.settings(),
        seconds={**session.take_seconds(), "approximate": seconds},
    )


def _notes(granules: GranuleSet, table: DecisionTable) -> list[str]:
    """The rows that were left out, a line each for what they lack."""
    notes = [on_rows(granules.n_without_decision), on_dropped(n_dropped(granules, table))]
    return [note for note in notes if note]


def _decision(
    names: Sequence[str],
    intervals: Mapping[str, Sequence[str]],
    words: DecisionWords,
    values: Sequence[Any],
    code: int,
    approximation: Approximation,
) -> DecisionApproximation:
    return make_decision(
        _shown(names, values, intervals),
        words.label(values),
        n_rows=int(approximation.class_sizes[code]),
        lower=int(approximation.lower[code]),
        upper=int(approximation.upper[code]),
    )


def _contradictions(
    names: Sequence[str],
    intervals: Mapping[str, Sequence[str]],
    number_of: Mapping[int, int],
    approximation: Approximation,
) -> Iterator[Contradiction]:
    """The largest contradictions, as many as a result holds."""
    n_counts = 0
    for place, contradiction in enumerate(approximation.contradictions):
        n_counts += len(contradiction.counts)
        if n_counts > MAX_COUNTS and place >= MIN_CONTRADICTIONS:
            return
        numbers = [number_of[code] for code in contradiction.decisions]
        yield Contradiction(
            values=_shown(names, contradiction.values, intervals),
            n_rows=contradiction.n_objects,
            counts=tuple(sorted(zip(numbers, contradiction.counts, strict=True))),
        )


def _shown(
    names: Sequence[str], values: Sequence[Any], intervals: Mapping[str, Sequence[str]]
) -> tuple[ConditionValue, ...]:
    """Values as JSON has them; numbers of bins as intervals."""
    return tuple(
        intervals[name][value] if name in intervals and value is not None else plain_value(value)
        for name, value in zip(names, values, strict=True)
    )


def _of_no_rows(session: Session, names: Sequence[str], reason: str) -> Approximations:
    """The result for a table without rows: no decision, and nothing undecided."""
    table = session.table
    return Approximations(
        attributes=tuple(names),
        decision=table.decision,
        quality=quality_of([], 0),
        by_decision=(),
        n_objects=0,
        n_granules=0,
        n_classes=0,
        n_contradictions=0,
        largest_contradictions=(),
        cuts={},
        intervals={},
        notes=(reason,),
        engine=session.engine.name,
        source=table.path,
        settings=table.settings(),
        seconds=session.take_seconds(),
    )
