"""Equal rows of a polars frame, counted: by polars itself, or batch by batch where memory is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plar.limits import check_memory
from plar.reading.source import Source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["group_rows"]


def group_rows(source: Source, keys: Sequence[pl.Expr], sums: Sequence[pl.Expr]) -> pl.DataFrame:
    """Group the rows of a source by keys, each group with its sums.

    Polars is fastest when it is left alone. It may then hold many more rows than there are groups, and cannot be
    stopped; so under a memory limit it groups batches, and what they have in common is added up here.

    Examples
    --------
    >>> import polars as pl
    >>> rows = Source(pl.LazyFrame({"a": [1, 1, 2]}), ("a",), (), text=False)
    >>> sorted(group_rows(rows, [pl.col("a")], [pl.len().alias("n")]).rows())
    [(1, 2), (2, 1)]
    """
    if not check_memory("Reading the table"):
        return source.collect(source.frame.group_by(keys).agg(sums))
    import polars as pl

    read = dict.fromkeys(name for part in (*keys, *sums) for name in part.meta.root_names())
    names = [key.meta.output_name() for key in keys]
    schema = source.frame.select(keys).collect_schema()
    texts = [name for name in names if schema[name] == pl.String]
    # text would keep whole batches in memory; categories are kept once each
    short = [key.cast(pl.Categorical) if name in texts else key for name, key in zip(names, keys, strict=True)]
    wide = [part.cast(pl.Float64) for part in sums]  # exact: no table has 2^53 rows
    again = [pl.col(part.meta.output_name()).sum() for part in sums]
    ready: list[pl.DataFrame] = []
    fresh: list[pl.DataFrame] = []
    for batch in source.batches([pl.col(name) for name in read], len(read)):
        fresh.append(batch.group_by(short).agg(wide))
        # added up when there is as much new as old, so that every group is moved a few times only
        if sum(map(len, fresh)) >= sum(map(len, ready)):
            ready, fresh = [pl.concat([*ready, *fresh]).group_by(names).agg(again)], []
    found = [*ready, *fresh]
    if not found:  # no rows
        return source.collect(source.frame.group_by(keys).agg(sums))
    whole = found[0] if len(found) == 1 else pl.concat(found).group_by(names).agg(again)
    return whole.with_columns(pl.col(name).cast(pl.String) for name in texts)
