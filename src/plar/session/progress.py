"""Progress of a long run on stderr: one live line on a terminal, or a line per step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from plar.engines.job_progress import JobProgress
from plar.errors import printable
from plar.results.reduct import Step
from plar.results.report.words import counted, number
from plar.results.selection import SelectionStep
from plar.runtime.limits import shown_bytes, shown_seconds
from plar.session.reporter import Callbacks, MemoryNeed, OnStep, Progress, Reporter, Reporters

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_WORDS = {
    "read": "opening",
    "granulate": "reading",
    "write": "writing",
    "certificate": "checking the result",
    "select": "selecting",
    "rules": "finding rules",
    "predict": "predicting",
    "approximate": "comparing the rows",
    "check": "checking the columns",
    "mark": "marking the rows",
}
#: phases that are told of again as they go on
_ONGOING = ("smallest", "reducts", "select", "rules")


#: below this a rate means nothing
_LEAST_SECONDS = 0.1
#: before anything is compiled
_NO_CLOCK = SimpleNamespace(running=False, seconds=0.0)


class ResumeNote(Reporter):
    """Says only that a search goes on from a checkpoint."""

    def resumed(self, n_steps: int, *, has_core: bool = True) -> None:
        """Say what is done already."""
        done = "core done" if has_core else f"{counted(n_steps, 'column')} selected"
        if has_core and n_steps:
            done = f"core and {counted(n_steps, 'step')} done"
        print(f"Resuming from the checkpoint: {done}.", file=sys.stderr, flush=True)


class Display(ResumeNote):
    """Shows the current phase and its progress on stderr, with a line for everything done if `lines`.

    It is a context manager: within its block, a terminal has a live line.
    """

    watches_jobs = True

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        #: where lines go above the live one, if there is one
        self._console: Console | None = None
        self._live: Live | None = None
        #: ends the live line
        self._resources = ExitStack()
        self._phase = "read"
        self._total = 0
        self._began = monotonic()
        self._step = 0
        self._read_before = 0
        self._job: JobProgress | None = None
        self._compiled = float(_compile_clock().seconds)

    def __enter__(self) -> Self:
        """Start the live line, if stderr is a terminal."""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._console = Console(stderr=True)
            live = Live(self, console=self._console, transient=True, refresh_per_second=10, redirect_stdout=False)
            self._live = self._resources.enter_context(live)
        return self

    def __exit__(self, error: type[BaseException] | None, *details: Any) -> None:
        """End the live line, and print how long the last phase took, unless it failed."""
        self._resources.close()
        if error is None and self._phase == "certificate":
            self._print("checked", shown_seconds(monotonic() - self._began))

    def phase(self, name: str, done: int, total: int) -> None:
        """Start a phase, or its next step."""
        now = monotonic()
        if self._phase == "core" and name in ("search", "smallest", "reducts"):
            pace = _pace(self._total, "columns", now - self._began, self._compiling())
            self._print("core", f"{self._total:,} columns tried", *pace)
        if name == "smallest":
            self._print("bounds", f"at least {done:,}, at most {total:,}")
        self._step = done + 1
        self._total = total
        if self._phase == name and name in _ONGOING:  # the clock keeps running
            return
        self._phase = name
        self._began = now
        self._job = None
        self._read_before = _bytes_read()
        if self._live is not None:
            self._live.refresh()  # shown, however short it is

    def granulated(self, n_granules: int, n_objects: int, memory: MemoryNeed | None) -> None:
        """Print what was read."""
        size = [f"{shown_bytes(self._total)} read"] if self._total else []
        pace = _pace(n_objects, "rows", monotonic() - self._began, self._compiling())
        self._print("rows", *size, f"{n_objects:,} rows, {n_granules:,} distinct", *pace)
        if memory:
            self._print(
                "memory",
                f"{shown_bytes(memory.coded_table)} for the coded table",
                f"about {shown_bytes(memory.engine)} more for the search",
            )

    def step(self, step: Step) -> None:
        """Print what a greedy step found."""
        words = [printable(step.attribute), f"Θ left {number(step.theta)}", f"{step.active:,} rows undecided"]
        if step.p_value is not None:
            words.append(f"p-value {step.p_value:.2g}")
        words += _pace(len(step.candidates), "candidates", step.seconds, self._compiling())
        self._print(f"step {self._step - 1}", *words)

    def selected(self, step: SelectionStep) -> None:
        """Print what was selected, and why."""
        beside = f" beside {', '.join(map(printable, step.given))}" if step.given else ""
        words = [printable(step.column), f"share {step.share:.3f}", f"p-value {step.p_value:.2g}{beside}"]
        words += _pace(0, "", step.seconds, self._compiling())
        self._print(f"column {self._step - 1}", *words)

    def job(self, job: JobProgress) -> None:
        """Note the progress of a pass over the candidates."""
        self._job = job
        if job.done >= job.total and self._live is not None:
            self._live.refresh()  # a pass that was shown ends at 100 %

    def _compiling(self) -> float:
        """Seconds spent compiling since the last call."""
        before = self._compiled
        self._compiled = float(_compile_clock().seconds)
        return self._compiled - before

    def _print(self, what: str, *words: str) -> None:
        line = f"{what:<11} {', '.join(words)}"
        if self._lines and self._console:
            self._console.out(line, highlight=False)
        elif self._lines:
            print(line, file=sys.stderr, flush=True)

    @property
    def title(self) -> str:
        """The phase in words."""
        if _compile_clock().running:
            return "compiling"
        if self._phase == "reducts":
            return f"reducts of {self._total:,}"
        if self._phase == "search":
            return f"step {self._step}"
        return _WORDS.get(self._phase, self._phase)

    @property
    def share(self) -> float | None:
        """The share of the pass that is done; None if unknown."""
        return self._job.done / self._job.total if self._job and self._job.total else None

    @property
    def info(self) -> str:
        """Rate, time left and what is known so far."""
        seconds = monotonic() - self._began
        if _compile_clock().running:
            return f"{_clock(seconds)}, needed once after installation"
        if self._job is not None:
            return ", ".join(_pass_words(self._job, seconds))
        return ", ".join([_clock(seconds), *self._phase_words(seconds)])

    def _phase_words(self, seconds: float) -> list[str]:
        """What is known of a phase that reports no passes."""
        done = self._step - 1
        if self._phase == "granulate" and self._total:
            return self._reading(seconds)
        if self._phase == "search":
            return [f"{self._total:,} rows undecided"]
        if self._phase == "smallest":
            return [f"between {done:,} and {self._total:,}"]
        if self._phase in ("reducts", "rules"):
            return [f"{done:,} found"]
        if self._phase == "select":
            return [f"{done:,} selected, {self._total:,} candidates left"]
        return []

    def _reading(self, seconds: float) -> list[str]:
        """How much of the file is read, if the system counts the bytes that this process reads."""
        read = _bytes_read() - self._read_before
        share = read / self._total
        if not 0 < share < 1:  # at its end, being read again, or unknown
            return [shown_bytes(self._total)]
        words = [f"{shown_bytes(read)} of {shown_bytes(self._total)}"]
        if seconds >= _LEAST_SECONDS:
            words.append(f"{shown_bytes(int(read / seconds))}/s")
            words.append(f"{_clock(seconds / share - seconds)} left")
        return words

    def __rich_console__(self, console: Any, options: Any) -> Iterator[RenderableType]:
        """Draw the line; names from the data are plain text to rich."""
        from rich.constrain import Constrain
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = options.max_width
        with suppress(OSError, ValueError):  # rich only asks descriptors 0 to 2; stderr may be another
            width = min(width, os.get_terminal_size(console.file.fileno()).columns)
        row: list[RenderableType] = [Text(self.title, no_wrap=True)]
        if width >= 60:  # below that the words matter more than the bar
            row.append(ProgressBar(1.0, self.share or 0.0, width=20, pulse=self.share is None))
        row.append(Text(self.info, no_wrap=True, overflow="ellipsis"))
        grid = Table.grid(padding=(0, 1))
        for part in row:
            grid.add_column(no_wrap=part is not row[-1])  # these words are cut where there is no room
        grid.add_row(*row)
        yield Constrain(grid, width)


def _pass_words(job: JobProgress, seconds: float) -> list[str]:
    """How far a pass over the candidates is, its rate, and the best candidate so far."""
    total = max(job.total, 1)
    n_scored = job.candidates * job.done // total
    words = [f"{100 * job.done // total} %"]
    if job.seconds_left is not None:
        words.append(f"{_clock(job.seconds_left)} left")
    words.append(f"{n_scored:,} of {job.candidates:,} columns")
    if n_scored and seconds >= _LEAST_SECONDS:
        words.append(f"{n_scored / seconds:,.0f}/s")
    if job.best:
        words.append(f"best so far {printable(job.best[0])}, Θ {number(job.best[1])}")
    return words


def _bytes_read() -> int:
    """Bytes that this process has read so far; 0 if the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/io").read_text().split()[1])
    return 0


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _compile_clock() -> Any:
    """The clock of `plar.runtime.jit`, which is imported, with numba, only when kernels are needed."""
    jit = sys.modules.get("plar.runtime.jit")
    return getattr(jit, "clock", _NO_CLOCK)


def _pace(n: int, what: str, seconds: float, compiling: float) -> list[str]:
    """The time, and a rate without the time for compiling."""
    working = seconds - compiling
    rate = [f"{n / working:,.0f} {what}/s"] if n and working >= 0.1 else []
    once = [f"{shown_seconds(compiling)} of it compiling"] if compiling >= 0.1 else []
    return [shown_seconds(seconds), *once, *rate]


@contextmanager
def reporting(verbose: bool, progress: Progress | None, on_step: OnStep | None) -> Iterator[Reporter]:
    """Report to the functions of the caller and, if asked for, on stderr."""
    callbacks = Callbacks(progress, on_step)
    if not verbose:
        yield callbacks
        return
    with Display(lines=True) as display:
        yield Reporters([display, callbacks])
