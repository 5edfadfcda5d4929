"""All columns that beat chance, in layers: those of one reduct, then what could stand in for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from plar.errors import Interrupted, invalid
from plar.measures import Measure
from plar.options import SearchOptions
from plar.results.reduct import Reduct
from plar.results.relevant import Relevant
from plar.search.checkpoint import Checkpoint
from plar.search.greedy import GreedySearch
from plar.session.session import Session
from plar.session.warnings import warn_after


class Relevance:
    """The search for all columns that beat chance.

    Parameters
    ----------
    session : Session
    measure : Measure
    options : SearchOptions
        With `alpha`.
    """

    def __init__(self, session: Session, measure: Measure, options: SearchOptions) -> None:
        if options.alpha is None:
            raise invalid("alpha", "between 0 and 1", None)
        self._session = session
        self._measure = measure
        self._options = options
        self._alpha = options.alpha
        self._checkpoint = Checkpoint(session.run_options.checkpoint)
        self._layers: list[Reduct] = []
        #: the columns of no layer so far
        self._rest: tuple[str, ...] = ()

    def run(self) -> Relevant:
        """Search until nothing beats chance; on Ctrl-C, `Interrupted` brings the layers so far."""
        try:
            self._find_layers()
        except Interrupted as stop:
            self._layers.append(stop.result)
            raise Interrupted(self._result()) from None
        except KeyboardInterrupt:
            if not self._layers:
                raise
            raise Interrupted(self._result()) from None
        warn_after(self._session, [(layer.attributes, layer.n_combinations) for layer in self._layers])
        return self._result()

    def _find_layers(self) -> None:
        """Repeat the search without the columns of the layers before."""
        first = self._search(self._options)
        first.prepare()
        granules = self._session.granules
        self._rest = granules.conditions
        self._add(first.find())
        later = replace(first.options, include=(), start=None)
        while self._rest and self._layers[-1].attributes and perf_counter() < self._session.deadline:
            search = self._search(later)
            self._add(search.find(granules.coarsen(self._rest)))

    def _search(self, options: SearchOptions) -> GreedySearch:
        return GreedySearch(self._session, self._measure, options, self._checkpoint)

    def _add(self, layer: Reduct) -> None:
        self._layers.append(layer)
        self._rest = tuple(a for a in self._rest if a not in layer.attributes)

    def _result(self) -> Relevant:
        """Make the result of the layers, the last of which may be empty."""
        last = self._layers[-1]
        ended = last.complete and not last.attributes
        rejected = last.rejected
        if not rejected and last.certificate.preserved:
            # if nothing is lost without them, the remaining columns say nothing
            rejected = dict.fromkeys(self._rest, 1.0)
        layers: Sequence[Reduct] = [layer for layer in self._layers if layer.attributes]
        return Relevant(
            layers=tuple(layers),
            attributes=tuple(a for layer in layers for a in layer.attributes),
            rejected=rejected if ended else {},
            alpha=self._alpha,
            complete=not self._rest or ended,
            first=self._layers[0],
        )
