"""The CUDA engine: columns and U/R on an NVIDIA GPU, which returns one integer per candidate.

The kernels are numba's, and f is the local engine's own function, so that both give the same integers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numba import cuda
from numba.core import config

from plar.chance.association import Association
from plar.chance.statistic import associations_within
from plar.engines.base import Engine, LeaveOneOut
from plar.engines.cuda import hashing
from plar.engines.cuda import kernels as cuda_kernels
from plar.engines.cuda.columns import DeviceBlock, DeviceColumns
from plar.engines.cuda.kernels import LANES_PER_WORD, DeviceArray, grid, shared_bytes
from plar.engines.cuda.partition import DevicePartition, Refinery
from plar.engines.job_progress import Watch
from plar.engines.local.kernels import as_int
from plar.engines.local.scoring import Scorer
from plar.errors import EngineUnavailable, ParameterError
from plar.granules.granules import Granules
from plar.grouping.partition import Array, byte_groups, leaving_out_each, smallest_codes
from plar.measures import OWN, PURE, TABLE_LIMIT, Measure
from plar.runtime.parallel import check_jobs
from plar.uncertainty.labels import label_granules
from plar.uncertainty.strata import CrossTab, Strata

P = ParamSpec("P")
R = TypeVar("R")

#: shared memory that a block can have on any GPU
_SHARED_BYTES = 48 << 10
#: threads of a block; fewer if their counters would not fit
_THREADS_PER_BLOCK = 4 if config.ENABLE_CUDASIM else 64
#: this many times as many pieces as the GPU runs at once, so that a slow one does not stall it
_WAVES = 6
_MIN_PIECE_ROWS = 64
#: hash tables at once
_HASH_BYTES = 1 << 28
#: slots that a thread sweeps
_SLOTS_PER_THREAD = 16
#: device memory beside the columns: for each row, and for tables
_BYTES_PER_ROW = 448
_TABLE_BYTES = 1 << 29
#: a processor has no registers for more threads than this
_MAX_THREADS_PER_PROCESSOR = 1024


@dataclass(frozen=True, slots=True)
class CudaEngine(Engine):
    """An NVIDIA GPU.

    Parameters
    ----------
    device : int
        Which one, as the driver counts.
    memory : int, optional
        The most bytes that the columns may use on it; by default what is free, minus working memory. Columns beyond
        that are sent again for every step.
    n_jobs : int, optional
        Threads of this machine, which reads and codes the table; by default, or with -1, all that this
        process may use.

    Examples
    --------
    >>> CudaEngine(device=1).name
    'cuda'
    """

    device: int = 0
    memory: int | None = None
    n_jobs: int | None = None
    name = "cuda"

    def __post_init__(self) -> None:
        check_jobs(self.n_jobs)
        _check_whole("device", self.device, 0)
        if self.memory is not None:
            _check_whole("memory", self.memory, 1)

    def open(self, granules: Granules, measure: Measure, watch: Watch | None = None) -> CudaEvaluation:
        """Prepare the granules for one search; passes are too short to report progress."""
        if measure.kind == OWN:
            raise ParameterError(
                f"The engine 'cuda' computes PR, SCE, LCE and CCE. Use the engine 'local' for measure {measure.name!r}."
            )
        if reason := why_unavailable():
            raise EngineUnavailable(f"The engine 'cuda' {reason}.")
        if self.device >= len(cuda.gpus):
            raise EngineUnavailable(f"There is no GPU {self.device}: the driver has {len(cuda.gpus)}, counted from 0.")
        return CudaEvaluation(granules, measure, self.device, self.memory)


def _check_whole(option: str, value: object, minimum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ParameterError(
            f"The {option!r} of the engine must be a whole number from {minimum}. Got {value!r} instead."
        )


def why_unavailable() -> str | None:
    """Say why this machine cannot run the engine; None if it can."""
    if cuda.is_available():
        return None
    error = cuda.cuda_error()
    if error is None:
        return "needs CUDA's compiler library (pip install 'numba-cuda[cu13]')"
    return "needs an NVIDIA GPU and its driver: " + " ".join(str(error).split()).rstrip(".: ")


def _on_device(method: Callable[P, R]) -> Callable[P, R]:
    """Turn the driver's out-of-memory error into ours, and suppress numba's warnings about small launches."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*under-utilization")
                return method(*args, **kwargs)
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error).upper():
                raise
            raise EngineUnavailable(
                "The GPU has too little memory left for this table. Free some, let the engine keep fewer columns "
                "there (CudaEngine(memory=...)), or use the engine 'local'."
            ) from error

    return guarded


