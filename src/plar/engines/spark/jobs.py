"""Jobs on a cluster, and their progress."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from plar.engines.progress_hooks import JobProgress, Watch
from plar.measures import OWN, Measure
from plar.spark_calls import polled, spark_call

if TYPE_CHECKING:
    from pyspark import RDD

__all__ = ["run_watched", "sent_once"]


@dataclass(frozen=True)
class _Sent(Measure):
    """A measure that arrives in a worker as one and the same object for all tasks, so that θ is compiled once."""

    pickled: bytes = b""

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.pickled,)


@lru_cache(maxsize=8)
def _received(pickled: bytes) -> Measure:
    measure: Measure = pickle.loads(pickled)  # made by the driver of this very run
    return measure


def sent_once(measure: Measure) -> Measure:
    """Make a user's measure ready for the tasks; they have the others."""
    if measure.kind != OWN or isinstance(measure, _Sent):
        return measure
    from pyspark import cloudpickle

    parts = measure.name, measure.theta, measure.normaliser, measure.drop_pure, measure.kind
    dumps: Any = cloudpickle.dumps
    return _Sent(*parts, pickled=dumps(measure))


@spark_call
def run_watched(
    rdd: RDD[Any], function: Any, tasks: Sequence[int], watch: Watch | None = None, candidates: int = 0
) -> list[Any]:
    """Run a function of a partition's records on some partitions; the thread that waits reports the progress."""
    context = rdd.context
    if watch is None:
        return list(context.runJob(rdd, function, tasks))
    ended, total, began = context.accumulator(0), len(tasks), monotonic()

    def look() -> None:
        done = min(ended.value, total)  # a task that ran twice counts twice
        left = (monotonic() - began) / done * (total - done) if done else None
        watch(JobProgress(done, total, candidates, None, left))

    with polled(look):
        return list(context.runJob(rdd, partial(_counted, function=function, ended=ended), tasks))


def _counted(records: Iterable[Any], function: Any, ended: Any) -> Iterator[Any]:
    yield from function(records)
    ended.add(1)
