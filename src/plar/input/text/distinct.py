"""Distinct byte strings with their counts: lines of a file, and rows of codes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from plar.grouping.factorize import mix
from plar.runtime.jit import jit

Bytes: TypeAlias = NDArray[np.uint8]
Index: TypeAlias = NDArray[np.uint32]
Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

#: bytes that may be read beyond the data
SPARE = 8
#: bytes of strings that are many
_MANY = 1 << 25
#: strings looked up together
_TOGETHER = 32
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ZERO, _ONE, _TWO, _EIGHT, _HALF, _LOW = (np.uint64(n) for n in (0, 1, 2, 8, 32, 0xFFFFFFFF))
_EACH, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
#: a slot, of two words, is chosen by the upper half of a hash; bits of a count, with a place above them
_BELOW, _PLACE = np.uint64(31), np.uint64(34)
_LINE_ENDS = np.uint64(0x0A0A0A0A0A0A0A0A)


def longer(array: NDArray[Any], kept: int, size: int) -> NDArray[Any]:
    """Copy an array to a longer one."""
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[:kept] = array[:kept]
    return grown


class Distinct:
    r"""A set of strings of bytes; once there are many, room for `n_bytes` is reserved, so that none is moved again.

    >>> found = Distinct()
    >>> data, (bounds, hashes) = np.frombuffer(b"ab\nc\nab\n" + bytes(SPARE), np.uint8), np.empty((2, 9), np.uint64)
    >>> n = find_lines(data, np.uint64(8), bounds, hashes)
    >>> numbers, new = found.add(data, bounds[: n + 1], hashes)
    >>> numbers.tolist(), new.tolist()
    ([0, 1, 0], [0, 1])
    >>> found.counts.tolist(), found.arena[: found.filled].tobytes()
    ([2, 1], b'ab\nc\n')
    """

    def __init__(self, n_bytes: int = 0) -> None:
        self.made = self.filled = 0
        self.arena, self._most = np.empty(0, np.uint8), n_bytes
        self._slots = np.zeros(0, np.uint64)

    @property
    def counts(self) -> Words:
        """How often each string was seen; those appended, once."""
        counts = np.ones(self.made, np.uint64)
        _list_counts(self._slots, counts)
        return counts

    def add(self, data: Bytes, bounds: Words, hashes: Words, keep: bool = True) -> tuple[Index, Index]:
        """Return the number of each string, in order of first appearance, and which strings are new.

        No string may be a prefix of another. The bytes of new ones are appended to `arena`, from `filled` on. If they
        are not to be kept, `filled` stays, and they get no number.
        """
        n = len(bounds) - 1
        if 3 * (self.made + n) > len(self._slots):  # two words each; few, because new memory is slow too
            before, self._slots = self._slots, np.zeros(2 << (2 * (self.made + n)).bit_length(), np.uint64)
            _rehash(before, self._slots)
        self._make_room(int(bounds[-1] - bounds[0]) + SPARE)
        numbers, new = np.empty((2, n), np.uint32)
        state = np.array([self.made, self.filled, 0], np.uint64)
        _add(data, bounds, hashes, keep, self._slots, self.arena, numbers, new, state)
        if keep:
            self.made, self.filled = int(state[0]), int(state[1])
        return numbers, new[: int(state[2])]

    def append(self, data: Bytes, n: int) -> Index:
        """Append so many strings, without looking for equal ones; return their numbers."""
        size, first = len(data) - SPARE, self.made
        self._make_room(size + SPARE)
        self.arena[self.filled : self.filled + size] = data[:size]
        self.made, self.filled = first + n, self.filled + size
        return np.arange(first, self.made, dtype=np.uint32)

    def _make_room(self, size: int) -> None:
        if self.filled + size > len(self.arena):
            needed = 4 * (self.filled + size)
            self.arena = longer(self.arena, self.filled, needed if needed < _MANY else max(needed // 4, self._most))


# -- kernels ---------------------------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def eight_bytes(_: Any, data: Any, at: Any) -> Any:
    """Load eight bytes from any address, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, at), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_: Any, array: Any, at: Any) -> Any:
    """Prefetch what will be needed soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(found.data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(call, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, at), generate


@jit
def matches(eight: np.uint64, mark: np.uint64) -> np.uint64:
    """The highest bit of the first byte equal to the mark, which is given eight times; higher bits are meaningless."""
    other = eight ^ mark
    return (other - _EACH) & ~other & _HIGH


@jit
def _mixed(word: np.uint64, key: np.uint64) -> np.uint64:
    """Product of the halves of a word and a key; such products are independent and added up."""
    return (((word & _LOW) + (key & _LOW)) & _LOW) * (((word >> _HALF) + (key >> _HALF)) & _LOW)


@jit
def find_lines(data: Bytes, end: np.uint64, bounds: Words, hashes: Words) -> int:
    """Write 0 and where each line ends to `bounds`, and its hash; return how many. The last one is complete."""
    i, n = _ZERO, _ZERO
    bounds[0] = _ZERO
    while i < end:
        word, total, key = eight_bytes(data, i), _ZERO, _STEP
        found = matches(word, _LINE_ENDS)
        while found == _ZERO:
            total += _mixed(word, key)
            key += _STEP
            i += _EIGHT
            word = eight_bytes(data, i)
            found = matches(word, _LINE_ENDS)
        before = ((found & (~found + _ONE)) >> np.uint64(7)) - _ONE
        i += (((before & _EACH) * _EACH) >> np.uint64(56)) + _ONE
        hashes[n] = mix((total + _mixed(word & before, key)) ^ i - bounds[n])
        n += _ONE
        bounds[n] = i
    return int(n)


@jit
def hash_rows(data: Bytes, width: np.uint64, hashes: Words) -> None:
    """Hash strings of one length."""
    for k in range(np.uint64(len(hashes))):
        i, end, total, key = k * width, (k + _ONE) * width, _ZERO, _STEP
        while i + _EIGHT <= end:
            total += _mixed(eight_bytes(data, i), key)
            key += _STEP
            i += _EIGHT
        if i < end:
            total += _mixed(eight_bytes(data, i) << (_EIGHT * (i + _EIGHT - end)), key)
        hashes[k] = mix(total)


@jit
def _equal(data: Bytes, start: np.uint64, end: np.uint64, arena: Bytes, place: np.uint64) -> bool:
    i, k = start, place
    while i + _EIGHT <= end:
        if eight_bytes(data, i) != eight_bytes(arena, k):
            return False
        i += _EIGHT
        k += _EIGHT
    return i == end or bool((eight_bytes(data, i) ^ eight_bytes(arena, k)) << (_EIGHT * (i + _EIGHT - end)) == _ZERO)


@jit
def _add(
    data: Bytes,
    bounds: Words,
    hashes: Words,
    keep: bool,
    slots: Words,
    arena: Bytes,
    numbers: Index,
    new: Index,
    state: Words,
) -> None:
    """Number the strings between bounds; there must be room for all of them.

    A slot has two words: the upper half of a hash, by which it is found, with the string's number plus one; and where
    the string begins in the arena, with its count. In `state`, in and out: strings kept, their bytes;
    out: new.
    """
    mask = np.uint64(len(slots)) - _TWO
    n, to, fresh, last = state[0], state[1], _ZERO, np.uint64(len(bounds)) - _ONE
    for begin in range(_ZERO, last, np.uint64(_TOGETHER)):
        stop = min(begin + np.uint64(_TOGETHER), last)
        # memory is slow, so all slots are prefetched before the first string is looked up
        for k in range(begin, stop):
            prefetch(slots, (hashes[k] >> _BELOW) & mask)
        for k in range(begin, stop):
            place = slots[((hashes[k] >> _BELOW) & mask) + _ONE] >> _PLACE
            prefetch(arena, place)
            prefetch(arena, place + np.uint64(64))
            prefetch(arena, place + bounds[k + _ONE] - bounds[k])
        for k in range(begin, stop):
            own, start, end = hashes[k] >> _HALF, bounds[k], bounds[k + _ONE]
            at = (hashes[k] >> _BELOW) & mask
            while slots[at] != _ZERO:
                if slots[at] >> _HALF == own and _equal(data, start, end, arena, slots[at + _ONE] >> _PLACE):
                    break
                at = (at + _TWO) & mask
            if slots[at] != _ZERO:
                slots[at + _ONE] += _ONE
                numbers[k] = (slots[at] & _LOW) - _ONE
                continue
            for i in range(end - start):
                arena[to + i] = data[start + i]
            numbers[k], new[fresh] = n, k
            fresh += _ONE
            if keep:
                n += _ONE
                slots[at], slots[at + _ONE] = (own << _HALF) | n, (to << _PLACE) | _ONE
            to += end - start
    state[0], state[1], state[2] = n, to, fresh


@jit
def _rehash(slots: Words, to: Words) -> None:
    """Move the slots to others, which are empty."""
    mask = np.uint64(len(to)) - _TWO
    for i in range(_ZERO, np.uint64(len(slots)), _TWO):
        if slots[i] != _ZERO:
            at = (slots[i] >> _BELOW) & mask
            while to[at] != _ZERO:
                at = (at + _TWO) & mask
            to[at], to[at + _ONE] = slots[i], slots[i + _ONE]


@jit
def _list_counts(slots: Words, counts: Words) -> None:
    for i in range(_ZERO, np.uint64(len(slots)), _TWO):
        if slots[i] != _ZERO:
            counts[(slots[i] & _LOW) - _ONE] = slots[i + _ONE] & ((_ONE << _PLACE) - _ONE)
