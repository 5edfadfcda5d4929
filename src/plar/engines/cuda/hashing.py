"""Columns of many values on the GPU: the cells (class, value) and (run, value) are counted in a hash table each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import cuda

from plar.engines.cuda.kernels import add_f, device, kernel
from plar.jit import jit
from plar.partition import Array

__all__ = ["empty_slots", "hash_kernel", "sweep_kernel"]

U = np.uint64
_0, _1, _2, _3 = U(0), U(1), U(2), U(3)
#: no key of a hash table
_EMPTY = U(0xFFFFFFFFFFFFFFFF)
#: marks the key of a run, as against a class
_RUN = U(1 << 63)


@kernel
def empty_slots(slots: Array, owners: Array, n: int) -> None:
    """Empty all slots of hash tables."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        slots[2 * i] = _EMPTY
        slots[2 * i + 1] = 0
        if i < len(owners):
            owners[i] = 0


@jit
def _scattered(key: np.uint64) -> np.uint64:
    # the finaliser of splitmix64: keys that follow each other fall far apart
    key = (key ^ (key >> U(30))) * U(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> U(27))) * U(0x94D049BB133111EB)
    return key ^ (key >> U(31))


@device
def _add_to_slot(key: np.uint64, weight: np.uint64, slots: Array, first: np.uint64, capacity: np.uint64) -> np.uint64:
    # Adds to the count of the key, which takes a slot if it had none, and returns the slot. A slot is a key and its
    # count; capacity is a power of two.
    slot = U(_scattered(key)) & (capacity - _1)
    while True:
        place = _2 * (first + slot)
        found = slots[place]
        if found == _EMPTY:
            found = U(cuda.atomic.cas(slots, place, _EMPTY, key))
        if found in (_EMPTY, key):
            cuda.atomic.add(slots, place + _1, weight)
            return first + slot
        slot = (slot + _1) & (capacity - _1)


@cache
def hash_kernel(pure: bool) -> Any:
    """Make the kernel that counts the cells of columns of many values, a hash table for each column."""

    @kernel
    def count(
        codes: Array,
        n_rows: np.uint64,
        wanted: Array,
        n_values: np.uint64,
        order: Array,
        weights: Array,
        class_of: Array,
        run_of: Array,
        slots: Array,
        owners: Array,
        capacity: np.uint64,
    ) -> None:
        thread, n = U(cuda.grid(1)), U(len(order))
        table, i = thread // n, thread % n
        if table >= U(len(wanted)):
            return
        code = U(codes[U(wanted[table]) * n_rows + U(order[i])])
        w, run, first = U(weights[i]), U(run_of[i]), table * capacity
        slot = _add_to_slot(U(class_of[i]) * n_values + code, w, slots, first, capacity)
        if pure:
            owner = U(cuda.atomic.cas(owners, slot, _0, run + _1))
            if owner != _0 and owner != run + _1:
                owners[slot] = _EMPTY
        else:
            _add_to_slot((run * n_values + code) | _RUN, w, slots, first, capacity)

    return count


@cache
def sweep_kernel(pure: bool) -> Any:
    """Make the kernel that adds θ of the cells in hash tables, and empties these."""

    @kernel
    def sweep(
        kind: int,
        slots: Array,
        owners: Array,
        capacity: np.uint64,
        stretch: np.uint64,
        table: Array,
        anchors: Array,
        sums: Array,
    ) -> None:
        words = cuda.local.array(3, np.int64)
        per_table = capacity // stretch
        thread = U(cuda.grid(1))
        number = thread // per_table
        if number * U(3) >= U(len(sums)):
            return
        for k in range(3):
            words[k] = 0
        for j in range(stretch):
            slot = number * capacity + thread % per_table + U(j) * per_table
            key, count = slots[_2 * slot], slots[_2 * slot + _1]
            if key != _EMPTY:
                if not pure:
                    add_f(kind, U(count), -1 if key >= _RUN else 1, table, anchors, words, 0)
                elif owners[slot] != _EMPTY:
                    words[0] -= np.int64(count)
                slots[_2 * slot] = _EMPTY
                slots[_2 * slot + _1] = 0
                if pure:
                    owners[slot] = 0
        for k in range(3):
            if words[k] != 0:
                cuda.atomic.add(sums, number * _3 + U(k), words[k])

    return sweep
