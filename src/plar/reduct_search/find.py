"""A reduct by either search: greedy, or the smallest with its proof."""

from __future__ import annotations

from plar.measures import Measure
from plar.options import SearchOptions
from plar.results.reduct import Reduct
from plar.search.greedy import GreedySearch
from plar.session.session import Session


def find_reduct(session: Session, measure: Measure, options: SearchOptions) -> Reduct:
    """Find a reduct of a session's table by the search that the options name."""
    if options.search == "smallest":
        from plar.reduct_search.smallest import SmallestSearch  # its solver is imported only if needed

        return SmallestSearch(session, measure, options).run()
    return GreedySearch(session, measure, options).run()
