"""A file that keeps what searches find, so that a killed run can resume: text that only grows, line by line.

A header, then one JSON record per line, each with its checksum. For each search there is a line with its data and
options, so that a file of another search is refused, and then one for everything it finds. `plar.relevant` has one
search per layer. The file does not depend on the engine: one can resume what another began.

A run that is killed can damage only the last line. Such a line is ignored, and cut off before the next one is
written; damage anywhere before it is refused. A checksum guards against damage, not against forgery.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from plar.engines.base import GranuleSet, LeaveOneOut
from plar.engines.clauses import FoundClause
from plar.errors import TableError
from plar.files.find import expanded
from plar.files.write import as_path, check_place, checksum, replacing, write_from
from plar.granules.fingerprint import fingerprint_text
from plar.results.from_json import from_json
from plar.results.reduct import Step
from plar.results.selection import SelectionStep

_VERSION = 5
_HEADER = b'{"plar_checkpoint":%d}\n' % _VERSION
#: how the file begins in every version
_ANY_HEADER = re.compile(rb'\{"plar_checkpoint": ?(\d+)[,}]')
_MAX_HEADER_BYTES = 100
#: what stands before the content of a line: {"checksum":"…",
_CHECKSUM_BYTES = len('{"checksum":"",') + len(checksum(b""))
_DAMAGED = "is damaged, or no checkpoint. Name another file, or delete it"
#: Θ is a sum of three machine words
_MAX_THETA = 1 << 192


@dataclass(frozen=True)
class Data:
    """The granules that a search is about."""

    objects: int
    granules: int
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    cuts: Mapping[str, tuple[float, ...]]
    #: their fingerprint
    values: str


@dataclass(frozen=True)
class Description:
    """What a search is about, and the options on which its result depends."""

    data: Data
    options: Mapping[str, Any]

    @property
    def is_selection(self) -> bool:
        """Whether the search is that of `plar.select`."""
        return self.options.get("search") == "select"

    @property
    def is_smallest(self) -> bool:
        """Whether the search is for the smallest reduct, which takes no steps."""
        return self.options.get("search") == "smallest"


@dataclass(frozen=True)
class Core:
    """The effect of leaving out each condition."""

    theta_all: int
    #: Θ without each condition; None where that leaves the classes as they are
    theta_without: tuple[int | None, ...]

    def effects(self) -> list[LeaveOneOut]:
        """The effects as the search knows them."""
        return [LeaveOneOut(self.theta_all if theta is None else theta, theta is None) for theta in self.theta_without]


@dataclass(frozen=True)
class SavedPass:
    """The candidates' associations with the decision within the classes of U/`given`."""

    given: tuple[int, ...]
    #: base64 of statistic, mean and variance of each candidate, as floats of eight bytes, the low byte first
    measured: str


@dataclass(frozen=True)
class SavedTest:
    """The exact p-value of a candidate within the classes of U/`given`, times the number of candidates."""

    candidate: int
    given: tuple[int, ...]
    adjusted: float


SelectRecord: TypeAlias = SavedPass | SavedTest | SelectionStep
_SELECT_RECORDS: dict[str, type[SelectRecord]] = {"pass": SavedPass, "test": SavedTest, "step": SelectionStep}


@dataclass
class SavedSearch:
    """What a file has of a search."""

    description: Description
    #: where its last line ends, in bytes
    end: int
    #: None if the run was killed before it was written
    core: Core | None = None
    steps: list[Step] = field(default_factory=list)
    #: by their attributes
    clauses: dict[tuple[int, ...], FoundClause] = field(default_factory=dict)
    #: what `plar.select` measured, tested and selected, in this order
    found_by_select: deque[SelectRecord] = field(default_factory=deque)

    def add(self, kind: str, content: Any) -> None:
        """Take what a line says; ValueError or TypeError if no search writes it."""
        if self.description.is_selection:
            _require(kind in _SELECT_RECORDS)
            self.found_by_select.append(from_json(_SELECT_RECORDS[kind], content))
        elif kind == "core":
            _require(self.core is None)
            core: Core = from_json(Core, content)
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


