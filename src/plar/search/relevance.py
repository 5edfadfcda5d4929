"""All columns that beat chance, in layers: those of one reduct, then what could stand in for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from plar.errors import Interrupted
from plar.results.reduct import Reduct
from plar.results.relevant import Relevant
from plar.search.greedy import find_reduct
from plar.search.prepared_search import Searching


def find_layers(search: Searching, alpha: float) -> Relevant:
    """Repeat the search without the columns of the layers before, until nothing beats chance."""
    granules = search.ready.granules
    rest = granules.conditions
    options = search.options
    layers: list[Reduct] = []
    try:
        while not layers or (rest and layers[-1].attributes and perf_counter() < search.deadline):
            part = granules.coarsen(rest) if layers else granules
            layers.append(search.find(find_reduct, part, options))
            rest = tuple(a for a in rest if a not in layers[-1].attributes)
            options = replace(options, include=(), start=None)
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):
            layers.append(stop.reduct)
        if not layers:
            raise
        raise Interrupted(_relevant(layers, rest, alpha)) from None
    search.check(*layers)
    return _relevant(layers, rest, alpha)


def _relevant(searched: Sequence[Reduct], rest: tuple[str, ...], alpha: float) -> Relevant:
    """Make the result from the layers, the last of which may be empty, and the columns in none of them."""
    layers = tuple(layer for layer in searched if layer.attributes)
    last = searched[-1]
    ended = last.complete and not last.attributes
    # if nothing is lost without them, the remaining columns say nothing
    nothing = dict.fromkeys(rest, 1.0) if last.certificate.preserved else {}
    return Relevant(
        layers=layers,
        attributes=tuple(a for layer in layers for a in layer.attributes),
        rejected=(last.rejected or nothing) if ended else {},
        alpha=alpha,
        complete=not rest or ended,
        first=searched[0],
    )
