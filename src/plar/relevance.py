"""All attributes that beat chance, in layers: those of one chance reduct, then what could stand in for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from plar.chance import LEVEL
from plar.columns import ColumnName as Column
from plar.columns import column_list
from plar.engines.base import Engine
from plar.errors import ParameterError, printable
from plar.limits import as_bytes, as_seconds, memory_limited
from plar.measures import Measure, as_measure
from plar.options import ReadOptions, shows_reading
from plar.progress import followed
from plar.reduct import Reduct
from plar.run import prepared, warn_supervised_bins
from plar.search import OnStep, Options, Progress, find_reduct

__all__ = ["Relevant", "relevant"]

#: rejected attributes that are shown
_NEAREST = 5


@dataclass(frozen=True, slots=True, repr=False)
class Relevant:
    """The attributes that say more about the decision than chance; what `plar.relevant` returns.

    Parameters
    ----------
    layers : tuple of Reduct
        The chance reduct of the table, then that of the table without its attributes, and so on.
    attributes : tuple of str
        Those of all layers, in their order.
    rejected : mapping of str to float
        The p-values of the others, when none of them beat chance any more.
    alpha : float
    complete : bool
        Whether all layers were found; not so after a time limit.
    first : Reduct
        The first layer, also where it is empty.
    """

    layers: tuple[Reduct, ...]
    attributes: tuple[str, ...]
    rejected: Mapping[str, float]
    alpha: float
    complete: bool
    first: Reduct

    def __repr__(self) -> str:
        n, layers = len(self.attributes), len(self.layers)
        return f"<Relevant: {n} of {len(self.first.conditions)} attributes beat chance, in {layers} layers>"

    def __str__(self) -> str:
        """What a person wants to read."""
        found, m = len(self.attributes), len(self.first.conditions)
        lines = [f"{found:,} of {m:,} attributes beat chance at {self.alpha:g}"]
        lines[0] += "" if self.complete else "; stopped before all layers were found"
        lines += [""] * bool(self.layers)
        for i, layer in enumerate(self.layers, 1):
            lines.append(f"layer {i:<3} {', '.join(map(printable, layer.attributes))}")
        nearest = sorted(self.rejected, key=self.rejected.__getitem__)[:_NEAREST]
        if nearest:
            shown = ", ".join(f"{printable(name)} ({self.rejected[name]:.2g})" for name in nearest)
            lines += ["", f"{len(self.rejected):,} rejected; those of the least p-values: {shown}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Turn the result into what JSON can hold."""
        found = {name: value for name, value in asdict(self).items() if name not in ("layers", "first")}
        return {**found, "layers": [layer.to_dict() for layer in self.layers]}

    def transform(self, data: Any) -> Any:
        """Take the relevant columns of any table that has them; see `Reduct.transform`."""
        return replace(self.first, attributes=self.attributes).transform(data)


@shows_reading
def relevant(
    data: Any,
    decision: Column | Sequence[Column] | None = None,
    y: Any = None,
    *,
    alpha: float = LEVEL,
    measure: str | Measure = "SCE",
    engine: str | Engine = "auto",
    include: Column | Iterable[Column] = (),
    max_attributes: int | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
    **reading: Any,
) -> Relevant:
    """Find all attributes that beat chance; parameters as of `reduce`, `max_attributes` for each layer.

    `plar.reduce` with `alpha` leaves out what another attribute says already. Here it is taken again and again, each
    time without the attributes found before, until nothing beats chance: first the needed ones, then their substitutes.
    Attributes that only together say something are not found, since each alone is chance.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(4)]
    >>> found = plar.relevant({"a": bits[0], "copy": bits[0], "noise": bits[3], "d": bits[0]}, "d")
    >>> [layer.attributes for layer in found.layers], found.rejected
    ([('a',), ('copy',)], {'noise': 1.0})
    """
    if alpha is None:
        raise ParameterError("The 'alpha' parameter must be between 0 and 1. Got None instead.")
    read, chosen_measure = ReadOptions(decision, y, **reading), as_measure(measure)
    deadline = perf_counter() + (math.inf if time_limit is None else as_seconds(time_limit))
    options = Options(tuple(column_list(include)), max_attributes=max_attributes, alpha=alpha)
    seconds: dict[str, float] = {}
    with (
        memory_limited(as_bytes(memory_limit)),
        followed(verbose, progress, on_step) as (tell, tell_step, display),
        prepared(data, read, engine, n_jobs, attributes=include, seconds=seconds, progress=tell) as ready,
    ):
        granules, layers, options = ready.granules, list[Reduct](), replace(options, include=ready.attributes)
        rest = granules.conditions
        warn_supervised_bins(ready.table)
        while True:
            found = find_reduct(
                granules if not layers else ready.granules.coarsen(rest),
                chosen_measure,
                ready.engine,
                options,
                seconds=seconds,
                source=ready.table.path,
                settings={
                    **options.plain(list(options.include)),
                    **ready.table.settings(),
                    **({"conditions": list(rest)} if layers else {}),
                },
                progress=tell,
                on_step=tell_step,
                deadline=deadline,
                watch=display.watch if display else None,
            )
            first = layers[0] if layers else found
            layers += [found] if found.attributes else []
            rest = tuple(a for a in rest if a not in found.attributes)
            if not found.steps or not rest or perf_counter() >= deadline:
                break
            options, seconds = replace(options, include=()), {}
    return Relevant(
        layers=tuple(layers),
        attributes=tuple(a for layer in layers for a in layer.attributes),
        # a layer that was complete before its first step says as much as nothing
        rejected=(found.rejected or dict.fromkeys(rest, 1.0)) if found.complete and not found.steps else {},
        alpha=float(alpha),
        complete=not rest or (found.complete and not found.steps),
        first=first,
    )
