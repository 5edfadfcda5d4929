"""Results of every kind from their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from plar.errors import TableError
from plar.results import approximations, check, reduct, reduct_list, relevant, rules, selection
from plar.results.approximations import Approximations
from plar.results.check import Check
from plar.results.reduct import Reduct
from plar.results.reduct_list import Reducts
from plar.results.relevant import Relevant
from plar.results.rules import Rules
from plar.results.saved import read
from plar.results.selection import Selection

__all__ = ["load"]

#: what `load` returns
Result: TypeAlias = Approximations | Check | Reduct | Reducts | Relevant | Rules | Selection

#: what makes a result of its fields, by the field `kind`; a reduct has none
_MAKERS: Mapping[str | None, Callable[[Mapping[str, Any], str], Result]] = {
    None: reduct.from_dict,
    "approximations": approximations.from_dict,
    "check": check.from_dict,
    "reducts": reduct_list.from_dict,
    "relevant": relevant.from_dict,
    "rules": rules.from_dict,
    "selection": selection.from_dict,
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a result that its method `save` wrote.

    It is one of Approximations, Check, Reduct, Reducts, Relevant, Rules and Selection.

    Examples
    --------
    >>> import plar, tempfile, pathlib
    >>> r = plar.reduce({"a": [0, 1], "d": [0, 1]}, "d")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "r.json"
    ...     r.save(path)
    ...     plar.load(path) == r
    True
    """
    fields = read(path)
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, (str, type(None))) or kind not in _MAKERS:
        known = ", ".join(sorted(filter(None, _MAKERS)))
        raise TableError(
            f"{str(path)!r} is not a saved result that this version of plar knows: its kind is {kind!r:.60}. "
            f"It must be one of: {known}; or none, for a reduct."
        )
    return _MAKERS[kind](fields, repr(str(path)))
