"""All columns that beat chance, in layers: what `plar.relevant` returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from plar.errors import TableError, printable
from plar.results.from_json import from_json
from plar.results.reduct import Reduct
from plar.results.reduct import from_dict as reduct_from_dict
from plar.results.saved import save, writable
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from plar.results.report.pages import Page

__all__ = ["Relevant"]

#: rejected columns to show
_MAX_REJECTED = 5


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
        n_all = len(self.first.conditions)
        return f"<Relevant: {len(self.attributes)} of {n_all} columns beat chance, in {len(self.layers)} layers>"

    def __str__(self) -> str:
        """A summary for people."""
        head = f"{len(self.attributes):,} of {len(self.first.conditions):,} columns beat chance at {self.alpha:g}"
        if not self.complete:
            head += "; stopped before all layers were found"
        lines = [head]
        if self.layers:
            lines.append("")
        for i, layer in enumerate(self.layers, 1):
            lines.append(f"layer {i:<3} {', '.join(map(printable, layer.attributes))}")
        nearest = sorted(self.rejected, key=self.rejected.__getitem__)[:_MAX_REJECTED]
        if nearest:
            shown = ", ".join(f"{printable(name)} ({self.rejected[name]:.2g})" for name in nearest)
            lines += ["", f"{len(self.rejected):,} rejected; the smallest p-values: {shown}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; `first` is null where it is the first of the layers."""
        first = None if self.layers and self.first == self.layers[0] else self.first.to_dict()
        return {
            "kind": "relevant",
            "attributes": self.attributes,
            "rejected": self.rejected,
            "alpha": self.alpha,
            "complete": self.complete,
            "layers": [layer.to_dict() for layer in self.layers],
            "first": first,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)

    def to_frame(self) -> polars.DataFrame:
        """One row for each column of the table, as a polars frame.

        Columns: ``column``, ``layer`` and ``rank``, from 1 on, of those that beat chance, ``role`` (relevant, included,
        rejected, undecided), ``gain`` when it was added, ``p_value``, and ``reason`` in words. Unknown numbers are
        null.
        """
        from plar.results.report.layers import layered

        rank_of = {name: rank for rank, name in enumerate(self.attributes, 1)}
        rows = [
            (writable(c.name), c.layer, rank_of.get(c.name), c.role, c.gain, c.p_value, c.reason)
            for c in sorted(layered(self), key=lambda column: column.place)
        ]
        kinds = [pl.String, pl.Int64, pl.Int64, pl.String, pl.Float64, pl.Float64, pl.String]
        names = ["column", "layer", "rank", "role", "gain", "p_value", "reason"]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def report(self, path: str | os.PathLike[str] | None = None, command: str | None = None) -> Page | None:
        """Write the result as one HTML page for people, whole or not at all; see `Reduct.report`."""
        from plar.results.report.pages import relevant_page, save_or_return

        return save_or_return(relevant_page(self, command), path)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the gain of each column, layer by layer; needs the extra ``report``. See `Reduct.plot`."""
        from plar.results.plot_relevant import plot

        return plot(self, ax)

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """The cut points of binned columns; see `Reduct`."""
        return self.first.cuts

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Select the relevant columns of any table that has them; see `Reduct.transform`."""
        return replace(self.first, attributes=self.attributes).transform(data, output=output)


@dataclass(frozen=True, slots=True)
class _Saved:
    """The fields in a file."""

    attributes: tuple[str, ...]
    rejected: Mapping[str, float]
    alpha: float
    complete: bool
    layers: tuple[Any, ...]
    first: Any


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Relevant:
    """Make a result from what `Relevant.to_dict` returned."""
    try:
        fields: _Saved = from_json(_Saved, saved)
        layers = tuple(reduct_from_dict(layer, f"A layer of {where}") for layer in fields.layers)
        if fields.first is None and not layers:
            raise TypeError("'first'")
        first = layers[0] if fields.first is None else reduct_from_dict(fields.first, f"The first layer of {where}")
        if not {*fields.attributes, *fields.rejected} <= set(first.conditions):
            raise TypeError("'attributes'")
        return Relevant(layers, fields.attributes, fields.rejected, fields.alpha, fields.complete, first)
    except TypeError as error:
        raise TableError(f"{where} is not a saved result: {error} is missing or does not fit.") from None
