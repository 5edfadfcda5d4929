"""The search for the core alone: `plar.core`."""

from __future__ import annotations

from plar.search.base import Search
from plar.session.warnings import warn_after


class CoreSearch(Search):
    """The search for the core alone."""

    def run(self) -> tuple[str, ...]:
        """Find the core."""
        self.prepare()
        self.find_core()
        names = self.names_of(self.core)
        warn_after(self.session, [(names, None)])
        return names