class CudaEvaluation:
    """U/R on the device, and the Θ of every way to refine it; see `plar.engines.base.Evaluation`."""

    @_on_device
    def __init__(self, granules: Granules, measure: Measure, device: int, memory: int | None) -> None:
        gpu = cuda.select_device(device)
        self._kind = measure.kind
        self._n_values = granules.cardinalities
        self._n_rows = len(granules)
        # up to the table of f, sums fit 64 bits: f is convex, so that none is above f(|U|)
        self._exact = granules.n_objects > TABLE_LIMIT
        self._counter: Any = np.uint32 if granules.n_objects < 1 << 32 else np.uint64
        max_values = _SHARED_BYTES // shared_bytes(32, 1, self._counter)
        self._columns = DeviceColumns(granules, max_values, _memory_for_columns(self._n_rows, memory))
        labels = label_granules(granules, measure)
        self._strata = Strata(granules, labels)
        self.consistent = labels.consistent
        scorer = Scorer(measure, granules.n_objects, granules.n_decisions)
        self.theta_all = scorer.total_of_all(granules, labels)
        self.value_all = labels.value(granules, measure, self.theta_all)
        kind, table, anchors = scorer.f
        self._f = kind, cuda.to_device(table), cuda.to_device(anchors)
        self._refinery = Refinery(granules, labels, self._f, self._counter)
        #: U/∅ and U/R
        order = np.argsort(smallest_codes(granules.decision_codes, granules.n_decisions), kind="stable")
        self._root = self._refinery.start(order.astype(np.uint32))
        self._now = self._root
        self._n_processors = int(getattr(gpu, "MULTIPROCESSOR_COUNT", 1))
        self._processor_bytes = int(getattr(gpu, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", _SHARED_BYTES))
        #: buffers of the kernels, allocated when first needed: sums of a block, cut classes and runs, hash tables
        self._sums: dict[int, DeviceArray] = {}
        self._cut: DeviceArray = cuda.device_array(1, self._counter)
        self._hashed: tuple[DeviceArray, ...] = ()

    @property
    def theta(self) -> int:
        """Θ(D|R)."""
        return self._now.theta

    @property
    def unsettled_objects(self) -> int:
        """Objects in classes of U/R that are not settled."""
        return self._now.unsettled

    @_on_device
    def leave_one_out(self, attributes: Sequence[int] | None = None) -> list[LeaveOneOut]:
        """Θ(D|B∖{a}) for every a of B, by divide and conquer: |B| log |B| refinements of shrinking partitions."""
        if attributes is None:
            attributes = range(len(self._n_values))
        # many-valued attributes first: they shrink the partition fastest
        falling = sorted(attributes, key=lambda a: -self._n_values[a])
        result_of: dict[int, LeaveOneOut] = {}
        for group, partition in leaving_out_each(falling, self._root, self._refined, lambda p: not p.unsettled):
            result = LeaveOneOut(self.theta_all, True)
            if partition.unsettled:
                result = LeaveOneOut(partition.theta, False)
            result_of.update(dict.fromkeys(group, result))
        return [result_of[a] for a in attributes]

    @_on_device
    def select(self, *attributes: int) -> int:
        """R ← R ∪ {a, …}; returns Θ(D|R)."""
        self._now = self._refined(self._now, attributes)
        self._strata.select(*attributes)
        return self.theta

    def associations(self, candidates: Sequence[int]) -> list[Association]:
        """How strongly each candidate is associated with the decision, on this machine."""
        return associations_within(self._strata, candidates)

    def cross_tabs(self, candidates: Sequence[int]) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions, on this machine."""
        return self._strata.cross_tabs(candidates)

    def _refined(self, partition: DevicePartition, attributes: Sequence[int]) -> DevicePartition:
        for group in byte_groups((a, self._n_values[a]) for a in attributes):
            if not partition.n_rows:
                break
            partition = self._refinery.refine(partition, [self._columns.codes(a) for a, _ in group])
        return partition

    @_on_device
    def with_each(self, candidates: Sequence[int]) -> list[int]:
        """Θ(D|R∪{a}) for every candidate."""
        now = self._now
        if not now.n_rows or not candidates:
            return [now.theta_dropped] * len(candidates)
        thetas: Array = np.empty(len(self._n_values), object if self._exact else np.int64)
        # everything is launched before the first sums are fetched, and lanes before the candidates are read
        launched: list[tuple[Array, DeviceArray]] = []
        for block, data, stream in self._columns.passes():
            if block.stride:
                launched.append((block.attributes, self._lane_sums(block, data, stream)))
                continue
            places = np.flatnonzero(np.isin(block.attributes, candidates))
            if len(places):
                launched.append((block.attributes[places], self._hashed_sums(block, data, places, stream)))
        for attributes, sums in launched:
            sums3 = sums.copy_to_host().reshape(-1, 3)[: len(attributes)]
            if self._exact:
                thetas[attributes] = [now.theta_dropped + as_int(sum3) for sum3 in sums3]
            else:
                thetas[attributes] = now.theta_dropped + sums3[:, 0] + (sums3[:, 1] << 32)
        in_order: list[int] = thetas[np.fromiter(candidates, np.intp, len(candidates))].tolist()
        return in_order

    def _lane_sums(self, block: DeviceBlock, data: DeviceArray, stream: Any) -> DeviceArray:
        """Sums of a block in lanes, in three words for each attribute; lanes without one come last."""
        now = self._now
        n_values = block.n_values
        pure = self._kind == PURE
        n_words = -(-len(block.attributes) // LANES_PER_WORD)
        threads = _THREADS_PER_BLOCK
        while shared_bytes(threads, n_values, self._counter) > _SHARED_BYTES:
            threads //= 2
        shared = shared_bytes(threads, n_values, self._counter)
        piece = self._piece_rows(n_words, threads, shared)
        n_pieces = -(-now.n_rows // piece)
        is_cut = now.largest > piece
        size = 2 * n_pieces * n_values * LANES_PER_WORD * n_words if is_cut else 1
        if len(self._cut) < size:
            self._cut = cuda.device_array(size, self._counter)
        sums = self._zeros(block, 3 * LANES_PER_WORD * n_words, stream)
        if is_cut:
            self._clear(self._cut, size, self._counter(0), stream)
        cells = cuda_kernels.cells_kernel(pure, self._counter, self._exact and not pure)
        lanes = data, np.uint32(block.stride), np.uint64(n_words)
        launch = (*grid(n_pieces * n_words, threads), stream, shared)
        cells[launch](self._f, lanes, now.segments, np.uint64(piece), np.uint64(n_values), self._cut, sums)
        if is_cut:
            sizes = np.uint64(n_pieces), np.uint64(n_values), np.uint64(LANES_PER_WORD * n_words)
            impure = self._counter(np.iinfo(self._counter).max)
            launch_merge = (*grid(n_pieces * LANES_PER_WORD * n_words, _THREADS_PER_BLOCK), stream)
            cuda_kernels.merge[launch_merge](self._f, self._cut, impure, *sizes, sums)
        return sums

    def _piece_rows(self, n_words: int, threads: int, shared: int) -> int:
        """Rows of a piece: so many pieces that all threads that the GPU runs at once have some."""
        blocks_per_processor = min(self._processor_bytes // shared, _MAX_THREADS_PER_PROCESSOR // threads)
        threads_at_once = self._n_processors * blocks_per_processor * threads
        return max(_MIN_PIECE_ROWS, -(-self._now.n_rows * n_words // (_WAVES * threads_at_once)))

    def _hashed_sums(self, block: DeviceBlock, data: DeviceArray, places: Array, stream: Any) -> DeviceArray:
        """Sums of some columns of many values, in three words each."""
        now = self._now
        capacity = self._capacity(block.n_values)
        batch = min(len(places), max(1, _HASH_BYTES // (24 * capacity)))
        sums = self._zeros(block, 3 * len(places), stream)
        self._make_tables(batch * capacity, stream)
        columns = cuda.to_device(places.astype(np.uint32))
        for i in range(0, len(places), batch):
            part = columns[i : i + batch]
            part_sums = sums[3 * i : 3 * (i + batch)]
            column_codes = data, np.uint64(self._n_rows), part, np.uint64(block.n_values)
            launch = (*grid(len(part) * now.n_rows, _THREADS_PER_BLOCK), stream)
            hashing.count_cells[launch](self._kind, *column_codes, now.rows, self._hashed, np.uint64(capacity))
            launch = (*grid(len(part) * (capacity // _SLOTS_PER_THREAD), _THREADS_PER_BLOCK), stream)
            stretch = np.uint64(_SLOTS_PER_THREAD)
            hashing.sweep[launch](self._f, self._hashed, np.uint64(capacity), stretch, part_sums)
        return sums

    def _capacity(self, n_values: int) -> int:
        """Slots of a hash table, at most half full: cells of classes and, except for PR, of runs."""
        now = self._now
        n_cells = min(now.n_rows, (len(now.starts) - 1) * n_values)
        if self._kind != PURE:
            n_cells += min(now.n_rows, (len(now.runs) - 1) * n_values)
        return max(_SLOTS_PER_THREAD, 1 << (2 * n_cells - 1).bit_length())

    def _make_tables(self, n_slots: int, stream: Any) -> None:
        """Allocate empty hash tables, unless those of an earlier pass, which are empty again, are large enough."""
        if self._hashed and len(self._hashed[0]) >= 2 * n_slots:
            return
        slots = cuda.device_array(2 * n_slots, np.uint64)
        owners = cuda.device_array(n_slots if self._kind == PURE else 1, np.uint64)
        self._hashed = slots, owners
        for values, value in ((slots[::2], hashing.EMPTY), (slots[1::2], 0), (owners, 0)):
            self._clear(values, len(values), np.uint64(value), stream)

    def _zeros(self, block: DeviceBlock, size: int, stream: Any) -> DeviceArray:
        """The sums of a block, set to zero."""
        sums = self._sums.get(id(block))
        if sums is None or len(sums) != size:
            sums = cuda.device_array(size, np.int64)
            self._sums[id(block)] = sums
        cuda_kernels.clear[(*grid(size, _THREADS_PER_BLOCK), stream)](sums, size, np.int64(0))
        return sums

    def _clear(self, values: DeviceArray, n: int, value: Any, stream: Any) -> None:
        cuda_kernels.clear[8 * self._n_processors, _THREADS_PER_BLOCK, stream](values, n, value)


def _memory_for_columns(n_rows: int, wanted: int | None) -> float:
    """Bytes of device memory that the columns may have."""
    free, _ = cuda.current_context().get_memory_info()
    needed = _BYTES_PER_ROW * n_rows + _TABLE_BYTES
    if free < needed:
        raise EngineUnavailable(
            f"The engine 'cuda' needs {needed >> 20} MB of GPU memory beside the columns of this table, and "
            f"{free >> 20} MB are free. Use the engine 'local'."
        )
    available = float(free - needed)  # infinite in the simulator
    return available if wanted is None else min(wanted, available)
