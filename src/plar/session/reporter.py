"""Who is told of a call's progress: the caller's functions, the terminal, both, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from plar.engines.job_progress import JobProgress
from plar.errors import Parameter, ParameterError
from plar.results.reduct import Step
from plar.results.selection import SelectionStep

#: called with the phase, how much of it is done, and out of how much
Progress: TypeAlias = Callable[[str, int, int], None]
#: called after every greedy step, or column that is selected
OnStep: TypeAlias = Callable[[Any], None]


class MemoryNeed(NamedTuple):
    """Bytes that a search needs."""

    #: of the coded table
    coded_table: int
    #: of what the engine makes beside it
    engine: int


class Reporter:
    """Whom a call tells of its progress; this one tells nobody else."""

    #: whether `job` is to be called, which takes time
    watches_jobs = False

    def phase(self, name: str, done: int, total: int) -> None:
        """A phase begins, or has done so much of its total; what is counted depends on the phase."""

    def granulated(self, n_granules: int, n_objects: int, memory: MemoryNeed | None) -> None:
        """The table is read; `memory` is what the search needs, if that is known."""

    def resumed(self, n_steps: int, *, has_core: bool = True) -> None:
        """Some steps come from a checkpoint, and the core, if there is one."""

    def job(self, job: JobProgress) -> None:
        """A pass over the candidates has come so far."""

    def step(self, step: Step) -> None:
        """A greedy step is done."""

    def selected(self, step: SelectionStep) -> None:
        """A column is selected."""


#: for calls that nobody follows
SILENT = Reporter()


class Callbacks(Reporter):
    """Calls the functions `progress` and `on_step` of `plar.reduce`."""

    def __init__(self, progress: Progress | None, on_step: OnStep | None) -> None:
        for name, function in (("progress", progress), ("on_step", on_step)):
            if function is not None and not callable(function):
                raise ParameterError(Parameter(name), f" must be a function. Got {function!r} instead.")
        self._progress = progress
        self._on_step = on_step

    def phase(self, name: str, done: int, total: int) -> None:
        """Pass a phase on."""
        if self._progress is not None:
            self._progress(name, done, total)

    def resumed(self, n_steps: int, *, has_core: bool = True) -> None:
        """Pass it on as a phase."""
        self.phase("resume", n_steps, 0)

    def step(self, step: Step) -> None:
        """Pass a step on."""
        if self._on_step is not None:
            self._on_step(step)

    def selected(self, step: SelectionStep) -> None:
        """Pass a step on."""
        if self._on_step is not None:
            self._on_step(step)


class Reporters(Reporter):
    """Passes everything on to several reporters, in their order."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = reporters
        self.watches_jobs = any(reporter.watches_jobs for reporter in reporters)

    def phase(self, name: str, done: int, total: int) -> None:
        """Pass a phase on."""
        for reporter in self._reporters:
            reporter.phase(name, done, total)

    def granulated(self, n_granules: int, n_objects: int, memory: MemoryNeed | None) -> None:
        """Pass on how much was read."""
        for reporter in self._reporters:
            reporter.granulated(n_granules, n_objects, memory)

    def resumed(self, n_steps: int, *, has_core: bool = True) -> None:
        """Pass on what a checkpoint had."""
        for reporter in self._reporters:
            reporter.resumed(n_steps, has_core=has_core)

    def job(self, job: JobProgress) -> None:
        """Pass on how far a pass is."""
        for reporter in self._reporters:
            if reporter.watches_jobs:
                reporter.job(job)

    def step(self, step: Step) -> None:
        """Pass a step on."""
        for reporter in self._reporters:
            reporter.step(step)

    def selected(self, step: SelectionStep) -> None:
        """Pass a column on."""
        for reporter in self._reporters:
            reporter.selected(step)
