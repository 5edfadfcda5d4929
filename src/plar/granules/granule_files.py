"""Granules on disk: Parquet with a column per attribute and decision, and one of counts; the roles are metadata."""

from __future__ import annotations

import json
import os
from ast import literal_eval
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.bins import Cuts
from plar.coding.codes import Column, encode_distinct
from plar.coding.index_like import Profile
from plar.coding.row_limit import MAX_OBJECTS
from plar.coding.series import check_threads, encode_series
from plar.coding.times import TimeCuts
from plar.errors import TableError, reason_of
from plar.files.find import check_name, first_bytes
from plar.files.write import checksum, replacing
from plar.granules.fingerprint import fingerprint_of
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    from plar.granules.granules import Granules

#: where Parquet's metadata hold the roles
_METADATA_KEY = "plar"
_VERSION = 4
#: columns of several types are written as text with the type in front, and read back as they were
_SPELLED_TYPES = ("int", "float", "bool", "str", "bytes", "tuple", "complex", "Decimal")

NamedColumns = list[tuple[str, Column]]


class StoredGranules(NamedTuple):
    """What a file holds, as `Granules.from_columns` takes it."""

    conditions: NamedColumns
    decision: NamedColumns
    counts: NDArray[np.int64]
    names: tuple[str, ...]
    cuts: dict[str, Cuts]
    text: bool
    n_rows: int
    profiles: dict[str, Profile]
    n_without_decision: int
    categorical_decision: bool


def _series(name: str, values: Sequence[Any]) -> tuple[pl.Series, bool]:
    """Distinct values as a Series, of one type if polars has it; otherwise as text, which is noted."""
    with suppress(Exception, pl.exceptions.PanicException):  # polars changes some values
        series = pl.Series(name, list(values), strict=True)
        has_type = series.dtype != pl.Object and not series.dtype.is_nested()
        if has_type and series.to_list() == list(values):
            return series, False
    with suppress(OverflowError):
        numbers = [v if v is None else float(v) for v in values if v is None or type(v) in (int, float)]
        if numbers == list(values):  # integers stay integers
            return pl.Series(name, numbers, dtype=pl.Float64), False
    return pl.Series(name, [_spelling(name, value) for value in values], dtype=pl.String), True


def _spelling(name: str, value: Any) -> str | None:
    """A value with its type in front."""
    if value is None:
        return None
    kind = type(value).__name__
    with suppress(ValueError, SyntaxError, RecursionError):
        if kind in _SPELLED_TYPES and _spelled(f"{kind} {value!r}") == value:
            return f"{kind} {value!r}"
    raise TableError(f"Column {name!r} holds values of the type {kind}, which no file can. Turn them into text first.")


def _spelled(written: str | None) -> Any:
    """The value that a spelling stands for; text that is no spelling stays as it is."""
    kind, _, text = (written or "").partition(" ")
    if kind == "Decimal":
        return Decimal(text.removeprefix("Decimal('").removesuffix("')"))
    if kind == "float":
        return float(text)
    return literal_eval(text) if kind in _SPELLED_TYPES else written


def _coded(series: pl.Series, is_spelled: bool) -> Column:
    """Code a column of a file, with spelled values as they were before."""
    column = encode_series(series)
    return encode_distinct(column.codes, map(_spelled, column.values)) if is_spelled else column


def write_granules(path: str | os.PathLike[str], granules: Granules) -> None:
    """Write granules, whole or not at all."""
    check_threads()
    conditions, decision = granules.named_columns()
    columns = [*conditions, *decision]
    count_name = "count"
    while count_name in dict(columns):
        count_name += "_"
    columns_to_write = []
    columns_as_read = []
    spelled_names = []
    try:
        values_of_columns = [_series(name, column.values) for name, column in columns]
    except UnicodeEncodeError:
        raise TableError("A name holds half a character (a lone surrogate), which no file can. Rename it.") from None
    for (name, column), (values, is_spelled) in zip(columns, values_of_columns, strict=True):
        columns_to_write.append(values.gather(column.codes))
        as_read = _coded(values, is_spelled)
        columns_as_read.append((name, Column(as_read.codes[column.codes], as_read.values)))
        if is_spelled:
            spelled_names.append(name)
    roles: dict[str, Any] = {
        "version": _VERSION,
        "conditions": list(granules.conditions),
        "decision": list(granules.decision),
        "count": count_name,
        "names": list(granules.names),
        "cuts": dict(granules.cuts),
        "times": {name: points.kind for name, points in granules.cuts.items() if isinstance(points, TimeCuts)},
        "text": granules.text,
        "n_rows": granules.n_rows,
        "profiles": {name: list(profile) for name, profile in granules.profiles.items()},
        "n_without_decision": granules.n_without_decision,
        "categorical_decision": granules.categorical_decision,
        "spelled": spelled_names,
    }
    roles["checksum"] = _checksum(roles, columns_as_read, granules.counts)
    frame = pl.DataFrame([*columns_to_write, pl.Series(count_name, granules.counts)])
    with replacing(path) as temporary:
        check_name(temporary)
        frame.write_parquet(temporary, metadata={_METADATA_KEY: json.dumps(roles)})


