"""Selected columns as a frame of another library, where `set_output` asks for it, each column with its own type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plar.coding.codes import is_missing
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import pandas as pd

#: how libraries refuse values
_REFUSED = (ImportError, TypeError, ValueError, NotImplementedError, OverflowError)
#: types of pandas that hold the same values as those of polars, and missing ones
_NULLABLE = {f"{sign}nt{bits}": f"{sign}nt{bits}" for sign in ("I", "UI") for bits in (8, 16, 32, 64)}
_NULLABLE["Boolean"] = "boolean"


def in_library(selected: Any, library: str) -> Any:
    """Columns of an array or frame in a frame of pandas or polars; missing stays missing."""
    return _in_pandas(selected) if library == "pandas" else _in_polars(selected)


def _in_polars(selected: Any) -> pl.DataFrame:
    if isinstance(selected, np.ndarray):
        return pl.DataFrame([_series(str(j), column.tolist()) for j, column in enumerate(selected.T)])
    frame: pd.DataFrame = selected
    return pl.DataFrame([_from_pandas(str(j), frame.iloc[:, j]) for j in range(frame.shape[1])])


def _from_pandas(name: str, column: pd.Series[Any]) -> pl.Series:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return pl.Series(name, column.to_numpy(), nan_to_null=True)
    try:
        converted: Any = pl.from_pandas(column)
        return pl.Series(name, converted)
    except (*_REFUSED, pl.exceptions.PolarsError):  # there is no pyarrow, or it does not know the values
        series = _series(name, column.tolist())
    return series.cast(pl.Categorical) if hasattr(column, "cat") and series.dtype == pl.String else series


def _series(name: str, values: list[Any]) -> pl.Series:
    """Values as a Series of their own type; as objects if they have several."""
    values = [None if is_missing(value) else value for value in values]
    try:
        return pl.Series(name, values, strict=True)
    except (*_REFUSED, pl.exceptions.PolarsError):
        return pl.Series(name, values, dtype=pl.Object)


def _in_pandas(selected: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(selected, np.ndarray):
        return pd.DataFrame({j: pd.Series(column.tolist()) for j, column in enumerate(selected.T)})
    frame: pl.DataFrame = selected
    return pd.concat([_to_pandas(series) for series in frame], axis="columns")


def _to_pandas(series: pl.Series) -> pd.Series[Any]:
    import pandas as pd

    if series.null_count() and str(series.dtype) in _NULLABLE:
        # pandas' plain types have no missing value, and as floats large numbers would change
        return pd.Series(series.to_list(), dtype=_NULLABLE[str(series.dtype)], name=series.name)
    try:
        return series.to_pandas()
    except ImportError:  # there is no pyarrow
        values: Any = series.to_numpy() if series.dtype.is_numeric() else series.to_list()
    kind = "category" if series.dtype in (pl.Categorical, pl.Enum) else None
    return pd.Series(values, dtype=kind, name=series.name)
