"""How many rows can be counted; beside what needs numba, since saved results are checked by it too."""

from __future__ import annotations

from typing import Final

#: rows, each counted by its weight, up to which all sums are exact
MAX_OBJECTS: Final = 1 << 40