def _checksum(roles: Mapping[str, Any], columns: Sequence[tuple[str, Column]], counts: NDArray[np.int64]) -> str:
    """Checksum of the contents of a file: the roles, and the rows in any order."""
    rows = fingerprint_of([(column.codes, [(name, column.values)]) for name, column in columns], counts)
    roles = {key: value for key, value in roles.items() if key != "checksum"}
    return checksum(json.dumps([roles, list(rows), len(counts)], sort_keys=True).encode())


def read_granules(path: Path) -> StoredGranules:
    """Read what `write_granules` wrote."""
    try:
        roles = json.loads(_metadata(path) or "")
        if roles["version"] != _VERSION:
            raise ValueError(f"version {roles['version']}, this plar knows {_VERSION}")
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        return _stored(roles, frame)
    except (
        *(OSError, KeyError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError, ArithmeticError),
        MemoryError,  # Python's parser, on deep nesting
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise TableError(f"The granule file {str(path)!r} is damaged ({reason_of(error)}). Make it again.") from None


def _stored(roles: Mapping[str, Any], frame: pl.DataFrame) -> StoredGranules:
    """The contents of a file; any error means that it is damaged."""
    names = [*roles["conditions"], *roles["decision"]]
    if not roles["decision"] or len({*names}) < len(names):
        raise ValueError("no decision, or a column twice")
    if not all(isinstance(name, str) for name in (*names, *roles["names"], roles["count"])):
        raise ValueError("a name that is not text")
    counts = _counts(frame[roles["count"]])
    conditions = [(name, _coded(frame[name], name in roles["spelled"])) for name in roles["conditions"]]
    decision = [(name, _coded(frame[name], name in roles["spelled"])) for name in roles["decision"]]
    if roles["checksum"] != _checksum(roles, [*conditions, *decision], counts):
        raise ValueError("it is not as it was written")
    # the first files of this version have none of these
    n_rows = int(roles.get("n_rows", 0))
    n_without_decision = int(roles.get("n_without_decision", 0))
    for n in (n_rows, n_without_decision):
        if not 0 <= n <= MAX_OBJECTS:
            raise ValueError(f"{n} rows")
    profiles: dict[str, Profile] = {}
    for name, (kind, *numbers) in roles.get("profiles", {}).items():
        profiles[name] = Profile(str(kind), *map(int, numbers))
    return StoredGranules(
        conditions=conditions,
        decision=decision,
        counts=counts,
        names=tuple(roles["names"]),
        cuts=_cuts(roles),
        text=roles["text"] is True,
        n_rows=n_rows,
        profiles=profiles,
        n_without_decision=n_without_decision,
        categorical_decision=roles.get("categorical_decision") is True,
    )


def _cuts(roles: Mapping[str, Any]) -> dict[str, Cuts]:
    """The cut points, those of times with their kind."""
    kinds = roles.get("times", {})
    cuts: dict[str, Cuts] = {}
    for name, numbers in roles["cuts"].items():
        points = tuple(map(float, numbers))
        cuts[name] = TimeCuts(points, str(kinds[name])) if name in kinds else points
    return cuts


def _counts(series: pl.Series) -> NDArray[np.int64]:
    """The column of counts, all positive."""
    if not series.dtype.is_integer() or not len(series) or series.null_count() or (series < 1).any():
        raise ValueError("counts below 1")
    return series.cast(int).to_numpy().astype(np.int64)


def holds_granules(path: Path) -> bool:
    """Whether a file was written by `write_granules`."""
    return _metadata(path) is not None


def _metadata(path: Path) -> str | None:
    """What `write_granules` notes in a file; None for any other file."""
    if not path.is_file() or first_bytes(path, 4) != b"PAR1":  # a pipe is not opened, since reading would consume it
        return None
    check_threads()
    check_name(path)
    try:
        return pl.read_parquet_metadata(path).get(_METADATA_KEY)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if path.suffix.lower() != ".parquet":  # not Parquet; reported where it is read
            return None
        raise TableError(f"Cannot read the Parquet file {str(path)!r}: it is damaged. Make it again.") from None
