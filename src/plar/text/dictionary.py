"""Every distinct field of every column of a text file, found by its bytes.

An entry has a word, which is its bytes if they are at most eight and else their hash, and a meta: its column, its
length and whether it was in the quotes of an ARFF file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plar.coding.factorize import mix
from plar.jit import jit
from plar.text.distinct import Bytes, Counts, Index, Words, eight_bytes, longer

__all__ = ["COLUMN", "SPREAD", "Dictionary", "find_entry", "merged", "word_of"]

#: bits of a meta below the column
COLUMN = np.uint64(40)
#: times a meta, added to the word of which the hash is taken
SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ZERO, _ONE, _EIGHT, _FLAG = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(1)


@dataclass(slots=True)
class Dictionary:
    """Every distinct field of every column; see `tokens.tokenize`."""

    slots: Index
    words: Words
    metas: Words
    places: Words
    firsts: Words
    codes: Index
    arena: NDArray[np.uint8]
    made: int = 0
    filled: int = 0

    @staticmethod
    def of(entries: int, n_bytes: int = 0) -> Dictionary:
        """Make room for so many entries and bytes."""
        size = 1 << max(10, (2 * entries - 1).bit_length())
        words, metas, places, firsts = (np.empty(entries, np.uint64) for _ in range(4))
        codes, arena = np.empty(entries, np.uint32), np.empty(n_bytes, np.uint8)
        return Dictionary(np.zeros(size, np.uint32), words, metas, places, firsts, codes, arena)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each entry."""
        return (self.metas[: self.made] >> COLUMN).astype(np.int64)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of bytes of each entry."""
        return ((self.metas[: self.made] & ((_ONE << COLUMN) - _ONE)) >> _ONE).astype(np.int64)

    @property
    def quoted(self) -> NDArray[np.bool_]:
        """Whether each entry was in quotes that count."""
        return (self.metas[: self.made] & _FLAG) > 0

    def reserve(self, entries: int, n_bytes: int) -> None:
        """Make room for so many more."""
        if self.made + entries > len(self.words):
            size = 2 * (self.made + entries)
            for name in ("words", "metas", "places", "firsts", "codes"):
                setattr(self, name, longer(getattr(self, name), self.made, size))
            self.slots = np.zeros(1 << (2 * size - 1).bit_length(), np.uint32)
            _rehash(self.slots, self.words, self.metas, self.made)
        if self.filled + n_bytes > len(self.arena):
            self.arena = longer(self.arena, self.filled, self.filled + max(n_bytes, self.filled))


def merged(dictionaries: Sequence[Dictionary]) -> tuple[list[NDArray[np.uint32]], Dictionary]:
    """One dictionary of all, and where the entries of each are in it."""
    if len(dictionaries) == 1:
        only = dictionaries[0]
        return [np.arange(only.made, dtype=np.uint32)], only
    master = Dictionary.of(sum(d.made for d in dictionaries) or 1, sum(d.filled for d in dictionaries))
    state, entries = np.zeros(2, np.int64), []
    for known in dictionaries:
        places = np.empty(known.made, np.uint32)
        _insert_all(
            known.made,
            known.words,
            known.metas,
            known.places,
            known.firsts,
            known.arena,
            state,
            master.slots,
            master.words,
            master.metas,
            master.places,
            master.firsts,
            master.arena,
            places,
        )
        entries.append(places)
    master.made, master.filled = int(state[0]), int(state[1])
    return entries, master


@jit
def word_of(data: Bytes, start: np.uint64, length: np.uint64) -> np.uint64:
    """Up to eight bytes as they are, the first one lowest; the hash of more."""
    word = _ZERO
    if length <= _EIGHT:
        for k in range(length):
            word |= np.uint64(data[start + k]) << (_EIGHT * k)
        return word
    found, i, last = length, start, start + length
    while i + _EIGHT <= last:
        found = mix(found ^ eight_bytes(data, i))
        i += _EIGHT
    while i < last:
        word = (word << _EIGHT) | np.uint64(data[i])
        i += _ONE
    return mix(found ^ word)


@jit
def find_entry(
    data: Bytes,
    start: np.uint64,
    word: np.uint64,
    meta: np.uint64,
    slots: Index,
    words: Words,
    metas: Words,
    places: Words,
    arena: Bytes,
) -> tuple[np.uint64, np.uint32]:
    """Slot of a field, and the entry in it plus one; 0 if the field is new."""
    mask = np.uint64(len(slots)) - _ONE
    at = mix(word ^ (meta * SPREAD)) & mask
    length = (meta & ((_ONE << COLUMN) - _ONE)) >> _ONE
    while slots[at] != 0:
        entry = slots[at] - np.uint32(1)
        if words[entry] == word and metas[entry] == meta:
            if length <= _EIGHT:
                return at, slots[at]
            place = places[entry]
            k = _ZERO
            while k < length and arena[place + k] == data[start + k]:
                k += _ONE
            if k == length:
                return at, slots[at]
        at = (at + _ONE) & mask
    return at, np.uint32(0)


@jit
def _rehash(slots: Index, words: Words, metas: Words, made: int) -> None:
    """Put the first entries into emptied slots; those of one byte or none are found elsewhere."""
    mask = np.uint64(len(slots)) - _ONE
    for entry in range(np.uint64(made)):
        length = (metas[entry] & ((_ONE << COLUMN) - _ONE)) >> _ONE
        if length < np.uint64(2) and metas[entry] & _FLAG == _ZERO:
            continue
        at = mix(words[entry] ^ (metas[entry] * SPREAD)) & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = np.uint32(entry + _ONE)


@jit
def _insert_all(
    made: int,
    words: Words,
    metas: Words,
    places: Words,
    firsts: Words,
    arena: Bytes,
    state: Counts,
    to_slots: Index,
    to_words: Words,
    to_metas: Words,
    to_places: Words,
    to_firsts: Words,
    to_arena: Bytes,
    entries: Index,
) -> None:
    """Put the entries of one dictionary into another, and write where each is there; there must be room."""
    n, filled = np.uint64(state[0]), np.uint64(state[1])
    for e in range(np.uint64(made)):
        meta, word, place = metas[e], words[e], places[e]
        at, entry = find_entry(arena, place, word, meta, to_slots, to_words, to_metas, to_places, to_arena)
        if entry == 0:
            length = (meta & ((_ONE << COLUMN) - _ONE)) >> _ONE
            for k in range(length):
                to_arena[filled + k] = arena[place + k]
            to_metas[n], to_words[n], to_places[n], to_firsts[n] = meta, word, filled, firsts[e]
            filled += length
            n += _ONE
            entry = np.uint32(n)
            to_slots[at] = entry
        entries[e] = entry - np.uint32(1)
        to_firsts[entries[e]] = min(to_firsts[entries[e]], firsts[e])
    state[0], state[1] = n, filled
