"""How an option is declared: as a field of a dataclass that says what it means, and what it may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any


class Heading(StrEnum):
    """What the help of a command lists an option under; the headings come in this order."""

    COLUMNS = "Columns"
    SEARCH = "What to find"
    READING = "Reading the table"
    OUTPUT = "Output"
    LIMITS = "Limits"
    COMPUTING = "Where to compute"
    HELP = "Messages and help"


@dataclass(frozen=True, slots=True)
class Option:
    """The properties of an option."""

    #: one line, for the shell's help and Spark ML's `explainParams`
    help: str
    #: refuses an invalid value; gives the value to keep
    check: Callable[[str, Any], Any] | None = None
    #: how the shell spells it, if not by its name
    flags: tuple[str, ...] = ()
    #: what Spark ML calls it, if not as Spark ML's style makes it of the name
    param: str = ""
    #: the values that Tab offers
    choices: tuple[str, ...] = ()
    #: what the shell's help lists it under, if not under the heading of its dataclass
    heading: Heading | None = None


def option(
    default: Any,
    help: str,
    check: Callable[[str, Any], Any] | None = None,
    *,
    flags: tuple[str, ...] = (),
    param: str = "",
    choices: tuple[str, ...] = (),
    heading: Heading | None = None,
) -> Any:
    """Declare a field of a dataclass as an option."""
    return field(default=default, metadata={"option": Option(help, check, flags, param, choices, heading)})


def keep_checked(options: Any) -> None:
    """Check every field of an options object, and keep what its check gives."""
    for declared in fields(options):
        check = declared.metadata["option"].check
        if check is not None:
            object.__setattr__(options, declared.name, check(declared.name, getattr(options, declared.name)))
