"""How the fields of a text are separated; `quotes.py` reads values in quotes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plar.grouping.factorize import Bytes
from plar.grouping.partition import U64Array

#: roles of a byte outside quotes: one bit each
SEPARATOR = np.uint8(1)
LINE_END = np.uint8(2)
COMMENT = np.uint8(4)
QUOTE = np.uint8(8)
BLANK = np.uint8(16)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are separated."""

    #: one ASCII character; a blank means any run of blanks and tabs
    separator: str
    #: characters that may quote a value
    quotes: str = '"'
    #: what begins a comment, which extends to the end of the line; empty: no comments
    comment: str = ""
    #: as in ARFF: blanks may surround quotes, and a backslash escapes within them. Otherwise quotes are doubled
    padded: bool = False
    #: how a missing value is written, outside quotes
    missing: tuple[str, ...] = ()
    #: the role of each byte outside quotes
    kinds: Bytes = field(init=False, repr=False, compare=False)
    #: the bytes that end a field, each eight times in a word
    ends: U64Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Tabulate the bytes for the kernels."""
        kinds = np.zeros(256, np.uint8)
        for marks, kind in [(" \t", BLANK), ("\n", LINE_END), (self.quotes, QUOTE), (self.comment, COMMENT)]:
            kinds[list(marks.encode())] |= kind
        if self.runs:
            kinds[list(b" \t")] |= SEPARATOR
            third_end = "\t"
        else:
            kinds[ord(self.separator)] = SEPARATOR  # even if it is a tab, which is a blank otherwise
            third_end = self.comment or "\n"
        ends = [ord(end) * 0x0101010101010101 for end in (self.separator, "\n", third_end)]
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "ends", np.array(ends, np.uint64))

    @property
    def runs(self) -> bool:
        """Whether a run of blanks counts as one separator."""
        return self.separator == " "

    @property
    def multiline(self) -> bool:
        """Whether a value in quotes may hold line ends."""
        return not self.runs and not self.padded


class ByteRoles(NamedTuple):
    """A dialect as the kernels take it; see `Dialect`."""

    kinds: Bytes
    ends: U64Array
    runs: bool
    padded: bool
