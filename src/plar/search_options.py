"""What the user asks of the search, checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from plar.errors import ParameterError
from plar.limits import amount

#: the most that a column may cost
MAX_COST = 10**6


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks of the search; see `plar.reduce`."""

    include: tuple[Any, ...] = ()
    epsilon: float = 0.0
    tolerance: float = 0.0
    max_attributes: int | None = None
    minimal: bool = False
    alpha: float | None = None
    start: str | None = None
    search: str = "greedy"
    costs: Mapping[Any, int] | None = None
    exclude: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self._check_search()
        alpha = None if self.alpha is None else amount(self.alpha)
        if self.alpha is not None and (alpha is None or not 0 < alpha < 1):
            raise ParameterError(f"The 'alpha' parameter must be None or between 0 and 1. Got {self.alpha!r} instead.")
        if self.start not in (None, "core", "empty"):
            raise ParameterError(f"The 'start' parameter must be None, 'core' or 'empty'. Got {self.start!r} instead.")
        for name in ("epsilon", "tolerance"):
            value = getattr(self, name)
            if amount(value) is None:
                raise ParameterError(f"The {name!r} parameter must be a number, at least 0. Got {value!r} instead.")
        limit = self.max_attributes
        if limit is None:
            return
        if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < 1:
            raise ParameterError(f"The 'max_attributes' parameter must be None or at least 1. Got {limit!r} instead.")
        if limit < len(set(self.include)):
            raise ParameterError(
                f"The 'max_attributes' parameter is {limit}, but include= alone has {len(set(self.include))} "
                "columns. Raise the limit or include fewer."
            )

    def _check_search(self) -> None:
        if self.search not in ("greedy", "smallest"):
            raise ParameterError(f"The 'search' parameter must be 'greedy' or 'smallest'. Got {self.search!r} instead.")
        others = ("epsilon", "tolerance", "max_attributes", "minimal", "alpha", "start")
        odd = ("costs", "exclude") if self.search == "greedy" else others
        if self.costs is not None and not isinstance(self.costs, Mapping):
            raise ParameterError(f"The 'costs' parameter must be a mapping of names to costs. Got {self.costs!r}.")
        for option in fields(Options):
            if option.name in odd and getattr(self, option.name) not in (option.default, None, {}):
                which = "'smallest'" if self.search == "greedy" else "'greedy'"
                more = " To leave columns out of the table, use drop=." if option.name == "exclude" else ""
                raise ParameterError(f"The {option.name!r} parameter goes with search={which}.{more}")
        for name, cost in (self.costs or {}).items():
            if not isinstance(cost, Integral) or isinstance(cost, bool) or not 1 <= cost <= MAX_COST:
                raise ParameterError(
                    f"The cost of {name!r} must be a whole number from 1 to {MAX_COST:,}. Got {cost!r}."
                )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Pick the options from all parameters of a function."""
        return cls(**{option.name: given[option.name] for option in fields(cls)})

    def plain(self, include: list[str]) -> dict[str, Any]:
        """The options in Python's own types, with the names of the columns to include."""
        limit = None if self.max_attributes is None else int(self.max_attributes)
        numbers = {"epsilon": float(self.epsilon), "tolerance": float(self.tolerance), "max_attributes": limit}
        alpha = None if self.alpha is None else float(self.alpha)
        asked = {"include": include, **numbers, "minimal": bool(self.minimal), "alpha": alpha, "start": self.begins}
        costs = {str(name): int(cost) for name, cost in (self.costs or {}).items()}
        return {**asked, "search": self.search, "costs": costs, "exclude": list(self.exclude)}

    @property
    def begins(self) -> str:
        """What the search starts with: by default the core; with alpha nothing, since the core is not tested."""
        return self.start or ("core" if self.alpha is None else "empty")
