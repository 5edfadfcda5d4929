"""From JSON to objects of the types that were saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def fitted(name: str, kind: Any, value: Any) -> Any:
    """Make a field of an object; TypeError with its name if it does not fit."""
    try:
        return from_json(kind, value)
    except (TypeError, OverflowError) as error:
        inner_field = str(error) if isinstance(error, TypeError) else ""
        raise TypeError(inner_field or repr(name)) from None


def from_json(kind: Any, value: Any) -> Any:
    """Make an object of a type from JSON; TypeError with the name of the field that does not fit.

    >>> from_json(tuple[float, ...], [1, 2.5])
    (1.0, 2.5)
    """
    origin = get_origin(kind)
    inner = get_args(kind)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return _dataclass_from_json(kind, value)
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = [inner[0]] * len(value) if inner[-1] is ... else inner
        if len(kinds) != len(value):
            raise TypeError
        return tuple(from_json(item_kind, item) for item_kind, item in zip(kinds, value, strict=True))
    if origin is Mapping and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: from_json(inner[1], item) for key, item in value.items()}
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if origin is UnionType:
        return _union_from_json(inner, value)
    if kind is Any or (type(value) is kind and kind is not float):
        return value
    raise TypeError


def _union_from_json(kinds: Sequence[Any], value: Any) -> Any:
    """Make an object of one of several types, of which at most one is not a plain value."""
    if value is None and type(None) in kinds:
        return None
    kind = type(value) if type(value) in kinds else kinds[0]
    return from_json(kind, value)


@cache
def _types_of_fields(kind: Any) -> dict[str, Any]:
    """The types of the fields of a dataclass; they are worked out from text, which takes long for many objects."""
    return get_type_hints(kind)


def _dataclass_from_json(kind: Any, value: Mapping[str, Any]) -> Any:
    kinds = _types_of_fields(kind)
    missing = [name for name in kinds if name not in value]
    if missing:
        raise TypeError(repr(missing[0]))
    return kind(**{name: fitted(name, field_kind, value[name]) for name, field_kind in kinds.items()})
