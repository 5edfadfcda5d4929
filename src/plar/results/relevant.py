"""All columns that beat chance, in layers: what `plar.relevant` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from plar.errors import printable
from plar.results.reduct import Reduct

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
        """The result as JSON can hold it."""
        fields = {name: value for name, value in asdict(self).items() if name not in ("layers", "first")}
        return {**fields, "layers": [layer.to_dict() for layer in self.layers]}

    @property
    def cuts(self) -> Mapping[str, tuple[float, ...]]:
        """The cut points of binned columns; see `Reduct`."""
        return self.first.cuts

    def transform(self, data: Any, *, output: str = "values") -> Any:
        """Select the relevant columns of any table that has them; see `Reduct.transform`."""
        return replace(self.first, attributes=self.attributes).transform(data, output=output)
