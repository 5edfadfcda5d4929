"""What a search has found so far, kept in a file, so that a killed run can resume.

The file is text that only grows: a header, then one JSON record per line, each with its checksum. For each
search there is a line with its data and options, so that a file of another search is refused, one with its
core, and one per step; the search for the smallest reduct has lines of clauses in place of steps.
`plar.relevant` has one search per layer. The file does not depend on the engine: one can resume what another
began.

A run that is killed can damage only the last line. Such a line is ignored, and cut off before the next one is
written; damage anywhere before it is refused.

A checksum guards against damage, not against forgery. On resuming, whatever is cheap to check is checked:
clauses by their two rows, the last Θ and the rows still undecided by the table, and the rest by what is
possible at all. A core or a step that is wrong but possible is not noticed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from plar.engines.base import GranuleSet, LeaveOneOut
from plar.engines.clauses import FoundClause
from plar.errors import TableError
from plar.files.find import expanded
from plar.files.write import as_path, check_place, checksum, replacing, write_from
from plar.granules.fingerprint import fingerprint_text
from plar.measures import OWN, Measure
from plar.results.from_json import from_json
from plar.results.reduct import Step

_VERSION = 5
_HEADER = b'{"plar_checkpoint":%d}\n' % _VERSION
#: how the file begins in every version
_ANY_HEADER = re.compile(rb'\{"plar_checkpoint": ?(\d+)[,}]')
_MAX_HEADER_BYTES = 100
#: what stands before the content of a line: {"checksum":"…",
_CHECKSUM_BYTES = len('{"checksum":"",') + len(checksum(b""))
_SECONDS_BETWEEN_CLAUSES = 1.0
_DAMAGED = "is damaged, or no checkpoint. Name another file, or delete it"
#: Θ is a sum of three machine words
_MAX_THETA = 1 << 192
#: Θ of the four measures never rises, but for rounding
_THETA_SLACK = 1e-9


@dataclass(frozen=True)
class _Data:
    """The granules that a search is about."""

    objects: int
    granules: int
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    cuts: Mapping[str, tuple[float, ...]]
    #: their fingerprint
    values: str


@dataclass(frozen=True)
class _Description:
    """What a search is about, and the options on which its result depends."""

    data: _Data
    options: Mapping[str, Any]

    @property
    def is_smallest(self) -> bool:
        """Whether the search is for the smallest reduct, which takes no steps."""
        return self.options.get("search") == "smallest"


@dataclass(frozen=True)
class _Core:
    """The effect of leaving out each condition."""

    theta_all: int
    #: Θ without each condition; None where that leaves the classes as they are
    theta_without: tuple[int | None, ...]

    def effects(self) -> list[LeaveOneOut]:
        """The effects as the search knows them."""
        return [LeaveOneOut(self.theta_all if theta is None else theta, theta is None) for theta in self.theta_without]


@dataclass
class _SavedSearch:
    """What a file has of a search."""

    description: _Description
    #: where its last line ends, in bytes
    end: int
    #: None if the run was killed before it was written
    core: _Core | None = None
    steps: list[Step] = field(default_factory=list)
    #: by their attributes
    clauses: dict[tuple[int, ...], FoundClause] = field(default_factory=dict)

    def add(self, kind: str, content: Any) -> None:
        """Take what a line says; ValueError or TypeError if no search writes it."""
        if kind == "core":
            _require(self.core is None)
            core: _Core = from_json(_Core, content)
            _require(len(core.theta_without) == len(self.description.data.conditions))
            _require(all(theta is None or abs(theta) <= _MAX_THETA for theta in core.theta_without))
            self.core = core
        elif kind == "step":
            _require(self.core is not None and not self.description.is_smallest)
            self.steps.append(from_json(Step, content))
        elif kind == "clauses":
            _require(self.core is not None and self.description.is_smallest)
            for attributes, row, other in content:
                self._add_clause(from_json(tuple[int, ...], attributes), row, other)
        else:
            raise ValueError

    def _add_clause(self, attributes: tuple[int, ...], row: object, other: object) -> None:
        n = len(self.description.data.conditions)
        _require(len(attributes) > 0 and list(attributes) == sorted(set(attributes)))
        _require(attributes[0] >= 0 and attributes[-1] < n)
        _require(attributes not in self.clauses)
        if not isinstance(row, list) or not isinstance(other, list):
            raise TypeError
        _require(len(row) == len(other) == n)
        self.clauses[attributes] = FoundClause(attributes, tuple(row), tuple(other))


class Checkpoint:
    """The core and the steps of one or several searches, as they are found; without a path, in memory only.

    An existing file is read; `begin` then checks that it belongs to the search.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        #: the effect of leaving out each condition, once known
        self.effects: list[LeaveOneOut] | None = None
        self.steps: list[Step] = []
        #: for the smallest reduct
        self.clauses: list[FoundClause] = []
        self._path = None if path is None else expanded(as_path(path))
        #: what the file has of the current search, and of those that have not begun here
        self._saved: _SavedSearch | None = None
        self._later: list[_SavedSearch] = []
        #: where the next line goes; whatever the file has after it is cut off then
        self._end = 0
        #: of the file, in bytes, unless another run writes to it too
        self._size = 0
        self._n_written_clauses = 0
        self._last_clauses_at = 0.0
        if self._path is not None:
            check_place(self._path)
            if self._path.exists():
                self._later, self._size = _read(self._path)
                self._end = len(_HEADER)

    @property
    def resumed(self) -> bool:
        """Whether the core, and perhaps more, was found by an earlier run."""
        return self._saved is not None and self._saved.core is not None

    def begin(self, granules: GranuleSet, measure: Measure, options: Mapping[str, Any]) -> None:
        """Describe the next search, and take what the file has of it; a file of another search is refused."""
        self.effects = None
        self.steps = []
        self.clauses = []
        if self._path is None:
            return
        self._description = _described(granules, measure, options)
        self._measure = measure
        self._n_objects = granules.n_objects
        self._n_written_clauses = 0
        self._saved = self._later.pop(0) if self._later else None
        if self._saved is not None:
            self._compare(self._saved.description)
            self._take(self._saved)

    def _compare(self, there: _Description) -> None:
        """Refuse a file of another search."""
        differences = _data_differences(there.data, self._description.data)
        differences += _option_differences(there.options, self._description.options)
        if differences:
            raise _refusal(self._path, f"is of another run: {'; '.join(differences)}. Name another file, or delete it")

    def _take(self, saved: _SavedSearch) -> None:
        """Continue after what the file has of a search."""
        if saved.core is not None:
            self.effects = saved.core.effects()
        self.steps = saved.steps
        self.clauses = list(saved.clauses.values())
        self._n_written_clauses = len(self.clauses)
        self._end = saved.end

    def damaged(self) -> TableError:
        """The error for a file that does not hold what a search writes."""
        return _refusal(self._path, _DAMAGED)

    def add_core(self, effects: Sequence[LeaveOneOut], theta_all: int) -> None:
        """Save the effect of leaving out each condition."""
        self.effects = list(effects)
        if self._path is None:
            return
        if self._saved is None:
            self._append(self._path, "search", asdict(self._description))
        core = _Core(theta_all, tuple(None if effect.equal else effect.theta for effect in effects))
        self._append(self._path, "core", asdict(core))

    def check_core(self, theta_all: int, theta_none: int) -> None:
        """Refuse another Θ(D|C) than here, and effects that are impossible by it and by the Θ of no condition."""
        assert self._saved is not None
        assert self._saved.core is not None
        self._check(self._saved.core.theta_all, theta_all)
        bound = self._measure.tie_bound(self._n_objects)
        least = theta_all - bound if bound else theta_all + 1
        for theta, equal in self.effects or ():
            is_possible = theta != theta_all if self._measure.kind == OWN else least <= theta <= theta_none + bound
            if not equal and not is_possible:
                raise self.damaged()

    def check_steps(self, start: Iterable[str]) -> None:
        """Refuse steps that no search can have taken if it began with these conditions."""
        if not self.resumed:
            return
        options = self._description.options
        remaining = dict.fromkeys(self._description.data.conditions)
        max_attributes = options["max_attributes"] or len(remaining)
        min_remaining = len(remaining) - max_attributes
        for name in start:
            del remaining[name]
        slack = math.inf if self._measure.kind == OWN else _THETA_SLACK
        unsettled_objects = self._n_objects
        theta = math.inf
        for step in self.steps:
            goes_on = unsettled_objects > 0 and len(remaining) > min_remaining
            is_better = 0 <= step.active <= unsettled_objects and step.theta <= theta + slack
            if not goes_on or not is_better or not _fits(step, remaining, options["alpha"]):
                raise self.damaged()
            del remaining[step.attribute]
            unsettled_objects = step.active
            theta = step.theta

    def check_end(self, theta: float, unsettled_objects: int) -> None:
        """Refuse a file whose steps lead to another Θ(D|R) here, or leave other rows undecided."""
        if self.resumed and self.steps:
            self._check(self.steps[-1].theta, theta)
            if self.steps[-1].active != unsettled_objects:
                raise self.damaged()

    def add_step(self, step: Step) -> None:
        """Save a step."""
        self.steps.append(step)
        if self._path is not None:
            self._append(self._path, "step", asdict(step))

    def add_clauses(self, clauses: Iterable[FoundClause]) -> None:
        """Save clauses of the search for the smallest reduct."""
        if self._path is None:
            return
        self.clauses += clauses
        if monotonic() >= self._last_clauses_at + _SECONDS_BETWEEN_CLAUSES:
            self.flush()

    def flush(self) -> None:
        """Write the new clauses; during the search only once a second, since each write waits for the disk."""
        new = self.clauses[self._n_written_clauses :]
        if new and self._path is not None:
            self._append(self._path, "clauses", new)
            self._n_written_clauses = len(self.clauses)
        self._last_clauses_at = monotonic()

    def _check(self, there: float, here: float) -> None:
        if there != here:  # same data: a user's θ has changed under its name, or plar has
            reason = (
                f"does not fit: Θ is {there} there, {here} now, so the measure is another one of that name. Delete it"
            )
            raise _refusal(self._path, reason)

    def _append(self, path: Path, kind: str, content: object) -> None:
        """Write a line after the last one of this search, and wait until it is on disk."""
        if self._end == 0:
            with replacing(path, durable=True) as temporary:
                temporary.write_bytes(_HEADER)
            self._end = len(_HEADER)
            self._size = self._end
        line = _line(json.dumps({kind: content}, separators=(",", ":")).encode("ascii"))
        if not write_from(path, self._end, line, self._size):
            raise TableError(
                f"The checkpoint {str(path)!r} was changed by somebody else: does another run use it? "
                "Let that one end, or name another file."
            )
        self._end += len(line)
        self._size = self._end
        self._later.clear()  # they stood after it


