"""Distinct byte strings with their counts: lines of a file, and rows of codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from plar.grouping.factorize import Bytes, mix
from plar.grouping.partition import Index, U64Array
from plar.runtime.jit import jit

#: bytes that may be read beyond the data
PADDING = 8
#: from here on an arena gets all the bytes it may need at once
_LARGE_ARENA_BYTES = 1 << 25
#: strings looked up together
_STRINGS_PER_BATCH = 32
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_EIGHT = np.uint64(8)
#: bits of half a word, and a mask of the lower half
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
#: the lowest and the highest bit of each byte of a word
_EACH = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
#: eight line ends
_LINE_ENDS = np.uint64(0x0A0A0A0A0A0A0A0A)
#: how far a hash is shifted to choose a slot, of two words, by its upper half
_HASH_SHIFT = np.uint64(31)
#: bits of a count in the second word of a slot, with a place above them
_PLACE_SHIFT = np.uint64(34)


def longer(array: NDArray[Any], n: int, size: int) -> NDArray[Any]:
    """Copy the first n entries of an array to a longer one."""
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[:n] = array[:n]
    return grown


class Distinct:
    r"""A set of strings of bytes; once they are large, `n_bytes` are reserved, so that none is moved again.

    >>> lines = Distinct()
    >>> data, (bounds, hashes) = np.frombuffer(b"ab\nc\nab\n" + bytes(PADDING), np.uint8), np.empty((2, 9), np.uint64)
    >>> n = find_lines(data, np.uint64(8), bounds, hashes)
    >>> numbers, new = lines.add(data, bounds[: n + 1], hashes)
    >>> numbers.tolist(), new.tolist()
    ([0, 1, 0], [0, 1])
    >>> lines.counts.tolist(), lines.arena[: lines.n_bytes].tobytes()
    ([2, 1], b'ab\nc\n')
    """

    def __init__(self, n_bytes: int = 0) -> None:
        self.n_strings = 0
        self.n_bytes = 0
        self.arena = np.empty(0, np.uint8)
        self._reserved_bytes = n_bytes
        #: two words each; see `_add`
        self._slots = np.zeros(0, np.uint64)

    @property
    def counts(self) -> U64Array:
        """How often each string was seen; those appended, once."""
        counts = np.ones(self.n_strings, np.uint64)
        _list_counts(self._slots, counts)
        return counts

    def add(self, data: Bytes, bounds: U64Array, hashes: U64Array, keep: bool = True) -> tuple[Index, Index]:
        """Return the number of each string, in order of first appearance, and which strings are new.

        No string may be a prefix of another. The bytes of new ones are appended to `arena`, from `n_bytes`
        on. If they are not to be kept, `n_bytes` stays, and they get no number.
        """
        n = len(bounds) - 1
        if 3 * (self.n_strings + n) > len(self._slots):  # few, because new memory is slow too
            slots = np.zeros(2 << (2 * (self.n_strings + n)).bit_length(), np.uint64)
            _rehash(self._slots, slots)
            self._slots = slots
        self._reserve(int(bounds[-1] - bounds[0]) + PADDING)
        numbers, new = np.empty((2, n), np.uint32)
        state = np.array([self.n_strings, self.n_bytes, 0], np.uint64)
        _add(data, bounds, hashes, keep, self._slots, self.arena, numbers, new, state)
        if keep:
            self.n_strings = int(state[0])
            self.n_bytes = int(state[1])
        return numbers, new[: int(state[2])]

    def append(self, data: Bytes, n: int) -> Index:
        """Append so many strings, without looking for equal ones; return their numbers."""
        size = len(data) - PADDING
        self._reserve(size + PADDING)
        self.arena[self.n_bytes : self.n_bytes + size] = data[:size]
        self.n_bytes += size
        first = self.n_strings
        self.n_strings += n
        return np.arange(first, self.n_strings, dtype=np.uint32)

    def _reserve(self, size: int) -> None:
        """Make the arena large enough for this many more bytes."""
        if self.n_bytes + size <= len(self.arena):
            return
        larger = 4 * (self.n_bytes + size)
        if larger >= _LARGE_ARENA_BYTES:
            larger = max(self.n_bytes + size, self._reserved_bytes)
        self.arena = longer(self.arena, self.n_bytes, larger)


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
        array_struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array_struct.data, [arguments[1]]), ir.IntType(8).as_pointer())
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
def bytes_before(marks: np.uint64) -> np.uint64:
    """A mask of the bytes before the first of some `matches`."""
    return ((marks & (~marks + _ONE)) >> np.uint64(7)) - _ONE


@jit
def n_bytes_in(mask: np.uint64) -> np.uint64:
    """How many bytes a mask has."""
    return ((mask & _EACH) * _EACH) >> np.uint64(56)


@jit
def _mixed(word: np.uint64, key: np.uint64) -> np.uint64:
    """Product of the halves of a word and a key; such products are independent and added up."""
    return (((word & _LOW) + (key & _LOW)) & _LOW) * (((word >> _HALF) + (key >> _HALF)) & _LOW)


@jit
def find_lines(data: Bytes, end: np.uint64, bounds: U64Array, hashes: U64Array) -> int:
    """Write 0 and where each line ends to `bounds`, and its hash; return how many. The last one is complete."""
    i = _ZERO
    n = _ZERO
    bounds[0] = _ZERO
    while i < end:
        word = eight_bytes(data, i)
        line_ends = matches(word, _LINE_ENDS)
        total = _ZERO
        key = _STEP
        while line_ends == _ZERO:
            total += _mixed(word, key)
            key += _STEP
            i += _EIGHT
            word = eight_bytes(data, i)
            line_ends = matches(word, _LINE_ENDS)
        before = bytes_before(line_ends)
        i += n_bytes_in(before) + _ONE
        hashes[n] = mix((total + _mixed(word & before, key)) ^ i - bounds[n])
        n += _ONE
        bounds[n] = i
    return int(n)


@jit
def hash_rows(data: Bytes, width: np.uint64, hashes: U64Array) -> None:
    """Hash strings of one length."""
    for k in range(np.uint64(len(hashes))):
        i = k * width
        end = (k + _ONE) * width
        total = _ZERO
        key = _STEP
        while i + _EIGHT <= end:
            total += _mixed(eight_bytes(data, i), key)
            key += _STEP
            i += _EIGHT
        if i < end:
            total += _mixed(eight_bytes(data, i) << (_EIGHT * (i + _EIGHT - end)), key)
        hashes[k] = mix(total)


@jit
def _equal(data: Bytes, start: np.uint64, end: np.uint64, arena: Bytes, place: np.uint64) -> bool:
    i = start
    k = place
    while i + _EIGHT <= end:
        if eight_bytes(data, i) != eight_bytes(arena, k):
            return False
        i += _EIGHT
        k += _EIGHT
    return i == end or bool((eight_bytes(data, i) ^ eight_bytes(arena, k)) << (_EIGHT * (i + _EIGHT - end)) == _ZERO)


@jit
def _add(
    data: Bytes,
    bounds: U64Array,
    hashes: U64Array,
    keep: bool,
    slots: U64Array,
    arena: Bytes,
    numbers: Index,
    new: Index,
    state: U64Array,
) -> None:
    """Number the strings between bounds; the arena must be large enough for all of them.

    A slot has two words: the upper half of a hash, by which it is found, with the string's number plus one;
    and where the string begins in the arena, with its count. In `state`, in and out: strings kept, their
    bytes; out: new.
    """
    mask = np.uint64(len(slots)) - _TWO
    n = state[0]
    to = state[1]
    n_new = _ZERO
    last = np.uint64(len(bounds)) - _ONE
    for begin in range(_ZERO, last, np.uint64(_STRINGS_PER_BATCH)):
        stop = min(begin + np.uint64(_STRINGS_PER_BATCH), last)
        # memory is slow, so all slots are prefetched before the first string is looked up
        for k in range(begin, stop):
            prefetch(slots, (hashes[k] >> _HASH_SHIFT) & mask)
        for k in range(begin, stop):
            place = slots[((hashes[k] >> _HASH_SHIFT) & mask) + _ONE] >> _PLACE_SHIFT
            prefetch(arena, place)
            prefetch(arena, place + np.uint64(64))
            prefetch(arena, place + bounds[k + _ONE] - bounds[k])
        for k in range(begin, stop):
            upper_half = hashes[k] >> _HALF
            start = bounds[k]
            end = bounds[k + _ONE]
            at = (hashes[k] >> _HASH_SHIFT) & mask
            while slots[at] != _ZERO:
                if slots[at] >> _HALF == upper_half and _equal(
                    data, start, end, arena, slots[at + _ONE] >> _PLACE_SHIFT
                ):
                    break
                at = (at + _TWO) & mask
            if slots[at] != _ZERO:
                slots[at + _ONE] += _ONE
                numbers[k] = (slots[at] & _LOW) - _ONE
                continue
            for i in range(end - start):
                arena[to + i] = data[start + i]
            numbers[k] = n
            new[n_new] = k
            n_new += _ONE
            if keep:
                n += _ONE
                slots[at] = (upper_half << _HALF) | n
                slots[at + _ONE] = (to << _PLACE_SHIFT) | _ONE
            to += end - start
    state[0] = n
    state[1] = to
    state[2] = n_new


@jit
def _rehash(slots: U64Array, to: U64Array) -> None:
    """Move the slots to others, which are empty."""
    mask = np.uint64(len(to)) - _TWO
    for i in range(_ZERO, np.uint64(len(slots)), _TWO):
        if slots[i] != _ZERO:
            at = (slots[i] >> _HASH_SHIFT) & mask
            while to[at] != _ZERO:
                at = (at + _TWO) & mask
            to[at] = slots[i]
            to[at + _ONE] = slots[i + _ONE]


@jit
def _list_counts(slots: U64Array, counts: U64Array) -> None:
    for i in range(_ZERO, np.uint64(len(slots)), _TWO):
        if slots[i] != _ZERO:
            counts[(slots[i] & _LOW) - _ONE] = slots[i + _ONE] & ((_ONE << _PLACE_SHIFT) - _ONE)
