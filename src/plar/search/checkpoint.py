"""What a search has found so far, kept in a file, so that a killed run can resume.

The file is JSON with a checksum. It describes the data and the options, so that a file of another search is refused;
then come the core and every step done. `plar.relevant` has one such description per layer; the search for the smallest
reduct has clauses in place of steps. The file does not depend on the engine: one can resume what another began.

The checksum guards against damage, not against forgery. On resuming, whatever is cheap to check is checked: clauses by
their two rows, the last Θ and the rows still undecided by the table, and the rest by what is possible at all. A core or
a step that is wrong but possible is not noticed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from plar.engines.base import GranuleSet, LeaveOneOut
from plar.errors import TableError
from plar.files.find import expanded
from plar.files.write import as_path, check_place, checksum, replacing
from plar.granules.fingerprint import shown
from plar.measures import OWN, Measure
from plar.results.from_json import from_json
from plar.results.reduct import Step

_VERSION = 4
#: seconds between two writes of clauses
_SECONDS = 1.0
_DAMAGED = "is damaged, or no checkpoint. Name another file, or delete it"
#: Θ is a sum of three machine words
_LARGEST = 1 << 192
#: Θ of the four measures never rises, but for rounding
_THETA_SLACK = 1e-9


class Checkpoint:
    """The core and the steps of one or several searches, as they are found; without a path, in memory only.

    An existing file is read; `begin` then checks that it belongs to the search.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        #: the effect of leaving out each condition, once known
        self.inner: list[LeaveOneOut] | None = None
        self.steps: list[Step] = []
        #: for the smallest reduct: the attributes of each clause, and its two rows
        self.clauses: list[tuple[tuple[int, ...], Sequence[Any], Sequence[Any]]] = []
        self._path = None if path is None else expanded(as_path(path))
        self._last_write = 0.0
        #: searches in the file that have not begun here, and what it has of the current one
        self._later: list[dict[str, Any]] = []
        self._found: dict[str, Any] | None = None
        #: what is written: finished searches, and the current one, with each step encoded once
        self._done: list[str] = []
        self._head: dict[str, Any] = {}
        self._encoded: list[str] = []
        if self._path is not None:
            check_place(self._path)
            self._later = _read(self._path)

    @property
    def resumed(self) -> bool:
        """Whether the core, and perhaps more, was found by an earlier run."""
        return self._found is not None

    def begin(self, granules: GranuleSet, measure: Measure, asked: Mapping[str, Any]) -> None:
        """Describe the next search, and take what the file has of it; a file of another search is refused."""
        self.inner, self.steps, self.clauses = None, [], []
        if self._path is None:
            return
        if self._head:
            self._done.append(self._present())
        self._encoded, self._found = [], self._later.pop(0) if self._later else None
        self._head = {
            "data": {
                "objects": granules.n_objects,
                "granules": len(granules),
                "conditions": list(granules.conditions),
                "decision": list(granules.decision),
                "cuts": {name: list(cuts) for name, cuts in sorted(granules.cuts.items())},
                "values": shown(granules.fingerprint()),
            },
            "asked": {"measure": f"{measure.name}{' (own)' if measure.kind == OWN else ''}", **asked},
        }
        self._measure = measure
        self._n_objects = granules.n_objects
        if self._found is None:
            return
        try:
            odd = _data_differences(self._found["data"], self._head["data"])
            odd += _differences(self._found["asked"], self._head["asked"])
            if odd:
                raise _refusal(self._path, f"is of another run: {'; '.join(odd)}. Name another file, or delete it")
            self._take(self._found)
        except TableError:
            raise
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            raise self.damaged() from None

    def _take(self, found: Mapping[str, Any]) -> None:
        """Take what the file has of a search; an exception if it cannot be of any."""
        n = len(self._head["data"]["conditions"])
        theta_all = from_json(int, found["theta_all"])
        inner = from_json(tuple[int | None, ...], found["inner"])
        _require(len(inner) == n and all(abs(theta or 0) <= _LARGEST for theta in inner))
        self.inner = [LeaveOneOut(theta_all if theta is None else theta, theta is None) for theta in inner]
        self._encoded = [_encoded(step) for step in found["steps"]]
        self.steps = [from_json(Step, step) for step in found["steps"]]
        for attributes, row, other in found.get("clauses", ()):
            places = from_json(tuple[int, ...], attributes)
            _require(places and list(places) == sorted(set(places)) and places[0] >= 0 and places[-1] < n)
            _require(isinstance(row, list) and isinstance(other, list) and len(row) == len(other) == n)
            self.clauses.append((places, row, other))
        _require(len({places for places, _, _ in self.clauses}) == len(self.clauses))
        is_smallest = self._head["asked"]["search"] == "smallest"
        _require(not (self.steps if is_smallest else self.clauses))

    def damaged(self) -> TableError:
        """The error for a file that does not hold what a search writes."""
        return _refusal(self._path, _DAMAGED)

    def add_core(self, inner: Sequence[LeaveOneOut], theta_all: int) -> None:
        """Save the effect of leaving out each condition; what the file had must agree."""
        if self.inner is None:
            self.inner = list(inner)
            self._head |= {"theta_all": theta_all, "inner": [None if i.equal else i.theta for i in inner]}
            self._write()
        elif self._found is not None:
            self._check(self._found["theta_all"], theta_all)
            self._head |= {"theta_all": theta_all, "inner": self._found["inner"]}

    def check_core(self, theta_all: int, theta_none: int) -> None:
        """Refuse effects that leaving out a condition cannot have, by the Θ of all conditions and that of none."""
        bound = self._measure.tie_bound(self._n_objects)
        least = theta_all - bound if bound else theta_all + 1
        for theta, equal in self.inner or ():
            is_possible = theta != theta_all if self._measure.kind == OWN else least <= theta <= theta_none + bound
            if not equal and not is_possible:
                raise self.damaged()

    def check_steps(self, start: Iterable[str]) -> None:
        """Refuse steps that no search can have taken if it began with these conditions."""
        if self._found is None:
            return
        asked = self._head["asked"]
        left = dict.fromkeys(self._head["data"]["conditions"])
        most = asked["max_attributes"] or len(left)
        fewest_left = len(left) - most
        for name in start:
            del left[name]
        slack = math.inf if self._measure.kind == OWN else _THETA_SLACK
        unsettled_objects = self._n_objects
        theta = math.inf
        for step in self.steps:
            goes_on = unsettled_objects > 0 and len(left) > fewest_left
            is_better = 0 <= step.active <= unsettled_objects and step.theta <= theta + slack
            if not goes_on or not is_better or not _fits(step, left, asked["alpha"]):
                raise self.damaged()
            del left[step.attribute]
            unsettled_objects = step.active
            theta = step.theta

    def check_end(self, theta: float, unsettled_objects: int) -> None:
        """Refuse a file whose steps lead to another Θ(D|R) here, or leave other rows undecided."""
        if self._found is not None and self.steps:
            self._check(self.steps[-1].theta, theta)
            if self.steps[-1].active != unsettled_objects:
                raise self.damaged()

    def add_step(self, step: Step) -> None:
        """Save a step."""
        self.steps.append(step)
        if self._path is not None:
            self._encoded.append(_encoded(asdict(step)))
            self._write()

    def add_clauses(self, clauses: Iterable[tuple[tuple[int, ...], Sequence[Any], Sequence[Any]]]) -> None:
        """Save clauses of the search for the smallest reduct."""
        if self._path is None:
            return
        self.clauses += clauses
        if monotonic() >= self._last_write + _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the clauses; during the search only once a second, since the whole file is rewritten."""
        if self.clauses and len(self._head.get("clauses", ())) < len(self.clauses):
            self._head["clauses"] = [*self.clauses]
            self._write()
        self._last_write = monotonic()

    def _check(self, there: float, here: float) -> None:
        if there != here:  # same data: a user's θ has changed under its name, or plar has
            moved = f"Θ is {there} there, {here} now"
            raise _refusal(self._path, f"does not fit: {moved}, so the measure is another one of that name. Delete it")

    def _write(self) -> None:
        if self._path is None:
            return
        state = f"[{','.join([*self._done, self._present()])}]"
        text = f'{{"plar_checkpoint":{_VERSION},"checksum":"{checksum(state.encode())}","state":{state}}}\n'
        with replacing(self._path, durable=True) as temporary:
            temporary.write_text(text, encoding="ascii")

    def _present(self) -> str:
        return f'{_encoded(self._head)[:-1]},"steps":[{",".join(self._encoded)}]}}'


def _read(path: Path) -> list[dict[str, Any]]:
    """The searches in a file; none if it does not exist."""
    try:
        found = json.loads(path.read_bytes())
        version, searches = found["plar_checkpoint"], found["state"]
        if version == _VERSION and (
            not isinstance(searches, list) or found["checksum"] != checksum(_encoded(searches).encode())
        ):
            raise ValueError
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TableError(f"Cannot read the checkpoint {str(path)!r}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _refusal(path, _DAMAGED) from None
    if version != _VERSION:
        raise _refusal(path, f"has the version {version!r}, this plar knows {_VERSION}. Delete it")
    return list(searches)


def _refusal(path: Path | None, why: str) -> TableError:
    return TableError(f"The checkpoint {str(path)!r} {why} to start over.")


def _encoded(state: Any) -> str:
    return json.dumps(state, separators=(",", ":"))


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def _fits(step: Step, left: Mapping[str, Any], alpha: float | None) -> bool:
    """Whether a step can have chosen from the conditions left, in table order."""
    ties = set(step.ties)
    return (
        list(step.candidates) == list(left)
        and list(step.ties) == [name for name in left if name in ties]
        and step.ties[:1] == (step.attribute,)
        and step.p_value is not None
        and 0 <= step.p_value <= (1 if alpha is None else alpha)
        and step.seconds >= 0
    )


def _data_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say how the data differ; that values differ is said only if nothing more is known."""
    compared = ("objects", "decision")
    odd = _differences({key: there[key] for key in compared}, {key: here[key] for key in compared})
    names_there = dict.fromkeys(there["conditions"])
    names_here = dict.fromkeys(here["conditions"])
    gone = [name for name in names_there if name not in names_here]
    new = [name for name in names_here if name not in names_there]
    odd += [f"the column {name!r} is missing now" for name in gone[:3]]
    odd += [f"the column {name!r} is new" for name in new[:3]]
    if not gone and not new and there["conditions"] != here["conditions"]:
        odd.append("the conditions are in another order")
    cuts = there["cuts"] | here["cuts"]
    odd += [f"the cuts of {name!r}" for name in cuts if there["cuts"].get(name) != here["cuts"].get(name)][:3]
    if not odd and (there["values"], there["granules"]) != (here["values"], here["granules"]):
        odd.append("the values of the table")
    return odd


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    odd = [k for k in {**there, **here} if there.get(k) != here.get(k)]
    return [f"{k} {there.get(k)!r} there, {here.get(k)!r} now" for k in odd]