def _line(content: bytes) -> bytes:
    """A line of the file: a JSON object with its checksum as the first entry."""
    return b'{"checksum":"%s",%s\n' % (checksum(content).encode("ascii"), content[1:])


def _content_of(line: bytes) -> bytes | None:
    """The JSON object that a line was made of; None if it is incomplete or damaged."""
    content = b"{" + line[_CHECKSUM_BYTES:-1]
    return content if line == _line(content) else None


def _read(path: Path) -> tuple[list[_SavedSearch], int]:
    """The searches in a file, and its size."""
    searches: list[_SavedSearch] = []
    end = len(_HEADER)
    size = end
    is_damaged = False
    try:
        with path.open("rb") as file:
            _check_header(path, file.readline(_MAX_HEADER_BYTES))
            for line in file:
                _require(not is_damaged)  # only the last line may be
                size += len(line)
                content = _content_of(line)
                if content is None:
                    is_damaged = True
                else:
                    end += len(line)
                    _add_line(searches, content, end)
    except TableError:
        raise
    except OSError as error:
        raise TableError(f"Cannot read the checkpoint {str(path)!r}: {error.strerror}.") from None
    except (ValueError, TypeError, RecursionError):
        raise _refusal(path, _DAMAGED) from None
    return searches, size


def _check_header(path: Path, line: bytes) -> None:
    """Refuse a file of another version, and one that is no checkpoint."""
    if line == _HEADER:
        return
    version = _ANY_HEADER.match(line)
    if version is None or int(version[1]) == _VERSION:
        raise _refusal(path, _DAMAGED)
    raise _refusal(path, f"has the version {int(version[1])}, this plar knows {_VERSION}. Delete it")


