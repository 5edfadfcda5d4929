"""Every distinct field of every column of a text file, found by its bytes.

An entry has a word, which is its bytes if there are at most eight and otherwise their hash, and a meta: its
column, its length and whether it was quoted in an ARFF file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import Bytes, mix
from plar.grouping.partition import Index
from plar.input.text.distinct import eight_bytes, longer
from plar.runtime.jit import borrowing

#: in the lowest bit of a meta: the field was quoted in an ARFF file
META_QUOTED = np.uint64(1)
META_LENGTH_SHIFT = np.uint64(1)
META_LENGTH_MASK = np.uint64((1 << 39) - 1)
META_COLUMN_SHIFT = np.uint64(40)
#: multiplied by a meta and added to the word before hashing
SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: word and meta of a field, where it is in the arena, its first chunk and line, and its code
ENTRY = np.dtype([(name, np.uint64) for name in ("word", "meta", "place", "first", "code")])
Entries: TypeAlias = NDArray[Any]
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)
_MIN_SLOTS = 1 << 10


@dataclass(slots=True)
class Dictionary:
    """Every distinct field of every column; see `tokens.tokenize`."""

    slots: Index
    entries: Entries
    arena: Bytes
    #: entries, and bytes of the arena, that are in use
    n_entries: int = 0
    n_bytes: int = 0

    @staticmethod
    def of(entries: int, n_bytes: int = 0) -> Dictionary:
        """Allocate for this many entries and bytes."""
        slots = np.zeros(max(_MIN_SLOTS, _n_slots(entries)), np.uint32)
        return Dictionary(slots, np.empty(entries, ENTRY), np.empty(n_bytes, np.uint8))

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each entry."""
        return (self.entries["meta"][: self.n_entries] >> META_COLUMN_SHIFT).astype(np.int64)

    def reserve(self, entries: int, n_bytes: int) -> None:
        """Allocate for this many more."""
        if self.n_entries + entries > len(self.entries):
            self.entries = longer(self.entries, self.n_entries, 2 * (self.n_entries + entries))
            self.slots = np.zeros(_n_slots(len(self.entries)), np.uint32)
            _rehash(self.slots, self.entries[: self.n_entries])
        if self.n_bytes + n_bytes > len(self.arena):
            self.arena = longer(self.arena, self.n_bytes, self.n_bytes + max(n_bytes, self.n_bytes))


def _n_slots(n_entries: int) -> int:
    """At least twice as many slots as entries, a power of two."""
    return 1 << (2 * n_entries - 1).bit_length()


def lengths_of(metas: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The numbers of bytes of fields."""
    return (metas >> META_LENGTH_SHIFT) & META_LENGTH_MASK


def merged(dictionaries: Sequence[Dictionary]) -> tuple[list[Index], Dictionary]:
    """One dictionary of all, and where the entries of each are in it."""
    if len(dictionaries) == 1:
        only = dictionaries[0]
        return [np.arange(only.n_entries, dtype=np.uint32)], only
    n_entries = sum(dictionary.n_entries for dictionary in dictionaries)
    n_bytes = sum(dictionary.n_bytes for dictionary in dictionaries)
    master = Dictionary.of(n_entries or 1, n_bytes)
    places = [np.empty(dictionary.n_entries, np.uint32) for dictionary in dictionaries]
    for dictionary, to in zip(dictionaries, places, strict=True):
        master.n_entries, master.n_bytes = _insert_all(
            dictionary.entries[: dictionary.n_entries],
            dictionary.arena,
            master.n_entries,
            master.n_bytes,
            master.slots,
            master.entries,
            master.arena,
            to,
        )
    return places, master


@borrowing
def word_of(data: Bytes, start: np.uint64, length: np.uint64) -> np.uint64:
    """Up to eight bytes as they are, the first one lowest; the hash of more."""
    if length <= _EIGHT:
        word = _ZERO
        for k in range(length):
            word |= np.uint64(data[start + k]) << (_EIGHT * k)
        return word
    hashed = length
    i = start
    last = start + length - _EIGHT
    while i < last:
        hashed = mix(hashed ^ eight_bytes(data, i))
        i += _EIGHT
    return mix(hashed ^ eight_bytes(data, last))


@borrowing
def find_entry(
    data: Bytes, start: np.uint64, word: np.uint64, meta: np.uint64, slots: Index, entries: Entries, arena: Bytes
) -> tuple[np.uint64, np.uint32]:
    """Slot of a field, and the entry in it plus one; 0 if the field is new."""
    mask = np.uint64(len(slots)) - _ONE
    at = mix(word ^ (meta * SPREAD)) & mask
    length = (meta >> META_LENGTH_SHIFT) & META_LENGTH_MASK
    while slots[at] != 0:
        entry = entries[slots[at] - np.uint32(1)]
        if entry.word == word and entry.meta == meta:
            k = _ZERO if length > _EIGHT else length
            while k < length and arena[entry.place + k] == data[start + k]:
                k += _ONE
            if k == length:
                return at, slots[at]
        at = (at + _ONE) & mask
    return at, np.uint32(0)


@borrowing
def _rehash(slots: Index, entries: Entries) -> None:
    """Put entries into empty slots."""
    mask = np.uint64(len(slots)) - _ONE
    for e in range(np.uint64(len(entries))):
        at = mix(entries[e].word ^ (entries[e].meta * SPREAD)) & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = np.uint32(e + _ONE)


@borrowing
def _insert_all(
    entries: Entries,
    arena: Bytes,
    n_entries: int,
    n_bytes: int,
    to_slots: Index,
    to_entries: Entries,
    to_arena: Bytes,
    places: Index,
) -> tuple[int, int]:
    """Insert the entries of one dictionary into another, which is large enough, and write their places there.

    Returns how many entries and bytes that one has then.
    """
    n = np.uint64(n_entries)
    end = np.uint64(n_bytes)
    for e in range(np.uint64(len(entries))):
        entry = entries[e]
        at, number = find_entry(arena, entry.place, entry.word, entry.meta, to_slots, to_entries, to_arena)
        if number == 0:
            length = (entry.meta >> META_LENGTH_SHIFT) & META_LENGTH_MASK
            for k in range(length):
                to_arena[end + k] = arena[entry.place + k]
            to_entries[n] = entry
            to_entries[n].place = end
            end += length
            n += _ONE
            number = np.uint32(n)
            to_slots[at] = number
        places[e] = number - np.uint32(1)
        to_entries[places[e]].first = min(to_entries[places[e]].first, entry.first)
    return int(n), int(end)
