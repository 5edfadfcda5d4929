"""The options of plar's functions, with those of reading, which the short functions take by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from plar.options import ReadingKwargs


def options_of(function: Callable[..., Any]) -> list[str]:
    """Names of a function's options, without the data."""
    names: list[str] = []
    for name in inspect.signature(function).parameters:
        if name == "reading":
            names += ReadingKwargs.__annotations__
        elif name not in ("data", "path", "attributes", "proof"):
            names.append(name)
    return names


def default_of(function: Callable[..., Any], option: str) -> Any:
    """The default of an option that the function spells out."""
    return inspect.signature(function).parameters[option].default