def _add_line(searches: list[_SavedSearch], content: bytes, end: int) -> None:
    """Add what a line says to the searches in the lines before it."""
    ((kind, value),) = json.loads(content).items()
    if kind == "search":
        _require(not searches or searches[-1].core is not None)
        searches.append(_SavedSearch(from_json(_Description, value), end))
    else:
        _require(len(searches) > 0)
        searches[-1].add(kind, value)
        searches[-1].end = end


def _refusal(path: Path | None, reason: str) -> TableError:
    return TableError(f"The checkpoint {str(path)!r} {reason} to start over.")


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _described(granules: GranuleSet, measure: Measure, options: Mapping[str, Any]) -> _Description:
    data = _Data(
        objects=granules.n_objects,
        granules=len(granules),
        conditions=tuple(granules.conditions),
        decision=tuple(granules.decision),
        cuts={name: tuple(cuts) for name, cuts in sorted(granules.cuts.items())},
        values=fingerprint_text(granules.fingerprint()),
    )
    measure_name = f"{measure.name} (own)" if measure.kind == OWN else measure.name
    return _Description(data, {"measure": measure_name, **options})


def _fits(step: Step, remaining: Mapping[str, None], alpha: float | None) -> bool:
    """Whether a step can have chosen from the remaining conditions, in table order."""
    ties = set(step.ties)
    max_p_value = 1 if alpha is None else alpha
    return (
        list(step.candidates) == list(remaining)
        and list(step.ties) == [name for name in remaining if name in ties]
        and step.ties[:1] == (step.attribute,)
        and step.p_value is not None
        and 0 <= step.p_value <= max_p_value
        and step.seconds >= 0
    )


