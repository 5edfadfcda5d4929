"""JSON: one object per line, or an array of objects. Polars reads it; Python's reader finds out what is wrong."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from plar.coding.series import named
from plar.errors import TableError
from plar.files.find import first_bytes
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.frames import FrameSource, common_type
from plar.input.text.chunks import MAX_LINE, begins_without_data, open_bytes, read_head, too_long
from plar.input.text.headers import decoded
from plar.runtime.lazy_polars import pl

_KINDS = {bool: "true or false", str: "text", list: "a list", dict: "an object", int: "a number", float: "a number"}
_ORDERED = 16  # polars keeps the order of up to this many names
_LINES = 10_000
_CHUNK = 1 << 24
_EXACT = 1 << 53
_LARGEST = 1 << 127


class JsonSource(FrameSource):
    """Files of JSON."""

    may_grow = True

    def granulate(self, roles: Roles) -> Granules:
        """Group the rows, after checking that no column mixes types, which polars would convert."""
        self._check(roles.used)
        return super().granulate(roles)

    def explain(self, error: BaseException) -> TableError:
        """Find the line that made polars fail."""
        try:
            self.check_unchanged()
            for file in self.files:
                with closing(_rows(file)) as rows:
                    _check_types(rows)
        except TableError as fault:
            return fault
        return super().explain(error)

    def _check(self, names: Sequence[str]) -> None:
        schema = self.frame.collect_schema()
        texts = [name for name in names if schema[name] == pl.String]
        floats = [name for name in names if schema[name].is_float()]
        largest = pl.max_horizontal(named(*floats).abs().max()) if floats else pl.lit(0)
        large = floats and (self.collect(self.frame.select(largest)).item() or 0) >= _EXACT
        keys = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in texts)
        # not text, or a lone surrogate, which polars reads as NUL
        other = pl.col("line").str.contains(rf'(?:{keys})\s*:\s*[^\s"n]|\\u[dD][89a-fA-F]')
        self.check_unchanged()  # here and at the end, not for each of many files
        for file in self.files:
            if is_array(file):
                continue
            lines = pl.scan_lines(json_source(file), glob=False)
            mixed = texts and self.run_query(lines.select(other.any())).item()
            if mixed or large:
                with closing(_rows(file)) as rows:  # or a traceback would keep the file open
                    _check_types(rows, {*texts, *(floats if large else ())})
        self.check_unchanged()


def unmapped(file: Path) -> str:
    """A source by which polars reads a file without mapping it: if a mapped file is truncated, the process dies."""
    return file.resolve().as_uri()


def json_source(file: Path) -> str | bytes:
    """What polars reads: the file, or its bytes after frames of zstd that hold no data, which polars does not know."""
    if not begins_without_data(first_bytes(file, 4)):
        return unmapped(file)
    packed = file.read_bytes()
    while begins_without_data(packed):
        packed = packed[8 + int.from_bytes(packed[4:8], "little") :]
    return packed


def is_array(path: Path) -> bool:
    """Whether a file holds one array of objects."""
    with open_bytes(path, "utf-8") as file:
        head = read_head(file, path)
    array = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    if head.startswith(codecs.BOM_UTF8) and not array:
        raise TableError(f"{str(path)!r} begins with a byte order mark, which JSON forbids. Save it as UTF-8 without.")
    return array


def _lines(path: Path) -> Generator[str, None, None]:
    """Lines as text; close it if not all are read."""
    with open_bytes(path, "utf-8") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                raise too_long(path)
            yield decoded(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, path, number, "utf-8")


def read_array(path: Path) -> pl.LazyFrame:
    """Read a file that holds an array of objects."""
    text = "".join(_lines(path))
    try:
        rows = json.loads(text, object_pairs_hook=_once, parse_float=_float)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{str(path)!r}: {error}. Write an array of objects.") from None
    _check_types((f"{str(path)!r}, object {number}", row) for number, row in enumerate(rows, 1))
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        _check_text(str(path), name)
    return pl.LazyFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in names])


def json_schema(path: Path) -> dict[str, Any]:
    """Names and types over all rows, since the first rows do not suffice; read in chunks, so that no file is mapped."""
    found: dict[str, Any] = {}
    with open_bytes(path, "utf-8") as file:
        while lines := file.readlines(_CHUNK):
            if not any(map(bytes.strip, lines)):
                continue
            part = pl.scan_ndjson(b"".join(lines), infer_schema_length=None).collect_schema()
            found |= {name: _wider(found.get(name, pl.Null), dtype) for name, dtype in part.items()}
    if not found:
        raise TableError(f"{str(path)!r} has no columns. Write one JSON object per line.")
    return found


def _wider(one: Any, other: Any) -> Any:
    """The type that holds the values of both; text if they are of different kinds, which is refused later."""
    nested = one.is_nested() and other.is_nested()
    return common_type([one, other]) or (one if nested else pl.String)


def json_order(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of the first rows: polars keeps it only if rows have few."""
    if len(names) <= _ORDERED:
        return tuple(names)
    left, order = set(names), list[str]()
    with suppress(ValueError, RecursionError), closing(_lines(path)) as lines:  # not JSON, though polars reads it
        for line in islice(lines, _LINES):
            row = json.loads(line) if line.strip() else {}
            order += [name for name in row if name in left]
            left -= set(order)
            if not left:
                break
    return (*order, *sorted(left))


def _not_json(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON, where null is missing")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text)


def _check_text(where: str, text: str) -> None:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise TableError(f"{where}: {text[:40]!r} has half a character (a lone surrogate). Write the whole character.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name in found if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"{twice!r} occurs twice")
    return found


def _check_types(rows: Iterable[tuple[str, Any]], names: Collection[str] | None = None) -> None:
    """Refuse the first row that is not an object, or changes the type of a column, of those in `names` if given."""
    kinds, fractions, large = dict[str, str](), set[str](), dict[str, int]()
    for where, row in rows:
        if not isinstance(row, dict):
            raise TableError(f"{where}: {json.dumps(row)[:40]!r} is not an object. Write objects only, one per row.")
        for name, value in row.items():
            if names is not None and name not in names:
                continue
            kind = _KINDS.get(type(value))
            if kind and kinds.setdefault(name, kind) != kind:
                raise TableError(f"{where}: column {name!r} has {kind} after {kinds[name]}. Write all in one type.")
            if isinstance(value, str):
                _check_text(where, value)
            if isinstance(value, int) and abs(value) >= _LARGEST:
                raise TableError(f"{where}: column {name!r} has a whole number of 39 digits or more. Write it as text.")
            if isinstance(value, float):
                fractions.add(name)
            elif isinstance(value, int) and abs(value) > _EXACT:
                large[name] = value
            if name in large and name in fractions:
                raise TableError(
                    f"{where}: column {name!r} has fractions, and {large[name]}, which no float holds. "
                    "Write its numbers as text."
                )


def _rows(path: Path) -> Generator[tuple[str, Any], None, None]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            where = f"{str(path)!r}, line {number}"
            try:
                yield where, json.loads(line, object_pairs_hook=_once, parse_constant=_not_json, parse_float=_float)
            except (ValueError, RecursionError) as error:
                raise TableError(f"{where}: {str(error).partition(':')[0]}. Write one JSON object per line.") from None
