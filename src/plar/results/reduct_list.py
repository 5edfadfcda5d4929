"""Many reducts: how large they are, how often each column is in them, and which share little."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from plar.errors import ParameterError, TableError, printable
from plar.files.write import as_path, replacing
from plar.results.from_json import from_json

if TYPE_CHECKING:
    from plar.results.report.pages import Page

__all__ = ["Member", "Reducts"]

#: reducts, and names of columns, to show
_MAX_SHOWN = 10


class Member(NamedTuple):
    """One of many reducts."""

    attributes: tuple[str, ...]
    cost: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Reducts(Sequence[Member]):
    """The reducts of a table, sorted by cost, then size, then table order; what `plar.reducts` returns.

    Parameters
    ----------
    conditions, decision, core : tuple of str
    measure : str
    complete : bool
        Whether these are all; False if a limit was reached.
    members : tuple of arrays
        The positions of each reduct's columns among `conditions`, sorted.
    include, exclude : tuple of str
        Columns that each reduct had to hold, needed or not, and those that none was allowed to hold.
    costs : mapping of str to int
        What columns cost, where it is not 1.
    seconds : float
    """

    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    core: tuple[str, ...]
    measure: str
    complete: bool
    members: tuple[NDArray[np.int32], ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    costs: Mapping[str, int]
    seconds: float

    def __len__(self) -> int:
        return len(self.members)

    @overload
    def __getitem__(self, place: int) -> Member: ...
    @overload
    def __getitem__(self, place: slice) -> list[Member]: ...
    def __getitem__(self, place: int | slice) -> Member | list[Member]:
        if isinstance(place, slice):
            return [self._member(positions) for positions in self.members[place]]
        return self._member(self.members[place])

    def _member(self, positions: NDArray[np.int32]) -> Member:
        names = tuple(self.conditions[a] for a in positions.tolist())
        return Member(names, sum(self.costs.get(name, 1) for name in names))

    @property
    def sizes(self) -> dict[int, int]:
        """How many reducts there are of each size."""
        sizes, counts = np.unique([len(positions) for positions in self.members], return_counts=True)
        return dict(zip(sizes.tolist(), counts.tolist(), strict=True))

    @property
    def frequencies(self) -> dict[str, float]:
        """The share of the reducts that hold each column: 1 for the core, 0 for those in no reduct."""
        positions = np.concatenate([*self.members, np.empty(0, np.int32)])
        counts = np.bincount(positions, minlength=len(self.conditions))
        shares = counts / max(len(self), 1)
        return dict(zip(self.conditions, shares.tolist(), strict=True))

    def diverse(self, k: int) -> list[Member]:
        """K reducts that share few columns: the first one, then each time the one that adds the least overlap."""
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ParameterError(f"diverse takes how many reducts to choose, at least 1. Got {k!r} instead.")
        if not self.members:
            return []
        sizes = np.array([len(positions) for positions in self.members])
        ends = np.cumsum(sizes)
        positions = np.concatenate(self.members)
        # by column: how many of the chosen reducts hold it
        times_used = np.zeros(len(self.conditions), np.int64)
        chosen: list[int] = []
        while len(chosen) < min(int(k), len(self)):
            sums = np.concatenate([[0], np.cumsum(times_used[positions])])
            overlap = sums[ends] - sums[ends - sizes]
            overlap[chosen] = np.iinfo(np.int64).max
            least = int(overlap.argmin())
            chosen.append(least)
            times_used[self.members[least]] += 1
        return [self[i] for i in chosen]

    def __repr__(self) -> str:
        return f"<Reducts: {self._count()}, core of {len(self.core)}>"

    def _count(self) -> str:
        plural = "" if len(self) == 1 else "s"
        count = f"{len(self):,} reduct{plural} by {self.measure}"
        return count if self.complete else f"at least {count}; stopped before all were found"

    def __str__(self) -> str:
        """A summary for people."""
        lines = [self._count()]
        if len(self):
            lines += ["", "size       reducts"]
            lines += [f"{size:<10,} {n:,}" for size, n in self.sizes.items()]
        for title, names in self._usage().items():
            lines += ["", f"{title:<10} {_listed(names)}"]
        if len(self):
            lines.append("")
        for i, member in enumerate(self[:_MAX_SHOWN], 1):
            listed = ", ".join(map(printable, member.attributes)) or "(no column)"
            cost = f"  (cost {member.cost:,})" if self.costs else ""
            lines.append(f"{i:<10} {listed}{cost}")
        if len(self) > _MAX_SHOWN:
            lines.append(f"and {len(self) - _MAX_SHOWN:,} more")
        return "\n".join(lines)

    def _usage(self) -> dict[str, list[str]]:
        """The columns in all, in some and in none of the reducts; if these are not all reducts, only those in some."""
        from plar.results.report.words import percent

        shares = self.frequencies
        in_some = []
        for name in sorted(shares, key=lambda name: -shares[name]):
            if 0 < shares[name] < 1:
                in_some.append(f"{printable(name)} ({percent(round(shares[name] * len(self)), len(self))})")
        if not self.complete:
            return {"in some": in_some}
        return {
            "in all": [printable(name) for name in shares if shares[name] == 1],
            "in some": in_some,
            "in none": [printable(name) for name in shares if shares[name] == 0],
        }

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return {**self._summary(), "reducts": [list(member.attributes) for member in self]}

    def _summary(self) -> dict[str, Any]:
        """The result without the reducts themselves, as JSON can hold it."""
        return {
            "kind": "reducts",
            "conditions": self.conditions,
            "decision": self.decision,
            "core": self.core,
            "measure": self.measure,
            "complete": self.complete,
            "include": self.include,
            "exclude": self.exclude,
            "costs": self.costs,
            "seconds": self.seconds,
            "count": len(self),
            "sizes": {str(size): n for size, n in self.sizes.items()},
            "frequencies": self.frequencies,
        }

    def json_lines(self, ascii_only: bool = False) -> Iterator[str]:
        """The result as lines of one JSON object, a reduct each, without holding all of them as text."""
        yield json.dumps(self._summary(), ensure_ascii=ascii_only)[:-1] + ', "reducts": ['
        for i, member in enumerate(self, 1):
            comma = "," if i < len(self) else ""
            yield json.dumps(list(member.attributes), ensure_ascii=ascii_only) + comma
        yield "]}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON, whole or not at all; `plar.load` reads it."""
        with replacing(as_path(path)) as temporary, temporary.open("w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in self.json_lines(ascii_only=True))

    def to_frame(self) -> Any:
        """A polars frame with a row per reduct: size, cost, attributes."""
        import polars as pl

        rows = [(len(member.attributes), member.cost, list(member.attributes)) for member in self]
        schema: Any = {"size": pl.Int64, "cost": pl.Int64, "attributes": pl.List(pl.String)}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def report(self, path: str | os.PathLike[str] | None = None) -> Page | None:
        """Write one HTML page: which columns are in which reducts; needs the extra ``report``.

        Without a path the page is returned: text that a notebook shows as a page.
        """
        from plar.results.report.pages import reducts_page, save_or_return

        return save_or_return(reducts_page(self), path)


@dataclass(frozen=True, slots=True)
class _Saved:
    """The fields in a file that are not derived from others."""

    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    core: tuple[str, ...]
    measure: str
    complete: bool
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    costs: Mapping[str, int]
    seconds: float
    reducts: tuple[tuple[str, ...], ...]


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Reducts:
    """Make a result from what `Reducts.to_dict` returned."""
    try:
        fields: _Saved = from_json(_Saved, saved)
        places = {name: place for place, name in enumerate(fields.conditions)}
        if not {*fields.core, *chain(*fields.reducts)} <= places.keys():
            raise TypeError("'reducts'")
    except TypeError as error:
        raise TableError(f"{where} is not a saved list of reducts: {error} is missing or does not fit.") from None
    members = [np.array(sorted(places[name] for name in names), np.int32) for names in fields.reducts]
    return Reducts(
        conditions=fields.conditions,
        decision=fields.decision,
        core=fields.core,
        measure=fields.measure,
        complete=fields.complete,
        members=tuple(members),
        include=fields.include,
        exclude=fields.exclude,
        costs=fields.costs,
        seconds=fields.seconds,
    )


def _listed(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    if not names:
        return "–"
    listed = ", ".join(names[:_MAX_SHOWN])
    if len(names) > _MAX_SHOWN:
        listed += f" and {len(names) - _MAX_SHOWN:,} more"
    return listed
