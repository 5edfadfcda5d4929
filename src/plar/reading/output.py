"""Tables out: rows stream from a lazy frame to a file in the format that its suffix says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plar.coding.store import find_files, replacing
from plar.errors import TableError
from plar.reading.readers import suffix_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_output", "check_place", "sink_frame"]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
_PACKED: dict[str, Literal["uncompressed", "gzip", "zstd"]] = {
    "": "uncompressed",
    ".gz": "gzip",
    ".zst": "zstd",
}


def check_output(path: str | os.PathLike[str], source: object = None) -> str:
    """Refuse an output that cannot be written, before any work is done; return its format.

    Parameters
    ----------
    path : str or PathLike
    source : str, PathLike or sequence of Path, optional
        The input, which must not be overwritten.

    Examples
    --------
    >>> check_output("reduced.csv.gz", "table.csv")
    'csv'
    """
    target = Path(path)
    suffix, packed = suffix_of(target)
    kind = _FORMATS.get(suffix)
    if kind is None or (packed and kind not in ("csv", "ndjson")):
        known = " ".join(_FORMATS)
        raise TableError(f"Unknown output format of {str(target)!r}. Choose one of: {known} (text also .gz .zst).")
    check_place(target, source)
    return kind


def check_place(path: str | os.PathLike[str], source: object = None) -> None:
    """Refuse a place where no file can be made, or where the input is."""
    target = Path(path)
    if target.is_dir():
        raise TableError(f"Cannot write {str(target)!r}: it is a directory. Name a file in it.")
    folder = target.parent
    if not folder.is_dir():
        raise TableError(f"Cannot write {str(target)!r}: there is no folder {str(folder)!r}. Make it first.")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise TableError(f"Cannot write {str(target)!r}: permission denied. Choose another place.")
    if target.exists():
        for file in _inputs(source):
            if target.samefile(file):
                raise TableError(f"{str(target)!r} is the input. Choose another name for the output.")


def _inputs(source: object) -> Sequence[Path]:
    if isinstance(source, (str, os.PathLike)):
        try:
            return find_files(source)
        except TableError:
            return ()  # said when it is read
    return source if isinstance(source, Sequence) else ()


def sink_frame(frame: pl.LazyFrame, path: str | os.PathLike[str], kind: str) -> None:
    """Write a lazy frame; polars' errors pass through, and nothing is left behind."""
    import polars as pl

    target = Path(path)
    suffix, packed = suffix_of(target)
    with replacing(target) as temporary:
        if kind == "parquet":
            frame.sink_parquet(temporary)
        elif kind == "ipc":
            frame.sink_ipc(temporary)
        elif kind == "ndjson":
            frame.sink_ndjson(temporary, compression=_PACKED[packed], check_extension=False)
        else:
            mark = "\t" if suffix == ".tsv" else ","
            written = pl.selectors.binary().bin.encode("hex")  # CSV has no bytes
            frame.with_columns(written).sink_csv(
                temporary, separator=mark, compression=_PACKED[packed], check_extension=False
            )
