"""Columns that carry the same information: equal up to the names of their values, so U/{a} = U/{b}."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import mix
from plar.grouping.partition import Codes
from plar.runtime.jit import jit

#: columns with more values are not compared: on a cluster their classes would have to be transferred
_MAX_VALUES = 1 << 16

#: the columns of a table, or of a piece of one
Columns = Sequence[Codes]


def equal_columns(
    groups: Iterable[Sequence[int]], n_values: Sequence[int], ask: Callable[[Callable[[Columns], Any]], list[Any]]
) -> list[list[int]]:
    """Columns that are equal up to the names of their values, among those of each group.

    `ask` applies a function to the columns of every piece of the table, and returns the results.
    """
    candidates = [a for group in groups for a in group if n_values[a] <= _MAX_VALUES]
    digests = ask(partial(_digests, places=candidates, n_values=n_values))
    columns_by_digest: dict[tuple[bytes, ...], list[int]] = {}
    for a, digests_of_column in zip(candidates, zip(*digests, strict=True), strict=True):
        columns_by_digest.setdefault(digests_of_column, []).append(a)
    # equal, or a hash collision; the values decide
    pairs = [(group[0], b) for group in columns_by_digest.values() for b in group[1:]]
    if not pairs:
        return []
    translations = ask(partial(_translations, pairs=pairs, n_values=n_values))
    equal: dict[int, list[int]] = {}
    for (a, b), translations_of_pair in zip(pairs, zip(*translations, strict=True), strict=True):
        if _agree(translations_of_pair):
            equal.setdefault(a, [a]).append(b)
    return sorted(equal.values())


@jit
def _add_rows(codes: Codes, sums: NDArray[np.uint64]) -> None:
    for i in range(np.uint64(len(codes))):
        sums[codes[i]] += mix(np.uint64(1) + i)


def _digests(columns: Columns, places: Sequence[int], n_values: Sequence[int]) -> list[bytes]:
    """For every column a digest of its classes: of the sums of the hashes of their rows."""
    digests = []
    for a in places:
        sums = np.zeros(n_values[a], np.uint64)
        _add_rows(columns[a], sums)
        digests.append(blake2b(np.sort(sums).tobytes(), digest_size=16).digest())
    return digests


def _translations(
    columns: Columns, pairs: Sequence[tuple[int, int]], n_values: Sequence[int]
) -> list[NDArray[np.int64] | None]:
    """For every pair the code of b for every code of a, −1 where absent; None if b is not a function of a."""
    translations: list[NDArray[np.int64] | None] = []
    for a, b in pairs:
        code_of_b = np.full(n_values[a], -1, np.int64)
        code_of_b[columns[a]] = columns[b]
        is_function = bool((code_of_b[columns[a]] == columns[b]).all())
        translations.append(code_of_b if is_function else None)
    return translations


def _agree(translations: Iterable[NDArray[np.int64] | None]) -> bool:
    """Whether the translations of several pieces agree."""
    merged: NDArray[np.int64] | None = None
    for translation in translations:
        if translation is None:
            return False
        if merged is None:
            merged = translation
            continue
        in_both = (merged >= 0) & (translation >= 0)
        if ((merged != translation) & in_both).any():
            return False
        merged = np.maximum(merged, translation)
    return True
