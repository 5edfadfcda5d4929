"""A clock for tests of time limits."""

from __future__ import annotations

import pytest


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in ("session.session", "search.greedy", "search.relevance"):
            monkeypatch.setattr(f"plar.{module}.perf_counter", lambda: self.now)
