"""Every distinct field of every column of a text file, found by its bytes.

An entry has a word, which is its bytes if there are at most eight and otherwise their hash, and a meta: its column, its
length and whether it was quoted in an ARFF file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.grouping.factorize import mix
from plar.input.text.distinct import Bytes, Index, eight_bytes, longer
from plar.runtime.jit import jit

#: bits of a meta: quoted or not, then the length, then the column
QUOTED, LENGTH, COLUMN = np.uint64(1), np.uint64((1 << 39) - 1), np.uint64(40)
#: multiplied by a meta and added to the word before hashing
SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: word and meta of a field, where it is in the arena, its first chunk and line, and its code
ENTRY = np.dtype([(name, np.uint64) for name in ("word", "meta", "place", "first", "code")])
Entries: TypeAlias = NDArray[Any]
_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)


@dataclass(slots=True)
class Dictionary:
    """Every distinct field of every column; see `tokens.tokenize`."""

    slots: Index
    entries: Entries
    arena: Bytes
    made: int = 0
    filled: int = 0

    @staticmethod
    def of(entries: int, n_bytes: int = 0) -> Dictionary:
        """Allocate for this many entries and bytes."""
        slots = np.zeros(1 << max(10, (2 * entries - 1).bit_length()), np.uint32)
        return Dictionary(slots, np.empty(entries, ENTRY), np.empty(n_bytes, np.uint8))

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each entry."""
        return (self.entries["meta"][: self.made] >> COLUMN).astype(np.int64)

    def reserve(self, entries: int, n_bytes: int) -> None:
        """Make room for this many more."""
        if self.made + entries > len(self.entries):
            self.entries = longer(self.entries, self.made, 2 * (self.made + entries))
            self.slots = np.zeros(1 << (2 * len(self.entries) - 1).bit_length(), np.uint32)
            _rehash(self.slots, self.entries[: self.made])
        if self.filled + n_bytes > len(self.arena):
            self.arena = longer(self.arena, self.filled, self.filled + max(n_bytes, self.filled))


def merged(dictionaries: Sequence[Dictionary]) -> tuple[list[Index], Dictionary]:
    """One dictionary of all, and where the entries of each are in it."""
    if len(dictionaries) == 1:
        only = dictionaries[0]
        return [np.arange(only.made, dtype=np.uint32)], only
    master = Dictionary.of(sum(d.made for d in dictionaries) or 1, sum(d.filled for d in dictionaries))
    places = [np.empty(known.made, np.uint32) for known in dictionaries]
    for known, to in zip(dictionaries, places, strict=True):
        made, filled = _insert_all(
            known.entries[: known.made],
            known.arena,
            master.made,
            master.filled,
            master.slots,
            master.entries,
            master.arena,
            to,
        )
        master.made, master.filled = int(made), int(filled)
    return places, master


@jit
def _length(meta: np.uint64) -> np.uint64:
    """Return the number of bytes of a field."""
    return (meta >> QUOTED) & LENGTH


@jit
def word_of(data: Bytes, start: np.uint64, length: np.uint64) -> np.uint64:
    """Up to eight bytes as they are, the first one lowest; the hash of more."""
    if length <= _EIGHT:
        word = _ZERO
        for k in range(length):
            word |= np.uint64(data[start + k]) << (_EIGHT * k)
        return word
    found, i, last = length, start, start + length - _EIGHT
    while i < last:
        found = mix(found ^ eight_bytes(data, i))
        i += _EIGHT
    return mix(found ^ eight_bytes(data, last))


@jit
def find_entry(
    data: Bytes, start: np.uint64, word: np.uint64, meta: np.uint64, slots: Index, entries: Entries, arena: Bytes
) -> tuple[np.uint64, np.uint32]:
    """Slot of a field, and the entry in it plus one; 0 if the field is new."""
    mask = np.uint64(len(slots)) - _ONE
    at = mix(word ^ (meta * SPREAD)) & mask
    length = _length(meta)
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


@jit
def _rehash(slots: Index, entries: Entries) -> None:
    """Put entries into empty slots."""
    mask = np.uint64(len(slots)) - _ONE
    for e in range(np.uint64(len(entries))):
        at = mix(entries[e].word ^ (entries[e].meta * SPREAD)) & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = np.uint32(e + _ONE)


@jit
def _insert_all(
    entries: Entries,
    arena: Bytes,
    made: int,
    filled: int,
    to_slots: Index,
    to_entries: Entries,
    to_arena: Bytes,
    places: Index,
) -> tuple[np.uint64, np.uint64]:
    """Insert the entries of one dictionary into another, and write their places there; there must be room."""
    n, end = np.uint64(made), np.uint64(filled)
    for e in range(np.uint64(len(entries))):
        own = entries[e]
        at, found = find_entry(arena, own.place, own.word, own.meta, to_slots, to_entries, to_arena)
        if found == 0:
            length = _length(own.meta)
            for k in range(length):
                to_arena[end + k] = arena[own.place + k]
            to_entries[n] = own
            to_entries[n].place = end
            end += length
            n += _ONE
            found = np.uint32(n)
            to_slots[at] = found
        places[e] = found - np.uint32(1)
        to_entries[places[e]].first = min(to_entries[places[e]].first, own.first)
    return n, end
