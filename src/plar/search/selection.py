"""The search of `plar.select`: few columns that predict as well as all.

One number ranks and tests: the excess of a candidate's statistic over its mean by chance, within classes of rows. The
statistic is W for a target of classes, and B for one of numbers; see `plar.chance.statistic`.

First part, given all: among the candidates take the one of the largest excess within the classes of U/R that beats
chance. After a few columns the classes hold a row or two, and no test has power left.

Second part, given each: a candidate that says nothing by itself is out, and so is one that says nothing within the
classes of some selected column, beside which it is redundant. Of the others take the one whose least excess, without
any column and beside each selected one, is largest; until none is left.

References
----------
F. Fleuret: Fast Binary Feature Selection with Conditional Mutual Information, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from plar.chance.association import Association
from plar.chance.p_value import adjusted_p_value, screened_p_value
from plar.engines.base import GranuleSet
from plar.engines.stratification import Stratification
from plar.errors import AllRowsDropped, Interrupted, printable, warn
from plar.options import SelectOptions
from plar.results.selection import Rejection, Selection, SelectionStep
from plar.search.selection_checkpoint import SavedStratification, SelectionCheckpoint
from plar.search.selection_notes import notes_on
from plar.search.target import Target, check_one_target, target_of
from plar.search.target_by_values import target_by_values
from plar.search.ties import best_first, tied
from plar.session.session import Session
from plar.session.warnings import warn_of_header, warn_of_target, warn_supervised_bins

#: excesses are compared as whole numbers of this many bits, of which the last few are rounding
_SCORE_BITS = 50
_TIE_BOUND = 1 << 10


@dataclass(slots=True)
class _Candidate:
    """What the second part knows of a candidate: the least excess, and where chance explains it best."""

    least_excess: float
    least_given: tuple[int, ...]
    largest_p: float
    largest_given: tuple[int, ...]

    def compare(self, excess: float, p: float, given: tuple[int, ...]) -> None:
        """Note what it says beside some columns."""
        if excess < self.least_excess:
            self.least_excess = excess
            self.least_given = given
        if p > self.largest_p:
            self.largest_p = p
            self.largest_given = given


class SelectionSearch:
    """The search for the columns that predict the decision of a session's table."""

    def __init__(self, session: Session, options: SelectOptions) -> None:
        self._session = session
        self._options = options
        self._checkpoint = SelectionCheckpoint(session.run_options.checkpoint)
        self._steps: list[SelectionStep] = []
        #: R: what is included, then what was selected
        self._selected: list[int] = []
        self._rejected: dict[int, Rejection] = {}
        #: p-values of the candidates that an exact test refused in the last step of the first part
        self._refused: dict[int, float] = {}
        #: those that are not decided yet, in table order
        self._candidates: list[int] = []
        #: how each candidate goes with the decision by itself
        self._alone: dict[int, Association] = {}
        self._left_out: dict[str, str] = {}
        self._complete = False
        self._seconds: dict[str, float] = {}

    # from `_prepare` on
    _granules: GranuleSet
    _target: Target
    _strata: Stratification
    _included: tuple[int, ...]
    #: the most that a candidate could say by itself
    _impurity: float

    def run(self) -> Selection:
        """Select columns; on Ctrl-C, `Interrupted` brings those so far."""
        try:
            self._prepare()
        except AllRowsDropped as dropped:
            if dropped.option == "missing":
                raise
            return self._without_target()
        warn_of_header(self._session)
        warn_of_target(self._session, self._target.n_classes)
        warn_supervised_bins(self._session)
        began = perf_counter()
        try:
            self._complete = self._search()
            self._seconds["select"] = perf_counter() - began
            return self._result()
        except KeyboardInterrupt:
            self._seconds["select"] = perf_counter() - began
            raise Interrupted(self._result()) from None

    def _prepare(self) -> None:
        """Read the table, and sort out which columns are candidates."""
        check_one_target(self._session.table)
        self._options = self._session.named_to_select(self._options)
        self._granules = self._session.granules
        self._session.tell_size()
        self._seconds = self._session.take_seconds()
        granules = self._granules
        self._target = target_of(self._session.table, granules, self._options.target_type)
        strata = self._session.engine.stratify(granules, self._target.ranks)
        self._strata = SavedStratification(strata, self._checkpoint)
        self._included = tuple(granules.positions(self._options.include))
        self._selected = list(self._included)
        self._strata.select(*self._included)
        self._left_out = _left_out(granules, self._options)
        self._candidates = [
            a for a, name in enumerate(granules.conditions) if name not in self._left_out and a not in self._included
        ]
        self._begin_checkpoint()

    def _begin_checkpoint(self) -> None:
        """Say in the checkpoint what is searched, or find there what an earlier run did."""
        options = {**self._options.settings(), "left_out": list(self._left_out)}
        self._checkpoint.begin(self._granules, options)
        if self._checkpoint.resumed:
            self._session.reporter.resumed(self._checkpoint.n_steps, has_core=False)

    def _search(self) -> bool:
        """Both parts; returns whether all candidates were decided, as far as `max_columns` allows."""
        self._n_candidates = len(self._candidates)
        self._tell()
        columns = [*self._candidates, *self._included]
        self._alone = dict(zip(columns, self._strata.associations(columns, ()), strict=True))
        self._impurity = self._strata.impurity(())
        if not self._select_given_all():
            return False
        if self._options.given == "each" and not self._select_given_each():
            return False
        self._checkpoint.check_end()
        return True

    def _is_full(self) -> bool:
        """Whether as many columns are selected as the user wants."""
        limit = self._options.max_columns
        return limit is not None and len(self._selected) >= limit

    def _is_late(self) -> bool:
        """Whether time is up; what an earlier run has found is taken all the same."""
        return not self._checkpoint.is_behind and perf_counter() >= self._session.deadline

    def _tell(self) -> None:
        self._session.reporter.phase("select", len(self._steps), len(self._candidates))

    # -- first part ----------------------------------------------------------------------------------------------

    def _select_given_all(self) -> bool:
        """Add columns that say most within the classes of U/R, as long as they beat chance; False if time is up."""
        while self._candidates and not self._is_full():
            if self._is_late():
                return False
            began = perf_counter()
            measured = self._alone
            if self._selected:
                associations = self._strata.associations(self._candidates)
                measured = dict(zip(self._candidates, associations, strict=True))
            step = self._best_given_all(measured, began)
            if step is None:
                if self._options.given == "all":
                    self._reject_all(measured)
                return True
            self._add(step)
        return True

    def _best_given_all(self, measured: dict[int, Association], began: float) -> SelectionStep | None:
        """The candidate of the largest excess that beats chance within the classes of U/R."""
        n = len(self._candidates)
        alpha = self._options.alpha
        self._refused = {}
        scores = {a: self._score(measured[a].excess) for a in self._candidates}
        for a in best_first(scores, _TIE_BOUND):
            if n * screened_p_value(measured[a]) > alpha:
                continue
            adjusted = self._adjusted_p_value(a, n)
            if adjusted <= alpha:
                excess = measured[a].excess
                return SelectionStep(
                    column=self._granules.conditions[a],
                    excess=excess,
                    share=share_of(excess, self._strata.impurity()),
                    p_value=adjusted / n,
                    adjusted=adjusted,
                    given=self._names_of(self._selected),
                    seconds=perf_counter() - began,
                )
            self._refused[a] = adjusted / n
        return None

    def _reject_all(self, measured: dict[int, Association]) -> None:
        """Nothing that is left says anything beside all that is selected."""
        for a in list(self._candidates):
            p = self._refused.get(a)
            self._reject(a, screened_p_value(measured[a]) if p is None else p, tuple(self._selected))

    # -- second part ---------------------------------------------------------------------------------------------

    def _select_given_each(self) -> bool:
        """Add columns that say most beside each one that is selected; False if time is up."""
        candidates = self._relevant()
        for b in self._selected:
            if self._is_late():
                return False
            self._compare_beside(b, candidates)
        while candidates and not self._is_full():
            if self._is_late():
                return False
            began = perf_counter()
            a = self._best_given_each(candidates)
            candidate = candidates.pop(a)
            step = self._confirmed(a, candidate, began)
            if step is not None:
                self._add(step)
                self._compare_beside(a, candidates)
        return True

    def _relevant(self) -> dict[int, _Candidate]:
        """The candidates that say something by themselves; the others are out."""
        relevant: dict[int, _Candidate] = {}
        for a in list(self._candidates):
            p = screened_p_value(self._alone[a])
            if self._n_candidates * p > self._options.alpha:
                self._reject(a, p, ())
            else:
                relevant[a] = _Candidate(self._alone[a].excess, (), p, ())
        return relevant

    def _compare_beside(self, b: int, candidates: dict[int, _Candidate]) -> None:
        """Look what the candidates say beside a selected column; those that say nothing are out."""
        self._tell()
        remaining = list(candidates)
        for a, measured in zip(remaining, self._strata.associations(remaining, (b,)), strict=True):
            p = screened_p_value(measured)
            if p > self._options.alpha:
                del candidates[a]
                self._reject(a, p, (b,))
            else:
                candidates[a].compare(measured.excess, p, (b,))

    def _best_given_each(self, candidates: dict[int, _Candidate]) -> int:
        """The candidate whose least excess is largest; the first in the table of those that tie."""
        scores = {a: self._score(candidate.least_excess) for a, candidate in candidates.items()}
        return min(tied(scores, _TIE_BOUND))

    def _confirmed(self, a: int, candidate: _Candidate, began: float) -> SelectionStep | None:
        """The step that adds a candidate, if exact tests confirm what the screens said; else it is out."""
        alpha = self._options.alpha
        adjusted = self._adjusted_p_value(a, self._n_candidates, ())
        p = adjusted / self._n_candidates
        if adjusted > alpha:
            self._reject(a, p, ())
            return None
        if candidate.largest_given:
            p = self._adjusted_p_value(a, 1, candidate.largest_given)
            if p > alpha:
                self._reject(a, p, candidate.largest_given)
                return None
        return SelectionStep(
            column=self._granules.conditions[a],
            excess=candidate.least_excess,
            share=share_of(candidate.least_excess, self._strata.impurity(candidate.least_given)),
            p_value=p,
            adjusted=adjusted,
            given=self._names_of(candidate.largest_given),
            seconds=perf_counter() - began,
        )

    # -- both ----------------------------------------------------------------------------------------------------

    def _adjusted_p_value(self, a: int, n_candidates: int, within: tuple[int, ...] | None = None) -> float:
        """The exact p-value within the classes of U/R, or of U/`within`, times the number of candidates."""
        given = self._selected if within is None else within
        adjusted = self._checkpoint.tested(a, given)
        if adjusted is None:
            cross_tab = next(iter(self._strata.cross_tabs([a], within)))
            adjusted = adjusted_p_value(cross_tab, n_candidates, self._options.alpha)
            self._checkpoint.add_test(a, given, adjusted)
        return adjusted

    def _score(self, excess: float) -> int:
        """An excess as a whole number, the smaller the better."""
        return -int(excess / self._granules.n_objects * (1 << _SCORE_BITS))

    def _add(self, step: SelectionStep) -> None:
        """R ← R ∪ {a}; the caller hears of it unless an earlier run did it."""
        saved = self._checkpoint.finished(step)
        if saved is None:
            self._checkpoint.add_step(step)
        [a] = self._granules.positions([step.column])
        self._strata.select(a)
        self._steps.append(saved or step)
        self._selected.append(a)
        self._candidates.remove(a)
        self._tell()
        if saved is None:
            self._session.reporter.selected(step)

    def _reject(self, a: int, p: float, given: tuple[int, ...]) -> None:
        self._candidates.remove(a)
        self._rejected[a] = Rejection(p, self._names_of(given))

    def _names_of(self, attributes: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._granules.conditions[a] for a in attributes)

    def _result(self) -> Selection:
        granules = self._granules
        included = self._names_of(self._included)
        columns = (*included, *(step.column for step in self._steps))
        alone = {
            granules.conditions[a]: share_of(measured.excess, self._impurity) for a, measured in self._alone.items()
        }
        rejected = {granules.conditions[a]: self._rejected[a] for a in sorted(self._rejected)}
        settings: dict[str, Any] = {**self._options.settings(), **self._session.table.settings()}
        tested = {name: share for name, share in alone.items() if name not in included}
        notes = notes_on(granules, self._session.table, self._left_out, tested, columns)
        by_values = target_by_values(granules, self._strata, self._selected, self._target.numbers)
        return Selection(
            columns=columns,
            included=included,
            steps=tuple(self._steps),
            rejected=rejected,
            left_out=self._left_out,
            alone=alone,
            by_values=by_values,
            conditions=granules.conditions,
            target=granules.decision,
            alpha=self._options.alpha,
            given=self._options.given,
            complete=self._complete,
            n_rows=granules.n_objects,
            target_type=self._target.kind,
            n_classes=self._target.n_classes,
            missing=granules.n_missing,
            cuts=dict(granules.cuts),
            notes=tuple(notes),
            engine=self._session.engine.name,
            source=self._session.table.path,
            settings=settings,
            seconds=self._seconds,
        )

    def _without_target(self) -> Selection:
        """Nothing: no row has a target."""
        table = self._session.table
        warn(f"No row has a value of the target {printable(table.decision[0])!r}, so there is nothing to predict.")
        return Selection(
            columns=(),
            included=(),
            steps=(),
            rejected={},
            left_out=dict.fromkeys(table.conditions, "no row has a target"),
            alone={},
            by_values={},
            conditions=table.conditions,
            target=table.decision,
            alpha=self._options.alpha,
            given=self._options.given,
            complete=True,
            n_rows=0,
            target_type="classes",
            n_classes=0,
            missing={},
            cuts={},
            notes=(),
            engine=self._session.engine.name,
            source=table.path,
            settings={**self._options.settings(), **table.settings()},
            seconds=self._session.take_seconds(),
        )


def share_of(excess: float, impurity: float) -> float:
    """An excess as a share of what there was to say."""
    return max(excess, 0.0) / impurity if impurity > 0 else 0.0


def _left_out(granules: GranuleSet, options: SelectOptions) -> dict[str, str]:
    """The columns that are no candidates, each with the reason."""
    reasons: dict[str, str] = {}
    index_like = granules.index_like
    for name, n_values in zip(granules.conditions, granules.cardinalities, strict=True):
        if name in options.include:
            continue
        if name in options.exclude:
            reasons[name] = "excluded"
        elif n_values < 2:
            reasons[name] = "constant"
        elif name in index_like and name not in options.keep:
            reasons[name] = index_like[name]
    return reasons
