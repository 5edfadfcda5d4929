"""JSON: one object per line, or an array of objects. Polars reads it; Python's reader finds out what is wrong."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plar.coding.series import named
from plar.errors import TableError
from plar.files.find import first_bytes
from plar.granules.granules import Granules
from plar.input.roles import Roles
from plar.input.tables.frames import FrameSource, common_type
from plar.input.text.chunks import MAX_LINE, begins_without_data, open_bytes, read_head, too_long
from plar.input.text.headers import decoded
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

_KINDS = {bool: "true or false", str: "text", list: "a list", dict: "an object", int: "a number", float: "a number"}
#: polars keeps the order of up to this many names
_MAX_NAMES_IN_ORDER = 16
#: lines that are looked at for the order of the names
_LINES_FOR_ORDER = 10_000
_CHUNK_BYTES = 1 << 24
#: above this, not all whole numbers are floats
_MAX_EXACT_FLOAT = 1 << 53
#: what polars' largest integers cannot hold
_TOO_LARGE = 1 << 127


class JsonSource(FrameSource):
    """Files of JSON."""

    may_grow = True

    def granulate(self, roles: Roles) -> Granules:
        """Group the rows, after checking that no column mixes types, which polars would convert."""
        self._check(roles.used)
        return super().granulate(roles)

    @staticmethod
    def fault_of(files: Sequence[Path], error: BaseException) -> TableError:
        """Find the line that made polars fail."""
        try:
            for file in files:
                with closing(_rows(file)) as rows:
                    _check_types(rows)
        except TableError as fault:
            return fault
        return FrameSource.fault_of(files, error)

    def _check(self, names: Sequence[str]) -> None:
        schema = self.frame.collect_schema()
        texts = [name for name in names if schema[name] == pl.String]
        floats = [name for name in names if schema[name].is_float()]
        has_large_floats = bool(floats) and self._largest(floats) >= _MAX_EXACT_FLOAT
        names_to_check = {*texts, *floats} if has_large_floats else set(texts)
        keys = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in texts)
        # not text, or a lone surrogate, which polars reads as NUL
        is_other = pl.col("line").str.contains(rf'(?:{keys})\s*:\s*[^\s"n]|\\u[dD][89a-fA-F]')
        self.check_unchanged()  # here and at the end, not for each of many files
        for file in self.files:
            if is_array(file):
                continue
            may_mix_types = bool(texts) and self._has_line(file, is_other)
            if may_mix_types or has_large_floats:
                with closing(_rows(file)) as rows:  # or a traceback would keep the file open
                    _check_types(rows, names_to_check)
        self.check_unchanged()

    def _largest(self, names: Sequence[str]) -> float:
        """The largest absolute value in columns of floats."""
        largest = pl.max_horizontal(named(*names).abs().max())
        return self.collect(self.frame.select(largest)).item() or 0

    def _has_line(self, file: Path, condition: pl.Expr) -> bool:
        """Whether a condition holds for any line of a file."""
        lines = pl.scan_lines(json_source(file), glob=False)
        return bool(self.run_query(lines.select(condition.any())).item())


def unmapped(file: Path) -> str:
    """A source by which polars reads a file without mapping it: if a mapped file is truncated, the process dies."""
    return file.resolve().as_uri()


def json_source(file: Path) -> str | bytes:
    """What polars reads: the file, or its bytes after frames of zstd that hold no data, which polars does not know."""
    if not begins_without_data(first_bytes(file, 4)):
        return unmapped(file)
    data = file.read_bytes()
    while begins_without_data(data):
        data = data[8 + int.from_bytes(data[4:8], "little") :]
    return data


def is_array(path: Path) -> bool:
    """Whether a file holds one array of objects."""
    with open_bytes(path, "utf-8") as file:
        head = read_head(file, path)
    has_mark = head.startswith(codecs.BOM_UTF8)
    begins_array = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    if has_mark and not begins_array:
        raise TableError(f"{str(path)!r} begins with a byte order mark, which JSON forbids. Save it as UTF-8 without.")
    return begins_array


def _lines(path: Path) -> Generator[str, None, None]:
    """Lines as text; close it if not all are read."""
    with open_bytes(path, "utf-8") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                raise too_long(path)
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            yield decoded(line, path, number, "utf-8")


def read_array(path: Path) -> pl.LazyFrame:
    """Read a file that holds an array of objects."""
    text = "".join(_lines(path))
    try:
        rows = json.loads(text, object_pairs_hook=_row_of, parse_float=_float)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{str(path)!r}: {error}. Write an array of objects.") from None
    _check_types((f"{str(path)!r}, object {number}", row) for number, row in enumerate(rows, 1))
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        _check_text(str(path), name)
    return pl.LazyFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in names])


def json_schema(path: Path) -> dict[str, PolarsDataType]:
    """Names and types over all rows, since the first rows do not suffice; read in chunks, so that no file is mapped."""
    schema: dict[str, PolarsDataType] = {}
    with open_bytes(path, "utf-8") as file:
        while lines := file.readlines(_CHUNK_BYTES):
            if not any(map(bytes.strip, lines)):
                continue
            schema_of_chunk = pl.scan_ndjson(b"".join(lines), infer_schema_length=None).collect_schema()
            for name, dtype in schema_of_chunk.items():
                schema[name] = _wider(schema.get(name, pl.Null), dtype)
    if not schema:
        raise TableError(f"{str(path)!r} has no columns. Write one JSON object per line.")
    return schema


def _wider(first: PolarsDataType, second: PolarsDataType) -> PolarsDataType:
    """The type that holds the values of both; text if they are of different kinds, which is refused later."""
    common = common_type([first, second])
    if common is not None:
        return common
    return first if first.is_nested() and second.is_nested() else pl.String


def json_order(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of the first rows: polars keeps it only if rows have few."""
    if len(names) <= _MAX_NAMES_IN_ORDER:
        return tuple(names)
    remaining = set(names)
    order: list[str] = []
    with suppress(ValueError, RecursionError), closing(_lines(path)) as lines:  # not JSON, though polars reads it
        for line in islice(lines, _LINES_FOR_ORDER):
            row = json.loads(line) if line.strip() else {}
            order += [name for name in row if name in remaining]
            remaining -= set(order)
            if not remaining:
                break
    return (*order, *sorted(remaining))


