"""Jobs on a cluster, and their progress."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from plar.engines.progress_hooks import JobProgress, Watch
from plar.measures import OWN, Measure
from plar.spark_calls import polled, spark_call

if TYPE_CHECKING:
    from pyspark import RDD

__all__ = ["JobProgress", "Tell", "Watch", "run_watched", "sent_once"]


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


#: called with the tasks done, out of how many, the least Θ so far with its attribute, and the seconds left
Tell: TypeAlias = Callable[[int, int, tuple[int, int] | None, float | None], None]


@spark_call
def run_watched(rdd: RDD[Any], function: Any, tasks: Sequence[int], tell: Tell | None = None) -> list[Any]:
    """Run a function of a partition's records on some partitions; the thread that waits reports the progress."""
    context = rdd.context
    if tell is None:
        return list(context.runJob(rdd, function, tasks))
    status = context.accumulator((0, None), _status_param())
    with polled(partial(_look, tell, status, len(tasks), monotonic())):
        return list(context.runJob(rdd, partial(_counted, function=function, status=status), tasks))


def _look(tell: Tell, status: Any, total: int, began: float) -> None:
    done, best = status.value
    done = min(done, total)  # a task that ran twice counts twice
    left = (monotonic() - began) / done * (total - done) if done else None
    tell(done, total, best, left)


def _counted(records: Iterable[Any], function: Any, status: Any) -> Iterator[Any]:
    best: tuple[int, int] | None = None
    for record in function(records):
        if isinstance(record, tuple) and isinstance(record[-1], list):
            best = _least([best, *((theta, a) for a, theta, *_ in record[-1])])
        yield record
    status.add((1, best))


def _least(found: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    return min((one for one in found if one is not None), default=None)


def _status_param() -> Any:
    from pyspark import AccumulatorParam

    class Status(AccumulatorParam):  # type: ignore[type-arg]
        """Tasks done, and the least Θ of all."""

        def zero(self, value: Any) -> Any:
            return (0, None)

        def addInPlace(self, a: Any, b: Any) -> Any:  # noqa: N802 - pyspark's name
            return (a[0] + b[0], _least([a[1], b[1]]))

    return Status()
