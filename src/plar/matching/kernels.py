"""The inner loop of prediction: which rules match each row, and what they add up to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plar.runtime.jit import jit

Words = NDArray[np.uint64]


@jit
def add_evidence(
    groups: NDArray[np.uint32],
    begins: NDArray[np.int64],
    rules_met: Words,
    all_rules: Words,
    evidence: NDArray[np.int64],
    scores: NDArray[np.int64],
) -> None:
    """To the scores of each row add the evidence of every rule that matches it.

    Sets of rules are bits of words. `groups` has the group of each row's value in each column, `rules_met` for each
    group the rules whose conditions on that column hold there, those of a column from its `begins` on; `evidence` has a
    row for each rule.
    """
    n_rows, n_columns = groups.shape
    n_words = len(all_rules)
    n_decisions = scores.shape[1]
    one = np.uint64(1)
    for row in range(n_rows):
        for word in range(n_words):
            rules = all_rules[word]
            for column in range(n_columns):
                rules &= rules_met[begins[column] + np.int64(groups[row, column]), word]
                if rules == 0:
                    break
            rule = 64 * word
            while rules != 0:
                if rules & one:
                    for decision in range(n_decisions):
                        scores[row, decision] += evidence[rule, decision]
                rules >>= one
                rule += 1
