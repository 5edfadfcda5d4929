"""Names and values that could break a line, a terminal, JSON, a page or a program, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: one name for each way to do harm; a null byte cannot stand in a file's name or on a command line
NAMES = [
    'quo"te', "apo'strophe", "new\nline", "re\rturn", "tab\tbed", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "bell\x07",
    "del\x7f", "c1\x9b31m",  "emoji 🎉👩‍👩‍👧", "ltr\u202eabc\u202c", "b\ufeffom", "zero\u200bwidth", "line\u2028sep",
    "long" * 2500, "e\u0301", "__proto__", "constructor", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "a&amp;b",
    "{{7*7}}", "{% raw %}", "${7*7}", "=1+1", "-rf", "--decision", "@import", "%n%s", "../../etc/passwd", "count", "y",
    "count_", "nu\0ll", "a,b", "a;b", "\\", "\\x1b", "nan", "None", "0", "-1", "*", "[a]",
    "^.*$",
]  # fmt: skip


def odd_table(names: Sequence[str] = NAMES) -> dict[str, list[Any]]:
    """Every column but the first two is constant but for its hostile values, so that those two are the reduct."""
    n = 8
    columns: dict[str, list[Any]] = {name: [names[j % len(names)]] * n for j, name in enumerate(names)}
    columns[names[0]] = [f"{names[i % 2 + 1]}{i % 2}" for i in range(n)]
    columns[names[1]] = [f"{names[i // 2 % 2 + 3]}{i // 2 % 2}" for i in range(n)]
    columns["class"] = [f"{names[5]}{i % 4}" for i in range(n)]
    return columns


#: names that would do something if they were taken for anything but text
MARKUP_NAMES = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</script><script>alert(2)</script>",
    "</title></style><h1>",
    "<!--",
    "-->",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "&lt;b&gt;",
    "two\nlines\u2028more",
    "\x1b[31mred\x00",
    "exe.\u202efdp",
    "שלום",
    "",
    " ",
    "x" * 10_000,
    "__proto__",
)
MARKUP_DECISION = "<i>decision</i>"


def markup_table() -> dict[str, Any]:
    """A table of these names, with a decision that no column tells."""
    rng = np.random.default_rng(5)
    table: dict[str, Any] = {name: rng.integers(0, 3, 60) for name in MARKUP_NAMES}
    table["twin of <!--"] = 2 - table["<!--"]
    return {**table, MARKUP_DECISION: rng.integers(0, 2, 60)}
