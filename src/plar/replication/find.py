"""The check of a result on new rows, which are read once: what it keeps, what replicates, and what is new."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from plar.bins import NoNumber
from plar.coding.shown_values import MISSING, shown_value, value_order
from plar.engines.base import Engine, GranuleSet
from plar.engines.clauses import FoundClause
from plar.errors import Given, ParameterError, TableError, printable, shown_names
from plar.granules.fingerprint import spell_json
from plar.granules.granules import Granules
from plar.matching.condition import ConditionValue
from plar.measures import MEASURES, Measure
from plar.options import CheckOptions, ReadOptions, RunOptions
from plar.reduct_search.mending import MendingSearch
from plar.replication import never_seen
from plar.replication.columns import (
    ColumnTest,
    SelectionTest,
    Then,
    test_reduct,
    then_of_reduct,
    then_of_selection,
)
from plar.replication.never_seen import OldRows
from plar.replication.subject import Subject, columns_there, first_reading, opened, reading_of
from plar.results.check import GONE, RETYPED, THERE, Check, CheckedColumn, Mending, NeverSeen, Witness
from plar.results.decision_words import DecisionWords
from plar.results.reduct import Reduct
from plar.results.report.words import counted, half_open, shortened
from plar.results.selection import Selection
from plar.search.target import check_one_target, target_of
from plar.session.session import Session


class Checking:
    """The check of a result on the table of a session.

    Parameters
    ----------
    session : Session
        Whose table was opened as `first_reading` says.
    subject : Subject
    options : CheckOptions
    names_given : collection of str
        Options of reading that the caller gave.
    """

    def __init__(self, session: Session, subject: Subject, options: CheckOptions, names_given: Collection[str]) -> None:
        self._session = session
        self._subject = subject
        self._alpha = subject.alpha if options.alpha is None else options.alpha
        self._seen = options.seen
        self._names_given = names_given
        #: conditions that cannot be cut as they were, each with why
        self._retyped: dict[str, str] = {}
        self._tests: dict[str, ColumnTest] = {}
        self._notes: list[str] = []
        self._preserves: bool | None = None
        self._theta: float | None = None
        self._theta_all: float | None = None
        self._witness: Witness | None = None
        self._mending: Mending | None = None
        self._seconds: dict[str, float] = {}

    # from `_read` on
    _granules: GranuleSet
    #: columns of the result that are there
    _columns: tuple[str, ...]
    _words: dict[str, tuple[str, ...]]

    def run(self) -> Check:
        """Check the result."""
        result = self._subject.result
        if isinstance(result, Reduct):
            measure = _measure_of(result)
        self._read()
        self._session.tell_size()
        self._seconds = self._session.take_seconds()
        self._began = perf_counter()
        if isinstance(result, Reduct):
            self._check_reduct(result, measure)
        else:
            self._check_selection(result)
        self._end_phase("check")
        if self._preserves is False:
            self._mend(measure)
            self._end_phase("mend")
        return self._result()

    def _end_phase(self, phase: str) -> None:
        now = perf_counter()
        self._seconds[phase] = now - self._began
        self._began = now

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read the conditions that are there, cut as they were."""
        session = self._session
        table = opened(self._subject, session)
        names = columns_there(table, self._subject.conditions)
        while True:
            if not names:
                raise TableError(
                    f"The new rows have none of the columns of the {self._subject.kind}: "
                    f"{shown_names(self._subject.conditions)}. They have: {shown_names(table.names)}."
                )
            session.assign(reading_of(self._subject, table, names, self._names_given))
            try:
                self._granules = session.granules
                break
            except NoNumber as error:
                if error.column not in names:
                    raise
                example = (
                    f"text such as {shortened(error.value)!r}" if isinstance(error.value, str) else repr(error.value)
                )
                self._retyped[error.column] = f"{example} where numbers were"
                names = tuple(name for name in names if name != error.column)
        self._columns = tuple(name for name in self._subject.columns if name in names)
        self._words = {name: tuple(half_open(points)) for name, points in self._granules.cuts.items()}

    # -- a reduct --------------------------------------------------------------------------------------------------

    def _check_reduct(self, reduct: Reduct, measure: Measure) -> None:
        """Test the columns in their order; after the last it is known whether they keep everything."""
        granules = self._granules
        evaluation = self._session.engine.open(granules, measure)
        self._test(test_reduct(evaluation, granules, measure, self._columns, self._alpha))
        self._preserves = evaluation.unsettled_objects == 0
        self._theta_all = evaluation.value_all
        self._theta = self._theta_all
        if not self._preserves:
            coarse = granules.coarsen(self._columns)
            self._theta = self._session.engine.open(coarse, measure).value_all
        if not reduct.certificate.preserved:
            self._notes.append(
                "The reduct did not keep everything when it was found either: alpha, a tolerance or a limit ended its "
                "search."
            )

    def _mend(self, measure: Measure) -> None:
        """Find two rows that the columns do not tell apart although they should, and the fewest columns that do."""
        granules = self._granules
        search = MendingSearch(self._session, measure, granules, granules.positions(self._columns))
        clause = search.failing_clause()
        assert clause is not None
        both = [tuple(map(spell_json, row)) for row in (clause.row, clause.other)]
        decisions = search.clause_finder.decisions(both)
        self._witness = self._witness_of(clause, decisions)
        self._mending = search.mend(clause)

    def _witness_of(self, clause: FoundClause, decisions: Sequence[Mapping[int, int]]) -> Witness:
        granules = self._granules
        values = list(zip(*granules.decision_values, strict=True))
        words = DecisionWords(granules.decision, self._words)

        def counts(of_row: Mapping[int, int]) -> tuple[tuple[str, int], ...]:
            codes = sorted(of_row, key=lambda code: words.order(values[code]))
            return tuple((words.label(values[code]), of_row[code]) for code in codes)

        return Witness(
            columns=tuple(granules.conditions[a] for a in clause.attributes),
            row=self._shown(clause.row),
            other=self._shown(clause.other),
            decisions=counts(decisions[0]),
            other_decisions=counts(decisions[1]),
        )

    def _shown(self, row: Sequence[Any]) -> tuple[ConditionValue, ...]:
        """The values of a row as people read them: intervals of columns that were cut."""
        shown: list[ConditionValue] = []
        for name, value in zip(self._granules.conditions, row, strict=True):
            if isinstance(value, Mapping):  # a value that JSON lacks, spelled out
                value = str(value.get("spelled"))
            if name in self._words and value is not None:
                value = self._words[name][value]
            shown.append(value)
        return tuple(shown)

    # -- a selection -----------------------------------------------------------------------------------------------

    def _check_selection(self, selection: Selection) -> None:
        """Test each column given those recorded in its step."""
        session = self._session
        check_one_target(session.table)
        target = target_of(session.table, self._granules, selection.target_type)
        strata = session.engine.stratify(self._granules, target.ranks)
        self._test(SelectionTest(selection, self._granules, strata, self._alpha).run())
        if not selection.steps:
            self._notes.append("The selection has no tested column, so there is nothing that could fail.")

    def _test(self, tests: Iterator[tuple[str, ColumnTest]]) -> None:
        report = self._session.reporter.phase
        report("check", 0, len(self._columns))
        for name, tested in tests:
            self._tests[name] = tested
            report("check", len(self._tests), len(self._columns))

    # -- what is new -----------------------------------------------------------------------------------------------

    def _old_rows(self) -> OldRows:
        """What is known of the old rows."""
        if self._seen is None:
            result = self._subject.result
            return never_seen.from_selection(result) if isinstance(result, Selection) else never_seen.NOTHING_KNOWN
        session = self._session
        reading = first_reading(self._subject, self._seen, ReadOptions(), ())
        run = RunOptions(engine=_engine_for(self._seen, session.engine))
        with Session(self._seen, reading, run, session.reporter) as old:
            table = opened(self._subject, old)
            names = columns_there(table, self._columns)
            if not names:
                raise TableError(
                    "The table of ",
                    Given("seen"),
                    f" has none of the columns of the {self._subject.kind}: {shown_names(self._columns)}.",
                )
            old.assign(reading_of(self._subject, table, names, ()))
            granules = old.engine.local_granules(old.granules, names)
        if granules is None:
            self._notes.append("The old rows are too many to be compared with the new ones on this machine.")
            return never_seen.NOTHING_KNOWN
        if len(names) < len(self._columns):
            lacking = [name for name in self._columns if name not in names]
            self._notes.append(f"The old rows lack {shown_names(lacking)}, so no combinations were compared.")
            return never_seen.from_granules(granules)._replace(granules=None)
        return never_seen.from_granules(granules)

    def _retype(self, name: str, old: Sequence[Any], values: Sequence[Any]) -> None:
        """Note a column of another type than before."""
        was = never_seen.kind_of(old)
        now = never_seen.kind_of(values)
        if name not in self._words and was is not None and now is not None and was != now:
            self._retyped[name] = f"{now} where {was} were"

    def _result(self) -> Check:
        subject = self._subject
        session = self._session
        granules = self._granules
        result = subject.result
        old = self._old_rows() if self._columns else never_seen.NOTHING_KNOWN
        local: Granules | None = None
        if old.values or old.granules is not None:
            local = session.engine.local_granules(granules, self._columns)
            if local is None:
                self._notes.append("The new rows are too many to be compared with the old ones on this machine.")
        new_values = self._new_values(old, local)
        then_of = then_of_reduct(result) if isinstance(result, Reduct) else then_of_selection(result)
        columns = tuple(self._column(name, then_of[name], new_values.get(name)) for name in subject.columns)
        accounted_for = {*granules.conditions, *self._retyped}
        gone = tuple(name for name in subject.conditions if name not in accounted_for)
        self._note_gone(gone)
        stands = all(column.state == THERE for column in columns) and bool(self._preserves)
        if isinstance(result, Selection):
            stands = all(column.replicates for column in columns if column.role != "included")
        return Check(
            stands=stands,
            checked=subject.kind,
            columns=columns,
            preserves=self._preserves,
            preserved_then=result.certificate.preserved if isinstance(result, Reduct) else None,
            theta=self._theta,
            theta_all=self._theta_all,
            witness=self._witness,
            mending=self._mending,
            conditions=granules.conditions,
            decision=granules.decision,
            measure=result.measure if isinstance(result, Reduct) else None,
            alpha=self._alpha,
            gone=gone,
            retyped=self._retyped,
            n_rows=granules.n_objects,
            n_rows_then=subject.n_rows,
            n_combinations=granules.n_combinations(self._columns),
            new_combinations=self._new_combinations(old, local),
            new_decisions=self._new_decisions(old),
            cuts={name: tuple(points) for name, points in granules.cuts.items()},
            intervals=self._words,
            notes=tuple(self._notes),
            engine=session.engine.name,
            source=session.table.path,
            source_then=result.source,
            settings={"alpha": self._alpha, "seen": _path_of(self._seen), **session.table.settings()},
            seconds=self._seconds,
        )

    def _column(self, name: str, then: Then, new_values: NeverSeen | None) -> CheckedColumn:
        """A column of the result, as far as it is there."""
        tested = self._tests.get(name)
        state = THERE
        if tested is None:
            state = RETYPED if name in self._retyped else GONE
        return CheckedColumn(
            column=name,
            role=then.role,
            state=state,
            given=() if tested is None else tested.given,
            p_value=None if tested is None else tested.p_value,
            p_value_then=then.p_value,
            gain=None if tested is None else tested.gain,
            gain_then=then.gain,
            replicates=tested is not None and tested.p_value <= self._alpha,
            new_values=new_values,
        )

    def _note_gone(self, gone: Sequence[str]) -> None:
        """Say what was left out of the comparison."""
        chosen = set(self._subject.columns)
        others = [
            name for name in (*gone, *self._retyped) if name not in chosen and name not in self._granules.conditions
        ]
        if others and isinstance(self._subject.result, Reduct):
            verb = "is" if len(others) == 1 else "are"
            self._notes.append(
                f"{counted(len(others), 'other column')} of the old table {verb} gone or of another type: "
                f"{shown_names(others)}. Everything means what the {len(self._granules.conditions):,} columns that are "
                "left say."
            )

    def _new_values(self, old: OldRows, local: Granules | None) -> dict[str, NeverSeen]:
        """Values that columns never had, where the old ones are known."""
        if local is None:
            return {}
        new_values_of: dict[str, NeverSeen] = {}
        for place, name in enumerate(local.conditions):
            if name in old.values:
                values = local.dictionaries[place]
                self._retype(name, old.values[name], values)
                words = [self._word(name, value) for value in values]
                sizes = never_seen.sizes_of(local, place)
                new_values_of[name] = never_seen.new_values(old.values[name], values, sizes, words)
        return new_values_of

    def _new_combinations(self, old: OldRows, local: Granules | None) -> NeverSeen | None:
        """Combinations of values that no old row has."""
        if old.granules is None or local is None:
            return None
        combinations = never_seen.new_combinations(old.granules, local)
        examples = []
        for row in combinations.examples:
            values = [values[codes[row]] for codes, values in zip(local.columns, local.dictionaries, strict=True)]
            pairs = zip(local.conditions, values, strict=True)
            examples.append(", ".join(f"{printable(name)} = {self._word(name, value)}" for name, value in pairs))
        return NeverSeen(combinations.n, combinations.n_rows, tuple(examples))

    def _new_decisions(self, old: OldRows) -> NeverSeen | None:
        """Decisions that no old row has."""
        if old.decisions is None:
            return None
        granules = self._granules
        decisions = list(zip(*granules.decision_values, strict=True))
        words = DecisionWords(granules.decision, self._words)
        sizes = granules.class_sizes()
        keys = [never_seen.keys_of(*both) for both in zip(old.decisions, granules.decision_values, strict=True)]
        known = set(zip(*(old_keys for old_keys, _ in keys), strict=True))
        new_keys = zip(*(of_column for _, of_column in keys), strict=True)
        codes = [code for code, key in enumerate(new_keys) if sizes[code] and key not in known]
        orders = [tuple(map(value_order, values)) for values in decisions]
        return never_seen.never_seen(codes, np.asarray(sizes), orders, [words.label(values) for values in decisions])

    def _word(self, name: str, value: Any) -> str:
        """A value in words: the interval, if its column was cut."""
        if value is None:
            return MISSING
        return self._words[name][value] if name in self._words else printable(shown_value(value))


def _measure_of(reduct: Reduct) -> Measure:
    measure = MEASURES.get(reduct.measure)
    if measure is None:
        raise ParameterError(
            f"The reduct is by the measure {reduct.measure!r}, of which it has only the name. plar.check knows "
            f"{', '.join(MEASURES)}."
        )
    return measure


def _path_of(seen: Any) -> str | None:
    """Where the old rows were read, if that is a path."""
    return os.fspath(seen) if isinstance(seen, (str, os.PathLike)) else None


def _engine_for(seen: Any, engine: Engine) -> object:
    """Where the old rows are read: paths where the new rows are, anything else where it is."""
    return "auto" if _path_of(seen) is None else engine


def check_in(session: Session, subject: Subject, options: CheckOptions, names_given: Collection[str]) -> Check:
    """Check a result on the table of a session."""
    return Checking(session, subject, options, names_given).run()
