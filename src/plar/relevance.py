"""All attributes that beat chance, in layers: those of one chance reduct, then what could stand in for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from plar.api import reduce
from plar.chance import LEVEL
from plar.errors import Interrupted, ParameterError, printable
from plar.options import takes_options_of
from plar.reduct import Reduct
from plar.run import searching

__all__ = ["Relevant", "relevant"]

#: rejected columns to show
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
        return f"<Relevant: {n} of {len(self.first.conditions)} columns beat chance, in {layers} layers>"

    def __str__(self) -> str:
        """What a person wants to read."""
        found, m = len(self.attributes), len(self.first.conditions)
        lines = [f"{found:,} of {m:,} columns beat chance at {self.alpha:g}"]
        lines[0] += "" if self.complete else "; stopped before all layers were found"
        lines += [""] * bool(self.layers)
        for i, layer in enumerate(self.layers, 1):
            lines.append(f"layer {i:<3} {', '.join(map(printable, layer.attributes))}")
        nearest = sorted(self.rejected, key=self.rejected.__getitem__)[:_NEAREST]
        if nearest:
            shown = ", ".join(f"{printable(name)} ({self.rejected[name]:.2g})" for name in nearest)
            lines += ["", f"{len(self.rejected):,} rejected; the smallest p-values: {shown}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Turn the result into what JSON can hold."""
        found = {name: value for name, value in asdict(self).items() if name not in ("layers", "first")}
        return {**found, "layers": [layer.to_dict() for layer in self.layers]}

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """The cut points of binned columns; see `Reduct`."""
        return self.first.cuts

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Take the relevant columns of any table that has them; see `Reduct.transform`."""
        return replace(self.first, attributes=self.attributes).transform(data, output=output)


@takes_options_of(reduce, alpha=LEVEL)
def relevant(data: Any, decision: Any = None, y: Any = None, *, alpha: float = LEVEL, **options: Any) -> Relevant:
    """Find all attributes that beat chance; parameters as of `reduce`.

    `plar.reduce` with `alpha` leaves out what another attribute says already. Here it is taken again and again, each
    time without the attributes found before, until nothing beats chance: first the needed ones, then their substitutes.
    Attributes that only together say something are not found, since each alone is chance.

    `include` and `start` are for the first layer; `max_attributes`, `tolerance` and `minimal` for each of them. The
    checkpoint keeps all layers. On Ctrl-C the `reduct` of the exception is a Relevant of those found.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(4)]
    >>> found = plar.relevant({"a": bits[0], "copy": bits[0], "noise": bits[3], "d": bits[0]}, "d")
    >>> [layer.attributes for layer in found.layers], found.rejected
    ([('a',), ('copy',)], {'noise': 1.0})
    """
    if options["search"] != "greedy":
        raise ParameterError("plar.relevant searches layer by layer, in a greedy way. Leave 'search' out.")
    if alpha is None:
        raise ParameterError("The 'alpha' parameter must be between 0 and 1. Got None instead.")
    with searching({"data": data, "decision": decision, "y": y, "alpha": alpha, **options}) as search:
        granules = search.ready.granules
        rest, asked, found = granules.conditions, search.options, list[Reduct]()
        try:
            while not found or (rest and found[-1].attributes and perf_counter() < search.deadline):
                found.append(search.find(granules.coarsen(rest) if found else granules, asked))
                rest = tuple(a for a in rest if a not in found[-1].attributes)
                asked = replace(asked, include=(), start=None)
        except KeyboardInterrupt as stop:
            found += [stop.reduct] if isinstance(stop, Interrupted) else []
            if not found:
                raise
            raise Interrupted(_relevant(found, rest, float(alpha))) from None
        return _relevant(found, rest, float(alpha))


def _relevant(found: Sequence[Reduct], rest: tuple[str, ...], alpha: float) -> Relevant:
    """The result of searches, of which the last may have found nothing, when the rest is not in any of them."""
    layers, last = tuple(layer for layer in found if layer.attributes), found[-1]
    ended = last.complete and not last.attributes
    # where Θ is what all of them leave before the first step, they say as much as nothing
    nothing = dict.fromkeys(rest, 1.0) if last.certificate.preserved else {}
    return Relevant(
        layers=layers,
        attributes=tuple(a for layer in layers for a in layer.attributes),
        rejected=(last.rejected or nothing) if ended else {},
        alpha=alpha,
        complete=not rest or ended,
        first=found[0],
    )
