"""How another table is read, to be compared with the one that a result is about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from plar.files.find import find_files, format_of, on_disk
from plar.input.tables.table import TEXT_FORMATS


def reading_as(settings: Mapping[str, Any], names: Sequence[str], data: Any) -> dict[str, Any]:
    """Those of the options of a result that have these names, as far as they go with the data."""
    options = {name: settings[name] for name in names if name in settings}
    is_path = isinstance(data, (str, os.PathLike))
    if is_path and any(format_of(on_disk(file), as_text=False) not in TEXT_FORMATS for file in find_files(data)):
        options.pop("separator", None)  # which would have it read as text
    return options