class CheckpointFile:
    """The file of one or several searches; without a path there is none, and nothing is kept.

    An existing file is read; `begin` then checks that it belongs to the search.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else expanded(as_path(path))
        #: what the file has of searches that have not begun here
        self._later: list[SavedSearch] = []
        self._description: Description | None = None
        #: whether the file has a line with the current search
        self._is_described = False
        #: where the next line goes; whatever the file has after it is cut off then
        self._end = 0
        #: of the file, in bytes, unless another run writes to it too
        self._size = 0
        if self.path is not None:
            check_place(self.path)
            if self.path.exists():
                self._later, self._size = _read(self.path)
                self._end = len(_HEADER)

    def begin(self, granules: GranuleSet, options: Mapping[str, Any]) -> SavedSearch | None:
        """Describe the next search, and give what the file has of it; a file of another search is refused."""
        if self.path is None:
            return None
        self._description = _described(granules, options)
        saved = self._later.pop(0) if self._later else None
        self._is_described = saved is not None
        if saved is not None:
            self._compare(saved.description, self._description)
            self._end = saved.end
        return saved

    def _compare(self, there: Description, here: Description) -> None:
        """Refuse a file of another search."""
        differences = _data_differences(there.data, here.data)
        differences += _option_differences(there.options, here.options)
        if differences:
            raise self.refusal(f"is of another run: {'; '.join(differences)}. Name another file, or delete it")

    def append(self, *records: tuple[str, object]) -> None:
        """Write lines after the last one of this search, and wait until they are on disk."""
        if self.path is None:
            return
        if self._end == 0:
            with replacing(self.path, durable=True) as temporary:
                temporary.write_bytes(_HEADER)
            self._end = len(_HEADER)
            self._size = self._end
        if not self._is_described:
            assert self._description is not None
            records = (("search", asdict(self._description)), *records)
            self._is_described = True
        lines = b"".join(_line(kind, content) for kind, content in records)
        if not write_from(self.path, self._end, lines, self._size):
            raise TableError(
                f"The checkpoint {str(self.path)!r} was changed by somebody else: does another run use it? "
                "Let that one end, or name another file."
            )
        self._end += len(lines)
        self._size = self._end
        self._later.clear()  # they stood after it

    def damaged(self) -> TableError:
        """The error for a file that does not hold what a search writes."""
        return self.refusal(_DAMAGED)

    def refusal(self, reason: str) -> TableError:
        """The error for a file that cannot be used."""
        return _refusal(self.path, reason)


def _line(kind: str, content: object) -> bytes:
    """A line of the file: a JSON object with its checksum as the first entry."""
    return _sealed(json.dumps({kind: content}, separators=(",", ":")).encode("ascii"))


def _sealed(content: bytes) -> bytes:
    return b'{"checksum":"%s",%s\n' % (checksum(content).encode("ascii"), content[1:])


def _content_of(line: bytes) -> bytes | None:
    """The JSON object that a line was made of; None if it is incomplete or damaged."""
    content = b"{" + line[_CHECKSUM_BYTES:-1]
    return content if line == _sealed(content) else None


def _read(path: Path) -> tuple[list[SavedSearch], int]:
    """The searches in a file, and its size."""
    searches: list[SavedSearch] = []
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


def _add_line(searches: list[SavedSearch], content: bytes, end: int) -> None:
    """Add what a line says to the searches in the lines before it."""
    ((kind, value),) = json.loads(content).items()
    if kind == "search":
        _require(not searches or searches[-1].core is not None)
        searches.append(SavedSearch(from_json(Description, value), end))
    else:
        _require(len(searches) > 0)
        searches[-1].add(kind, value)
        searches[-1].end = end


def _refusal(path: Path | None, reason: str) -> TableError:
    return TableError(f"The checkpoint {str(path)!r} {reason} to start over.")


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _described(granules: GranuleSet, options: Mapping[str, Any]) -> Description:
    data = Data(
        objects=granules.n_objects,
        granules=len(granules),
        conditions=tuple(granules.conditions),
        decision=tuple(granules.decision),
        cuts={name: tuple(cuts) for name, cuts in sorted(granules.cuts.items())},
        values=fingerprint_text(granules.fingerprint()),
    )
    return Description(data, options)


def _data_differences(there: Data, here: Data) -> list[str]:
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
    if "search" in names:  # then they have other options, too
        names = ["search"]
    return [f"{name} {there.get(name)!r} there, {here.get(name)!r} now" for name in names]
