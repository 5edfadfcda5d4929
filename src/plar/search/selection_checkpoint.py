"""What `plar.select` has found so far, kept in a file: each pass over the candidates, each exact test, each column.

A search that resumes runs as ever; what the file has of it is not computed again. The search asks for the same things
in the same order, so a file in which something else comes next is refused.
"""

from __future__ import annotations

import math
import os
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from plar.chance.association import Association
from plar.engines.base import GranuleSet
from plar.engines.stratification import Stratification
from plar.results.selection import SelectionStep
from plar.search.checkpoint_file import CheckpointFile, SavedPass, SavedTest, SelectRecord
from plar.uncertainty.strata import CrossTab

R = TypeVar("R", SavedPass, SavedTest, SelectionStep)

#: statistic, mean and variance, as they are written
_NUMBERS = np.dtype("<f8")


class SelectionCheckpoint:
    """The passes, tests and columns of a search, as they are found; without a path nothing is kept."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._file = CheckpointFile(path)
        #: what the search has not asked for yet
        self._saved: deque[SelectRecord] = deque()
        #: tests that are written with the next pass or step
        self._tests: list[SavedTest] = []
        self.resumed = False

    @property
    def is_behind(self) -> bool:
        """Whether the file has something that the search has not asked for yet."""
        return len(self._saved) > 0

    @property
    def n_steps(self) -> int:
        """How many columns are selected in what the search has not asked for yet."""
        return sum(isinstance(record, SelectionStep) for record in self._saved)

    def begin(self, granules: GranuleSet, options: Mapping[str, Any]) -> None:
        """Describe the search, and take what the file has of it; a file of another search is refused."""
        saved = self._file.begin(granules, {"search": "select", **options})
        if saved is not None:
            self._saved = saved.found_by_select
        self.resumed = self.is_behind

    def measured(self, given: Sequence[int], n_candidates: int) -> list[Association] | None:
        """What an earlier run measured in this pass."""
        saved = self._next(SavedPass)
        if saved is None:
            return None
        self._require(saved.given == tuple(given))
        try:
            numbers = np.frombuffer(b64decode(saved.measured, validate=True), _NUMBERS).reshape(n_candidates, 3)
        except ValueError:
            raise self._file.damaged() from None
        self._require(bool((np.isfinite(numbers) & (numbers >= 0)).all()))
        return [Association(*of_candidate) for of_candidate in numbers.tolist()]

    def add_pass(self, given: Sequence[int], measured: Sequence[Association]) -> None:
        """Save what was measured."""
        if self._file.path is None:
            return
        text = b64encode(np.array(measured, _NUMBERS).tobytes()).decode("ascii")
        self._write("pass", SavedPass(tuple(given), text))

    def tested(self, candidate: int, given: Sequence[int]) -> float | None:
        """What an earlier run found in this exact test."""
        saved = self._next(SavedTest)
        if saved is None:
            return None
        self._require(saved.candidate == candidate and saved.given == tuple(given))
        self._require(0 <= saved.adjusted < math.inf)
        return saved.adjusted

    def add_test(self, candidate: int, given: Sequence[int], adjusted: float) -> None:
        """Save the result of an exact test."""
        self._tests.append(SavedTest(candidate, tuple(given), adjusted))

    def finished(self, step: SelectionStep) -> SelectionStep | None:
        """The step as an earlier run took it: the same but for its seconds."""
        saved = self._next(SelectionStep)
        if saved is not None:
            self._require(saved.seconds >= 0 and replace(saved, seconds=step.seconds) == step)
        return saved

    def add_step(self, step: SelectionStep) -> None:
        """Save a step."""
        if self._file.path is not None:
            self._write("step", step)

    def check_end(self) -> None:
        """Refuse a file that goes on where the search ends."""
        self._require(not self._saved)

    def _next(self, kind: type[R]) -> R | None:
        """What comes next in the file, which must be of this kind."""
        if not self._saved:
            return None
        record = self._saved.popleft()
        if not isinstance(record, kind):
            raise self._file.damaged()
        return record

    def _write(self, kind: str, record: SavedPass | SelectionStep) -> None:
        if self._file.path is not None:
            tests = [("test", asdict(test)) for test in self._tests]
            self._file.append(*tests, (kind, asdict(record)))
        self._tests.clear()

    def _require(self, condition: bool) -> None:
        if not condition:
            raise self._file.damaged()


class SavedStratification:
    """A stratification that measures only what a checkpoint does not have; see `Stratification`."""

    def __init__(self, strata: Stratification, checkpoint: SelectionCheckpoint) -> None:
        self._strata = strata
        self._checkpoint = checkpoint
        self._selected: list[int] = []

    def select(self, *attributes: int) -> None:
        """R ← R ∪ {a, …}."""
        self._selected += attributes
        self._strata.select(*attributes)

    def associations(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> list[Association]:
        """How strongly each candidate is associated with the decision within the classes."""
        given = self._selected if within is None else within
        measured = self._checkpoint.measured(given, len(candidates))
        if measured is None:
            measured = self._strata.associations(candidates, within)
            self._checkpoint.add_pass(given, measured)
        return measured

    def cross_tabs(self, candidates: Sequence[int], within: Sequence[int] | None = None) -> Iterable[CrossTab]:
        """A table of each candidate's values against the decisions, within the classes."""
        return self._strata.cross_tabs(candidates, within)

    def impurity(self, within: Sequence[int] | None = None) -> float:
        """The most that a candidate's statistic could be."""
        return self._strata.impurity(within)
