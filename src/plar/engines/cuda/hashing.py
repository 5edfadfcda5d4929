"""Columns of many values on the GPU: the cells (class, value) and (run, value) are counted in a hash table each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from plar.engines.cuda.kernels import add_f, add_up, device, kernel
from plar.engines.local.kernels import F
from plar.grouping.partition import Array
from plar.measures import PURE
from plar.runtime.jit import jit

U = np.uint64
_0 = U(0)
_1 = U(1)
_2 = U(2)
#: no key of a hash table
EMPTY = U(0xFFFFFFFFFFFFFFFF)
#: marks the key of a run, as against a class
_RUN = U(1 << 63)


@jit
def _scattered(key: U) -> U:
    # the finaliser of splitmix64: consecutive keys land far apart
    key = (key ^ (key >> U(30))) * U(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> U(27))) * U(0x94D049BB133111EB)
    return key ^ (key >> U(31))


@device
def _add_to_slot(key: U, weight: U, slots: Array, first: U, capacity: U) -> U:
    # Adds to the count of the key, claiming a slot if it has none, and returns the slot. A slot is a key and its
    # count; capacity is a power of two.
    slot = U(_scattered(key)) & (capacity - _1)
    while True:
        place = _2 * (first + slot)
        present = slots[place]
        if present == EMPTY:
            present = U(cuda.atomic.cas(slots, place, EMPTY, key))
        if present in (EMPTY, key):
            cuda.atomic.add(slots, place + _1, weight)
            return first + slot
        slot = (slot + _1) & (capacity - _1)


@kernel
def count_cells(
    kind: int, codes: Array, n_rows: U, wanted: Array, n_values: U, rows: Any, tables: Any, capacity: U
) -> None:
    """Count the cells of columns of many values, in a hash table for each column."""
    order, weights, class_of, run_of = rows
    slots, owners = tables
    thread = U(cuda.grid(1))
    n = U(len(order))
    table = thread // n
    i = thread % n
    if table >= U(len(wanted)):
        return
    code = U(codes[U(wanted[table]) * n_rows + U(order[i])])
    w = U(weights[i])
    run = U(run_of[i])
    first = table * capacity
    slot = _add_to_slot(U(class_of[i]) * n_values + code, w, slots, first, capacity)
    if kind == PURE:
        owner = U(cuda.atomic.cas(owners, slot, _0, run + _1))
        if owner != _0 and owner != run + _1:
            owners[slot] = EMPTY
    else:
        _add_to_slot((run * n_values + code) | _RUN, w, slots, first, capacity)


@kernel
def sweep(f: F, tables: Any, capacity: U, stretch: U, sums: Array) -> None:
    """Add θ of the cells in hash tables, and clear the tables."""
    slots, owners = tables
    pure = f[0] == PURE
    sum3 = cuda.local.array(3, np.int64)
    per_table = capacity // stretch
    thread = U(cuda.grid(1))
    number = thread // per_table
    if number * U(3) >= U(len(sums)):
        return
    for k in range(3):
        sum3[k] = 0
    for j in range(stretch):
        slot = number * capacity + thread % per_table + U(j) * per_table
        key = slots[_2 * slot]
        count = slots[_2 * slot + _1]
        if key != EMPTY:
            if not pure:
                add_f(f, U(count), -1 if key >= _RUN else 1, sum3, 0)
            elif owners[slot] != EMPTY:
                sum3[0] -= np.int64(count)
            slots[_2 * slot] = EMPTY
            slots[_2 * slot + _1] = 0
            if pure:
                owners[slot] = 0
    add_up(sum3, sums, number * U(3))
