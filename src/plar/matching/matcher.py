"""Rules against the rows of any table: which rules match a row, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column
from plar.grouping.bit_sets import as_truth, as_words
from plar.grouping.partition import Codes
from plar.matching.condition import Condition
from plar.matching.value_groups import Groups, Truth, group_values
from plar.runtime.parallel import in_threads

#: rows that a thread takes at a time
_ROWS_AT_A_TIME = 1 << 14


class CodedConditions(NamedTuple):
    """The rows of a table by what the conditions of rules ask of them."""

    n_rows: int
    #: for each column that rules look at: the codes of the rows, and the group of each code
    codes: list[Codes]
    group_of: list[Groups]
    #: where the groups of each column begin
    begins: NDArray[np.int64]
    #: the rules whose conditions on the column hold in each group, as bits, (n_groups, n_words)
    rules_met: NDArray[np.uint64]


class RuleMatcher:
    """Rules, each given by its conditions, that all have to hold.

    Parameters
    ----------
    rules : sequence of sequences of Condition
    """

    def __init__(self, rules: Sequence[Sequence[Condition]]) -> None:
        self._n_rules = len(rules)
        #: for each column the different conditions on it, and which rules have each
        self._rules_with: dict[str, dict[Condition, list[int]]] = {}
        for number, conditions in enumerate(rules):
            for condition in conditions:
                self._rules_with.setdefault(condition.column, {}).setdefault(condition, []).append(number)
        self._all_rules = as_words(np.ones((1, self._n_rules), np.bool_))[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules look at."""
        return tuple(self._rules_with)

    def code(self, columns: Iterable[Column], n_rows: int, decimal: str) -> CodedConditions:
        """Look at the columns, given in the order of `columns`; `decimal` is the mark of numbers in text."""
        codes = []
        group_of = []
        rules_met = []
        for (name, rules_with), column in zip(self._rules_with.items(), columns, strict=True):
            grouped = group_values(name, list(rules_with), column.values, decimal)
            codes.append(column.codes)
            group_of.append(grouped.group_of)
            rules_met.append(as_words(self._rules_met(grouped.holds, rules_with.values())))
        sizes = [len(words) for words in rules_met]
        begins = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        no_words = np.empty((0, len(self._all_rules)), np.uint64)
        return CodedConditions(n_rows, codes, group_of, begins, np.concatenate([no_words, *rules_met]))

    def _rules_met(self, holds: Truth, rules_with: Iterable[Sequence[int]]) -> Truth:
        """Which rules no condition on a column refuses, for each group of its values."""
        rules_met = np.ones((len(holds), self._n_rules), np.bool_)
        for of_condition, rules in zip(holds.T, rules_with, strict=True):
            rules_met[np.ix_(~of_condition, rules)] = False
        return rules_met

    def scores(
        self, coded: CodedConditions, prior: NDArray[np.int64], evidence: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        """For some rows after others, the prior plus the evidence of the rules that match each, for every decision."""
        begins = range(0, coded.n_rows, _ROWS_AT_A_TIME)
        score = partial(self._scores_from, coded, prior, evidence)
        yield from in_threads(score, begins, coded.n_rows * (1 + len(coded.codes)))

    def _scores_from(
        self, coded: CodedConditions, prior: NDArray[np.int64], evidence: NDArray[np.int64], begin: int
    ) -> NDArray[np.int64]:
        from plar.matching.kernels import add_evidence  # which needs numba, as reading rules does not

        groups = _groups(coded, begin)
        scores = np.tile(prior, (len(groups), 1))
        add_evidence(groups, coded.begins, coded.rules_met, self._all_rules, evidence, scores)
        return scores

    def matches(self, coded: CodedConditions) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Each row, and the rules that match it, in their order."""
        for begin in range(0, coded.n_rows, _ROWS_AT_A_TIME):
            groups = _groups(coded, begin)
            words = np.tile(self._all_rules, (len(groups), 1))
            for column, first_group in enumerate(coded.begins):
                words &= coded.rules_met[first_group + groups[:, column]]
            for row, of_row in enumerate(as_truth(words, self._n_rules)):
                yield begin + row, np.flatnonzero(of_row)


def _groups(coded: CodedConditions, begin: int) -> Groups:
    """The groups of some rows, row by row."""
    n_rows = min(_ROWS_AT_A_TIME, coded.n_rows - begin)
    groups = np.empty((n_rows, len(coded.codes)), np.uint32)
    for column, (codes, group_of) in enumerate(zip(coded.codes, coded.group_of, strict=True)):
        groups[:, column] = group_of[codes[begin : begin + n_rows]]
    return groups
