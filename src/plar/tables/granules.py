"""Granules in place of a table: the rows are distinct already, and have their counts and their decision."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plar.bin_rules import parse_bins
from plar.coding.codes import Column
from plar.columns import decision_names, resolve_all, roles_of
from plar.errors import TableError
from plar.granules import Granules
from plar.options import ReadOptions
from plar.roles import Roles
from plar.tables.rows import Rows, Selection

__all__ = ["GranuleRows"]


@dataclass(frozen=True, slots=True, eq=False)
class GranuleRows(Rows):
    """Granules, here or on a cluster.

    Parameters
    ----------
    paths : tuple of Path
        The files that they come from.
    """

    paths: tuple[Path, ...] = ()

    def __str__(self) -> str:
        """What it is."""
        return "granules"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that they come from."""
        return self.paths

    def assign(self, options: ReadOptions, labels: Column | None, label: str) -> Roles:
        """Choose among the conditions; what granules cannot follow any more is refused."""
        given = self.data
        for option in {"y", "weights", "na"} & options.changed():
            raise TableError(
                f"The granules have their counts, decision and missing values already, so {option}= cannot be given. "
                f"Pass {option}= where the table is granulated."
            )
        if options.decision is not None:
            beside = tuple(name for name in given.decision if name not in self.names)  # labels given as y
            found = decision_names((*self.names, *beside), options.decision)
            if found != given.decision:
                raise TableError(
                    f"The granules were made for the decision {list(given.decision)}, not {list(found)}. "
                    "Granulate the table anew for another decision."
                )
        wanted = given.conditions if options.conditions is None else options.conditions
        conditions, _ = roles_of(self.names, given.decision, wanted, options.drop, None)
        bins = parse_bins(options.bins, self.names, conditions, given.decision)
        numeric = resolve_all(self.names, options.numeric, "numeric column")
        return Roles(
            conditions, given.decision, missing=options.missing, bins=bins, numeric=numeric, decimal=options.decimal
        )

    def encode(self, names: Sequence[str], na: tuple[str, ...]) -> Iterable[Column]:
        """Their conditions are coded already."""
        at = {name: j for j, name in enumerate(self.data.conditions)}
        return (Column(self.data.columns[at[name]], self.data.dictionaries[at[name]]) for name in names)

    def granulate(self, roles: Roles) -> Granules:
        """Granules over some of the conditions."""
        made: Granules = self.data.with_roles(roles)
        return made

    def select(self, selection: Selection) -> Any:
        """Refuse: the rows are not there any more."""
        raise self._no_rows()

    def sink(self, selection: Selection, path: str | os.PathLike[str]) -> None:
        """Refuse: the rows are not there any more."""
        raise self._no_rows()

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Refuse: the rows are not there any more."""
        raise TableError(f"{self._no_rows()} No table can be written to {os.fspath(path)!r}.")

    def _no_rows(self) -> TableError:
        where = repr(str(self.paths[0])) if self.paths else "The table"
        return TableError(f"{where} holds granules, not rows.")