def _data_differences(there: _Data, here: _Data) -> list[str]:
    """Say how the data differ; that values differ is said only if nothing more is known."""
    differences: list[str] = []
    if there.objects != here.objects:
        differences.append(f"objects {there.objects} there, {here.objects} now")
    if there.decision != here.decision:
        differences.append(f"decision {list(there.decision)} there, {list(here.decision)} now")
    differences += _condition_differences(there.conditions, here.conditions)
    names = {**there.cuts, **here.cuts}
    recut = [name for name in names if there.cuts.get(name) != here.cuts.get(name)]
    differences += [f"the cuts of {name!r}" for name in recut[:3]]
    if not differences and (there.values, there.granules) != (here.values, here.granules):
        differences.append("the values of the table")
    return differences


def _condition_differences(there: Sequence[str], here: Sequence[str]) -> list[str]:
    names_there = dict.fromkeys(there)
    names_here = dict.fromkeys(here)
    gone = [name for name in names_there if name not in names_here]
    new = [name for name in names_here if name not in names_there]
    differences = [f"the column {name!r} is missing now" for name in gone[:3]]
    differences += [f"the column {name!r} is new" for name in new[:3]]
    if not gone and not new and there != here:
        differences.append("the conditions are in another order")
    return differences


def _option_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return [f"{name} {there.get(name)!r} there, {here.get(name)!r} now" for name in names]
