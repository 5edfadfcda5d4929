"""The roles of columns: resolves names and positions, and refuses invalid ones, in this one place."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from plar.errors import (
    ParameterError,
    Part,
    PythonOnly,
    TableError,
    Term,
    UnknownNameError,
    unknown_name,
    unknown_position,
)

#: a column by name, by position (negative from the end), or by the tuple that a MultiIndex labels it with
ColumnName: TypeAlias = str | int | tuple[Any, ...]


class NameIndex(Collection[str]):
    """Names of columns in their order, of which thousands are found quickly, by name and by position."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._set = frozenset(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._set

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: int) -> str:
        return self._names[place]


class ShellColumn(str):
    """Columns as the shell names them: a name, else a position if it is a whole number, else a list with commas."""

    __slots__ = ()


def check_names(names: Sequence[str], where: str, *remedy: Part) -> tuple[str, ...]:
    """Refuse names that occur twice."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        shown = ", ".join(map(repr, twice[:5]))
        if len(twice) > 5:
            shown += ", …"
        raise TableError(f"Column names appear twice in {where}: {shown}. ", *(remedy or ("Rename them.",)))
    return tuple(names)


def free_name(name: str, names: Collection[str]) -> str:
    """A name like this one that no column has.

    >>> free_name("class", ["class", "class_"])
    'class__'
    """
    while name in names:
        name += "_"
    return name


def column_list(given: Any) -> list[Any]:
    """Take one column or several as a list."""
    if given is None:
        return []
    if isinstance(given, (set, frozenset)):
        raise ParameterError(f"Columns are given as a {type(given).__name__}, which is unordered. Pass a list.")
    return [given] if isinstance(given, (str, int)) or not isinstance(given, Iterable) else list(given)


def _split_lists(given: Any, names: Collection[str]) -> Iterator[Any]:
    """One column or several; lists with commas are split."""
    for column in column_list(given):
        if isinstance(column, ShellColumn) and column not in names:
            yield from (ShellColumn(part.strip()) for part in column.split(",") if part.strip())
        else:
            yield column


def resolve(names: Sequence[str] | NameIndex, given: Any, kind: str) -> str:
    """Name of a column given by name or position; for many columns pass a `NameIndex`."""
    if isinstance(given, ShellColumn) and given not in names and re.fullmatch(r"-?\d+", given, re.ASCII):
        given = int(given)
    if isinstance(given, str):
        if given not in names:
            raise unknown_name(kind, given, names)
        return str(given)
    try:
        place = operator.index(given)
    except TypeError:
        shown = repr(given) if given is None or isinstance(given, float) else f"of type {type(given).__name__}"
        raise TableError(
            "The ", Term(kind), f" {shown} is neither a name nor a position. Pass a str or an int."
        ) from None
    if isinstance(given, bool) or not -len(names) <= place < len(names):
        raise unknown_position(kind, given, list(names))
    return names[place]


def resolve_all(names: Sequence[str], given: Any, kind: str) -> tuple[str, ...]:
    """Names of several columns, each once."""
    index = NameIndex(names)
    columns = [resolve(index, column, kind) for column in _split_lists(given, index)]
    name, count = next(iter(Counter(columns).most_common(1)), ("", 0))
    if count > 1:
        raise TableError("The ", Term(kind), f" {name!r} is given twice. Name it once.")
    return tuple(columns)


def by_label(given: Any, labels: Mapping[Any, str]) -> Any:
    """Turn ints and tuples that are labels of columns into names; other ints stay positions, other tuples lists.

    >>> by_label(("a", "b"), {("a", "b"): "('a', 'b')"}), by_label((1, "b"), {1: "1"})
    ("('a', 'b')", ['1', 'b'])
    """
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Iterable) or _is_label(given, labels):
        return _name_of(given, labels)
    return [_name_of(label, labels) for label in column_list(given)]


def _name_of(label: Any, labels: Mapping[Any, str]) -> Any:
    return labels[label] if _is_label(label, labels) else label


def _is_label(given: Any, labels: Mapping[Any, str]) -> bool:
    if isinstance(given, tuple):
        with suppress(TypeError):  # it holds something unhashable
            return given in labels
    return not isinstance(given, (str, bool)) and hasattr(given, "__index__") and operator.index(given) in labels


def positions_of(attributes: Any, conditions: Sequence[str], names: Sequence[str]) -> list[int]:
    """Positions of attributes among the conditions, in the order given, each once; an int counts along `names`."""
    places = {name: j for j, name in enumerate(conditions)}
    index = NameIndex(names)
    positions: dict[str, int] = {}
    for given in _split_lists(attributes, index):
        name = given if type(given) is str else resolve(index, given, "column")
        if name not in places:
            raise unknown_name("column", name, conditions)
        positions[name] = places[name]
    return list(positions.values())


def decision_names(names: Sequence[str], given: Any) -> tuple[str, ...]:
    """Names of the decision columns; labels, which belong into `y`, are refused."""
    array = hasattr(given, "dtype") and getattr(given, "ndim", 1) > 0
    numbers = array and getattr(given.dtype, "kind", "O") in "biuf"
    try:
        if not numbers:
            return resolve_all(names, given, "decision")
    except (TableError, UnknownNameError):
        listed = column_list(given)
        repeated = len(listed) > 2 and len(set(map(repr, listed))) < len(listed)
        several = len(listed) > 1 and len(listed) > len(names)
        if not array and not repeated and not several:
            raise
    kind = type(given).__name__
    raise TableError(
        "The ",
        Term("decision"),
        f" is a {kind} of {len(given)} values, not a column.",
        PythonOnly(" To give labels, pass it as y=."),
    )


def roles_of(
    names: Sequence[str], decision: tuple[str, ...], conditions: Any, drop: Any, weights: Any
) -> tuple[tuple[str, ...], str | None]:
    """Names of the conditions, and of the weights if there are any."""
    if isinstance(weights, Iterable) and not isinstance(weights, str):
        raise TableError(f"The weights are a {type(weights).__name__}. Pass the name or position of a column.")
    weight = None if weights is None else resolve(names, weights, "weights column")
    dropped = frozenset(resolve_all(names, drop, "column to drop"))
    with_other_roles = {*decision, *dropped, weight}
    chosen = tuple(name for name in names if name not in with_other_roles)
    if conditions is not None:
        chosen = tuple(name for name in resolve_all(names, conditions, "column") if name not in dropped)
    the_decision: tuple[Part, ...] = ("the ", Term("decision"))
    pairs_of_roles: tuple[tuple[Sequence[str], tuple[Part, ...], Collection[str | None], tuple[Part, ...]], ...] = (
        (decision, the_decision, (weight,), ("the weights",)),
        (decision, the_decision, dropped, ("to be dropped",)),
        (chosen, ("a column to choose from",), decision, the_decision),
        (chosen, ("a column to choose from",), (weight,), ("the weights",)),
    )
    for columns, role, other_columns, other_role in pairs_of_roles:
        for name in columns:
            if name in other_columns:
                raise TableError(f"{name!r} is both ", *role, " and ", *other_role, ". Choose one.")
    if not chosen:
        raise TableError("No column is left to choose from. Leave at least one beside the ", Term("decision"), ".")
    return chosen, weight
