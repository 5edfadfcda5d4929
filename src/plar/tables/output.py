"""Tables out: rows stream from a lazy frame to a file in the format that its suffix says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plar.coding.series import encode_series, named
from plar.files import check_name, check_place, output_format, replacing, suffix_of

if TYPE_CHECKING:
    import polars as pl

_PACKED: dict[str, Literal["uncompressed", "gzip", "zstd"]] = {"": "uncompressed", ".gz": "gzip", ".zst": "zstd"}


def check_output(path: str | os.PathLike[str], inputs: Sequence[Path] = ()) -> None:
    """Refuse an output that cannot be written, or is one of the inputs, before any work is done."""
    output_format(Path(path))
    check_name(Path(path))
    check_place(path, inputs)


def sink_frame(frame: pl.LazyFrame, path: str | os.PathLike[str]) -> None:
    """Write a lazy frame; polars' errors pass through, and nothing is left behind."""
    kind, (suffix, packed) = output_format(Path(path)), suffix_of(Path(path))
    with replacing(path) as temporary:
        check_name(temporary)
        if kind == "parquet":
            frame.sink_parquet(temporary)
        elif kind == "ipc":
            frame.sink_ipc(temporary)
        elif kind == "ndjson":
            _as_text(frame).sink_ndjson(temporary, compression=_PACKED[packed], check_extension=False)
        else:
            mark = "\t" if suffix == ".tsv" else ","
            _as_text(frame).sink_csv(temporary, separator=mark, compression=_PACKED[packed], check_extension=False)


def _as_text(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Bytes in hexadecimal, and dates and durations as plar spells them: polars cannot write all of them."""
    import polars as pl

    def spelled(series: pl.Series) -> pl.Series:
        column = encode_series(series)
        return pl.Series(series.name, column.values, dtype=pl.String).gather(column.codes)

    made = []
    for name, dtype in frame.collect_schema().items():
        if isinstance(dtype, pl.BaseExtension):
            made.append(named(name).to_physical())
        elif dtype == pl.Binary:
            made.append(named(name).bin.encode("hex"))
        elif dtype in (pl.Date, pl.Duration):
            made.append(named(name).map_batches(spelled, return_dtype=pl.String, is_elementwise=True))
    return frame.with_columns(made)
