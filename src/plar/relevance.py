"""All columns that beat chance, in layers: those of one reduct, then what could stand in for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from time import perf_counter
from typing import Any

from plar.api import reduce
from plar.chance import LEVEL
from plar.errors import Interrupted, ParameterError, printable
from plar.reduct import Reduct
from plar.run import searching

__all__ = ["Relevant", "relevant"]

#: rejected columns to show
_NEAREST = 5


@dataclass(frozen=True, slots=True, repr=False)
class Relevant:
    """The columns that say more about the decision than chance; what `plar.relevant` returns.

    Parameters
    ----------
    layers : tuple of Reduct
        The reduct with `alpha` of the table, then that of the table without its columns, and so on.
    attributes : tuple of str
        Those of all layers, in their order.
    rejected : mapping of str to float
        The p-values of the others, once none of them beats chance.
    alpha : float
    complete : bool
        Whether all layers were found; False if the time limit was reached.
    first : Reduct
        The first layer, which may be empty.
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
        """A summary for people."""
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
        """The result as JSON can hold it."""
        found = {name: value for name, value in asdict(self).items() if name not in ("layers", "first")}
        return {**found, "layers": [layer.to_dict() for layer in self.layers]}

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """The cut points of binned columns; see `Reduct`."""
        return self.first.cuts

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Select the relevant columns of any table that has them; see `Reduct.transform`."""
        return replace(self.first, attributes=self.attributes).transform(data, output=output)


def relevant(data: Any, decision: Any = None, y: Any = None, *, alpha: Any = LEVEL, **options: Any) -> Relevant:
    """Find all columns that beat chance; parameters are those of `reduce`.

    `plar.reduce` with `alpha` leaves out what another column already says. Here the search is repeated without the
    columns found before, until nothing beats chance: first the needed columns, then their substitutes. Columns that are
    informative only together are not found, since each alone looks like chance.

    `include` and `start` apply to the first layer; `max_attributes`, `tolerance` and `minimal` to each of them. The
    checkpoint keeps all layers. On Ctrl-C, the `reduct` of the exception is a Relevant of the layers found.

    Examples
    --------
    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(4)]
    >>> found = plar.relevant({"a": bits[0], "copy": bits[0], "noise": bits[3], "d": bits[0]}, "d")
    >>> [layer.attributes for layer in found.layers], found.rejected
    ([('a',), ('copy',)], {'noise': 1.0})
    """
    given = signature(reduce).bind(data, decision, y, alpha=alpha, **options)
    given.apply_defaults()
    if given.arguments["search"] != "greedy":
        raise ParameterError("plar.relevant always searches greedily, layer by layer. Leave search= out.")
    if alpha is None:
        raise ParameterError("The 'alpha' parameter must be between 0 and 1. Got None instead.")
    with searching(given.arguments) as search:
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
        search.check(*found)
        return _relevant(found, rest, float(alpha))


# the parameters of `reduce`, with another default of alpha
relevant.__signature__ = signature(reduce).replace(  # type: ignore[attr-defined]
    parameters=[p.replace(default=LEVEL) if p.name == "alpha" else p for p in signature(reduce).parameters.values()],
    return_annotation="Relevant",
)


def _relevant(found: Sequence[Reduct], rest: tuple[str, ...], alpha: float) -> Relevant:
    """Make the result from the layers found, the last of which may be empty, and the columns in none of them."""
    layers, last = tuple(layer for layer in found if layer.attributes), found[-1]
    ended = last.complete and not last.attributes
    # if nothing is lost without them, the remaining columns say nothing
    nothing = dict.fromkeys(rest, 1.0) if last.certificate.preserved else {}
    return Relevant(
        layers=layers,
        attributes=tuple(a for layer in layers for a in layer.attributes),
        rejected=(last.rejected or nothing) if ended else {},
        alpha=alpha,
        complete=not rest or ended,
        first=found[0],
    )
