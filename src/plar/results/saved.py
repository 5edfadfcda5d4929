"""Results in files: JSON with a checksum, written whole or not at all, and read with care."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from plar.errors import TableError
from plar.files.write import as_path, checksum, replacing
from plar.results.from_json import fitted

#: types of the settings that plar reads in a saved result; the others are only shown
_SETTINGS: Mapping[str, Any] = {
    "epsilon": float,
    "tolerance": float,
    "minimal": bool,
    "header": bool,
    "y": bool,
    "missing": str,
    "missing_decision": str,
    "decimal": str,
    "encoding": str,
    "search": str,
    "given": str,
    "target_type": str,
    "weights": str | None,
    "separator": str | None,
    "include": tuple[str, ...],
    "exclude": tuple[str, ...],
    "keep": tuple[str, ...],
    "numeric": tuple[str, ...],
    "costs": Mapping[str, int],
    "max_attributes": int | None,
    "max_columns": int | None,
    "max_conditions": int | None,
    "min_support": int,
    "kind": str,
    "alpha": float | None,
    "start": str | None,
    "conditions": tuple[str, ...] | None,
    "attributes": tuple[str, ...] | None,
    "na": tuple[str, ...] | None,
}


def save(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of a result."""
    text = json.dumps({**fields, "checksum": _checksum_of(fields)}, ensure_ascii=False, indent=1) + "\n"
    with replacing(as_path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # lone surrogates


def read(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote; JSON without a checksum is taken as it is."""
    file = as_path(path)
    try:
        saved = json.loads(file.read_bytes())
    except OSError as error:
        raise TableError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except (ValueError, RecursionError):
        raise TableError(f"{str(path)!r} is not a saved result: it is not valid JSON.") from None
    saved_checksum = saved.pop("checksum", None) if isinstance(saved, dict) else None
    if saved_checksum is not None and saved_checksum != _checksum_of(saved):
        raise TableError(
            f"{str(path)!r} is not as it was saved: its checksum does not match. Save it again; if you have "
            "changed it yourself, remove the checksum."
        )
    return saved


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that plar reads and that have another type."""
    for name, value in settings.items():
        fitted(name, _SETTINGS.get(name, Any), value)
    bins = settings.get("bins") or ""
    for rule in bins.values() if isinstance(bins, Mapping) else [bins]:
        fitted("bins", Any if isinstance(rule, str) else tuple[float, ...], rule)


def writable(text: str) -> str:
    r"""Text as UTF-8 can hold it: what is no character is escaped.

    >>> print(writable("größe"), writable("\udcff"))
    größe \udcff
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _checksum_of(fields: Mapping[str, Any]) -> str:
    return checksum(json.dumps(fields, separators=(",", ":")).encode())
