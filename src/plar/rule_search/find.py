"""The search for rules: what every kind of it needs before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Protocol

import numpy as np

from plar.bins import Spec
from plar.errors import Given, Interrupted, TableError
from plar.granules.granule_set import GranuleSet
from plar.granules.granules import Granules
from plar.matching.condition import ConditionValue, plain_value
from plar.options import DECILES, Columns, ReadOptions, RuleOptions
from plar.results.report.words import half_open
from plar.results.rules import RuleCertificate, Rules, make_rule
from plar.rule_search.certificate import certify, concepts_of
from plar.rule_search.coded_rule import AddRule, CodedRule, IsLate
from plar.rule_search.coded_table import CodedTable, Mask
from plar.rule_search.evidence import ROUNDS, fit_evidence
from plar.rule_search.lem2 import Lem2
from plar.rule_search.row_sets import RowSets
from plar.rule_search.rule_notes import notes_on
from plar.rule_search.tested import TestedRules
from plar.runtime.parallel import in_threads
from plar.session.session import Session
from plar.session.warnings import (
    warn_before,
    warn_of_header,
    warn_of_quantity,
    warn_supervised_bins,
)


class _RulesOfDecision(Protocol):
    """The search for the rules of one decision."""

    def find(self, add: AddRule, is_late: IsLate) -> bool:
        """Pass rules on, one by one; False if time was up before all were found."""


class RuleSearch:
    """The search for the rules of a session's table, about all its conditions or some `attributes`."""

    def __init__(self, session: Session, options: RuleOptions, attributes: Columns | None = None) -> None:
        self._session = session
        self._options = options
        self._attributes = attributes
        self._left_out: dict[str, str] = {}
        self._is_stopped = False
        self._lock = Lock()
        self._seconds: dict[str, float] = {}

    # from `_prepare` on
    _granules: Granules
    _table: CodedTable
    _row_sets: RowSets
    #: of certain and possible rules
    _concepts: list[Mask]
    #: for each decision the rules so far
    _rules: list[list[CodedRule]]

    def run(self) -> Rules:
        """Find the rules; on Ctrl-C, `Interrupted` brings those so far."""
        self._prepare()
        began = perf_counter()
        complete = False
        try:
            complete = self._search()
        except KeyboardInterrupt:
            self._seconds["rules"] = perf_counter() - began
            raise Interrupted(self._result(complete=False)) from None
        self._seconds["rules"] = perf_counter() - began
        return self._result(complete)

    @property
    def _is_tested(self) -> bool:
        return self._options.kind == "tested"

    def _prepare(self) -> None:
        """Read the table, and number its values."""
        session = self._session
        _check_one_decision(session.table.decision)
        all_granules = session.granules
        session.tell_size()
        names = self._names(all_granules)
        granules = session.engine.local_granules(all_granules, names)
        if granules is None:
            raise TableError(
                f"Rules are searched on this machine, and the {len(all_granules):,} distinct rows of {len(names):,} "
                "columns are too many for it. Select columns first, with plar.select or plar.reduce, and pass ",
                Given("attributes"),
                ".",
            )
        self._seconds = session.take_seconds()
        self._warn()
        self._granules = granules
        self._table = CodedTable.of(granules)
        self._row_sets = RowSets(self._table)
        self._rules = [[] for _ in range(self._table.n_decisions)]
        self._concepts = []
        if not self._is_tested:
            self._concepts = concepts_of(granules, self._table, self._options.kind)

    def _names(self, granules: GranuleSet) -> tuple[str, ...]:
        """The columns that rules are to be about."""
        table = self._session.table
        if self._attributes is not None:
            return table.columns(self._attributes)
        if self._is_tested and table.options.conditions is None:
            self._left_out = dict(granules.index_like)
        return tuple(name for name in granules.conditions if name not in self._left_out)

    def _warn(self) -> None:
        if self._is_tested:
            warn_of_header(self._session)
            warn_of_quantity(self._session)
            warn_supervised_bins(self._session)
        else:
            warn_before(self._session)

    def _search(self) -> bool:
        """Find the rules of each decision, several at a time; False if time was up."""
        if self._is_tested and self._table.n_decisions == 1:
            n_rows = self._granules.n_objects
            if n_rows >= self._options.min_support:
                self._rules[0].append(CodedRule((), 0, (n_rows,)))
            return True
        decisions = range(self._table.n_decisions)
        n_cells = len(self._table) * len(self._granules.conditions) * len(decisions)
        self._tell()
        return all(list(in_threads(self._find, decisions, n_cells, self._stop)))

    def _find(self, decision: int) -> bool:
        """Find the rules of one decision."""
        search: _RulesOfDecision
        if self._is_tested:
            search = TestedRules(self._table, decision, self._options, self._row_sets)
        else:
            search = Lem2(self._table, decision, self._concepts[decision], self._options)

        def add(rule: CodedRule) -> None:
            self._rules[decision].append(rule)
            self._tell()

        return search.find(add, self._is_late)

    def _tell(self) -> None:
        with self._lock:
            self._session.reporter.phase("rules", sum(map(len, self._rules)), 0)

    def _stop(self) -> None:
        self._is_stopped = True

    def _is_late(self) -> bool:
        return self._is_stopped or perf_counter() >= self._session.deadline

    def _result(self, complete: bool) -> Rules:
        table = self._table
        ordered = [sorted(of_decision, key=lambda rule: -rule.support) for of_decision in self._rules]
        coded_rules = [rule for of_decision in ordered for rule in of_decision]
        decisions = self._decisions()
        class_sizes = table.counts_by_decision(table.all_rows()).tolist()
        evidence = fit_evidence(table, self._row_sets, coded_rules, ROUNDS if complete else 1)
        rules = [
            make_rule(
                [table.condition(condition) for condition in rule.conditions],
                rule.decision,
                rule.counts,
                rule.p_value,
                of_rule,
                decisions,
                class_sizes,
            )
            for rule, of_rule in zip(coded_rules, evidence, strict=True)
        ]
        session = self._session
        return Rules(
            rules=tuple(rules),
            rule_kind=self._options.kind,
            certificate=self._certificate(coded_rules),
            decisions=tuple(decisions),
            class_sizes=tuple(class_sizes),
            unmatched=self._unmatched(coded_rules),
            attributes=self._granules.conditions,
            decision=self._granules.decision,
            left_out=self._left_out,
            alpha=self._options.alpha if self._is_tested else None,
            complete=complete,
            n_objects=self._granules.n_objects,
            n_granules=len(self._granules),
            cuts={name: tuple(points) for name, points in self._granules.cuts.items()},
            notes=tuple(notes_on(self._granules, session.table, self._left_out)),
            engine=session.engine.name,
            source=session.table.path,
            settings={**self._options.settings(), "attributes": self._named_columns(), **session.table.settings()},
            seconds=self._seconds,
        )

    def _named_columns(self) -> list[str] | None:
        """The columns that rules may be about, if they were named; else those that number rows may be left out."""
        if self._attributes is None and self._session.table.options.conditions is None:
            return None
        return list(self._granules.conditions)

    def _certificate(self, rules: Sequence[CodedRule]) -> RuleCertificate | None:
        return None if self._is_tested else certify(self._table, self._concepts, rules)

    def _decisions(self) -> list[ConditionValue]:
        """The values of the decision, as people read them if they are bins."""
        [name] = self._granules.decision
        values = [value for (value,) in self._table.decision_values]
        cuts = self._granules.cuts.get(name)
        if cuts is None:
            return [plain_value(value) for value in values]
        intervals = half_open(cuts)
        return [None if value is None else intervals[value] for value in values]

    def _unmatched(self, rules: Sequence[CodedRule]) -> tuple[int, ...]:
        """How many rows of each decision no rule matches."""
        unmatched = self._table.all_rows()
        for rule in rules:
            if len(unmatched):
                matched = self._table.matching(rule.conditions, unmatched)
                unmatched = np.setdiff1d(unmatched, matched, assume_unique=True)
        return tuple(self._table.counts_by_decision(unmatched).tolist())


def reading_for_rules(reading: ReadOptions, attributes: Columns | None) -> ReadOptions:
    """How the table is read: only the columns that rules may be about, and numbers of many values in deciles."""
    if attributes and reading.conditions is None:
        reading = replace(reading, conditions=attributes)
    return replace(reading, bins=_at_deciles(reading.bins))


def _at_deciles(bins: Spec | None) -> Spec | None:
    """Bins of `auto`, which by itself means quartiles, at the deciles."""
    if bins == "auto":
        return DECILES
    if isinstance(bins, Mapping):
        return {name: DECILES if isinstance(rule, str) and rule == "auto" else rule for name, rule in bins.items()}
    return bins


def _check_one_decision(names: Sequence[str]) -> None:
    if len(names) > 1:
        raise TableError(
            f"Rules predict one column, but {len(names)} decisions are given: {', '.join(map(repr, names))}. "
            "Name one, or make one column of them."
        )