def _not_json(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON, where null is missing")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text)


def _check_text(where: str, text: str) -> None:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise TableError(f"{where}: {text[:40]!r} has half a character (a lone surrogate). Write the whole character.")


def _row_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, in which no name may occur twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        occurrences = Counter(name for name, _ in pairs)
        twice = next(name for name in row if occurrences[name] > 1)
        raise ValueError(f"{twice!r} occurs twice")
    return row


def _check_types(rows: Iterable[tuple[str, object]], names: Collection[str] | None = None) -> None:
    """Refuse the first row that is not an object, or changes the type of a column, of those in `names` if given."""
    kinds: dict[str, str] = {}
    with_fractions: set[str] = set()
    inexact_as_float: dict[str, int] = {}
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
            if isinstance(value, int) and abs(value) >= _TOO_LARGE:
                raise TableError(f"{where}: column {name!r} has a whole number of 39 digits or more. Write it as text.")
            if isinstance(value, float):
                with_fractions.add(name)
            elif isinstance(value, int) and abs(value) > _MAX_EXACT_FLOAT:
                inexact_as_float[name] = value
            if name in inexact_as_float and name in with_fractions:
                raise TableError(
                    f"{where}: column {name!r} has fractions, and {inexact_as_float[name]}, which no float holds. "
                    "Write its numbers as text."
                )


def _rows(path: Path) -> Generator[tuple[str, object], None, None]:
    """Rows as Python reads them, each with where it is; close it if not all are read."""
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        where = f"{str(path)!r}, line {number}"
        try:
            row = json.loads(line, object_pairs_hook=_row_of, parse_constant=_not_json, parse_float=_float)
        except (ValueError, RecursionError) as error:
            raise TableError(f"{where}: {str(error).partition(':')[0]}. Write one JSON object per line.") from None
        yield where, row
