"""What the estimators share: any table and y go into a session; of selectors, selected columns come out as they are."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from plar.bins import Spec
from plar.coding.column_names import check_names
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.coding.series import encode_column
from plar.engines import as_engine
from plar.engines.base import Engine
from plar.errors import Given, Parameter, ParameterError, TableError
from plar.input.tables.arrays import MappingSource, MatrixSource, check_unmasked
from plar.input.tables.source import ColumnChoice
from plar.input.tables.table import DecisionTable, open_source, selectable, with_roles
from plar.options import Columns, ReadOptions, RunOptions, wants_bins
from plar.results.reduct import Reduct
from plar.results.selection import Selection
from plar.session.session import Session
from plar.sklearn.other_library import in_library


class TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """An estimator for any table: numpy arrays, and frames of pandas and polars, with values of any type."""

    engine: str | Engine
    missing: str
    na: Any
    bins: Spec | None
    numeric: Columns
    time_limit: float | str | None
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X after checking its names and number of columns; a frame as it is, anything else as an array."""
        check_unmasked(X, "X")
        frame = library_of(X) is not None
        if frame:
            check_names([str(label) for label in X.columns], "X")
        return validate_data(self, X, dtype=None, ensure_all_finite=False, skip_check_array=frame, reset=reset)

    def _checked_with_y(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        """X and y, of which no value is missing; bad parameters are refused before any work."""
        self._check_parameters()
        if y is None:
            raise TableError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = self._checked(X, reset=reset)
        y = _labels(y, ReadOptions(na=self.na).spellings)
        check_consistent_length(X, y)
        return X, y

    def _check_parameters(self) -> None:
        """Refuse what is invalid for any table."""
        as_engine(self.engine, self.n_jobs)
        self._run_options()
        self._refuse_iterators()

    def _refuse_iterators(self) -> None:
        """Refuse columns that could be read only once, since a second fit and every clone would find none."""
        for name in ("include", "exclude", "keep", "numeric"):
            if isinstance(getattr(self, name, ()), Iterator):
                raise ParameterError(Parameter(name), " is an iterator, which can be read only once. Pass a list.")

    def _table(self, X: Any, y: Any, bins_of_y: str | Sequence[float] | None = None) -> DecisionTable:
        """A checked X beside y as a table, in which columns can be found by name, label and position."""
        reading = self._reading(y, bins_of_y)
        return with_roles(open_source(X, reading), reading)

    def _reading(self, y: Any, bins_of_y: str | Sequence[float] | None) -> ReadOptions:
        """How X is read."""
        return ReadOptions(
            y=y,
            missing=self.missing,
            missing_decision="drop",
            na=self.na,
            bins=self.bins,
            decision_bins=bins_of_y,
            numeric=self.numeric,
        )

    def _session(self, table: DecisionTable, sample_weight: Any = None) -> Session:
        """A session of a table, in which rows count as often as their weights say."""
        if sample_weight is not None:
            table = _with_weights(table, sample_weight)
        return Session(table, ReadOptions(), self._run_options())

    def _run_options(self) -> RunOptions:
        return RunOptions(engine=self.engine, n_jobs=self.n_jobs, time_limit=self.time_limit)


class TableSelector(SelectorMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """A selector of columns of any table."""

    output: str

    def transform(self, X: Any) -> Any:
        """Select the columns, as they are: an array, or the DataFrame that `set_output` asks for.

        The columns of a DataFrame keep their types, also in a DataFrame of another library.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        library = library_of(X)
        if not self.get_support().any():
            warnings.warn("No feature was selected: none of them says anything about y.", stacklevel=2)
            return np.empty((len(X), 0), float if library else X.dtype)
        selected = self._take(X, self.get_support())
        wanted = _get_output_config("transform", self)["dense"]
        if wanted == "default":
            return selected if library is None else _as_array(selected)
        is_uniform = library is None and selected.dtype != object
        return selected if library == wanted or is_uniform else in_library(selected, wanted)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Put selected columns back in their places, with zeros (empty text for text) in all others."""
        support = self.get_support()
        X = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_features=0)
        if X.shape[1] != support.sum():
            raise TableError(f"X has {X.shape[1]} columns, but {support.sum()} were selected. Pass those.")
        whole = np.zeros((len(X), len(support)), X.dtype)
        whole[:, support] = X
        return whole

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        wants_bins(self.output)
        super()._check_parameters()

    @abstractmethod
    def _fitted(self) -> Reduct | Selection:
        """What was found in the columns of X."""

    @abstractmethod
    def _selected(self) -> Iterable[str]:
        """The names of the selected columns."""

    def _get_support_mask(self) -> NDArray[np.bool_]:
        support = np.zeros(self.n_features_in_, np.bool_)
        support[self._places(self._selected())] = True
        return support

    def _places(self, names: Iterable[str]) -> list[int]:
        """Where columns are in X."""
        place_of = {name: place for place, name in enumerate(self._fitted().conditions)}
        return [place_of[name] for name in names]

    def _take(self, X: Any, support: NDArray[np.bool_]) -> Any:
        """These columns of a checked X in the same kind of table; as bin numbers if `output` says so."""
        options = ReadOptions(na=self.na)
        source = open_source(X, options)
        fitted = self._fitted()
        # an array has other names than the fitted frame
        fitted_names = {source.names[j]: fitted.conditions[j] for j in np.flatnonzero(support)}
        known_cuts = fitted.cuts if wants_bins(self.output) else {}
        cuts = {name: known_cuts[known] for name, known in fitted_names.items() if known in known_cuts}
        return selectable(source).select(ColumnChoice(tuple(fitted_names), cuts, options.spellings))


def library_of(X: Any) -> str | None:
    """The library of a DataFrame that need not become an array."""
    root = type(X).__module__.partition(".")[0]
    return root if root in ("pandas", "polars") and getattr(X, "ndim", len(getattr(X, "shape", ()))) == 2 else None


def columns_by_name(X: Any, names: Sequence[str]) -> dict[Hashable, Any]:
    """The columns of an array or frame by names that are given for them."""
    is_pandas = library_of(X) == "pandas"
    return {name: X.iloc[:, j] if is_pandas else X[:, j] for j, name in enumerate(names)}


def is_series(y: Any) -> bool:
    """Whether y is a Series, which has a name, and may be declared to be categorical."""
    return type(y).__module__.partition(".")[0] in ("pandas", "polars") and type(y).__name__ == "Series"


def _labels(y: Any, na: MissingSpellings) -> NDArray[Any]:
    """Y as an array in which nothing is missing."""
    check_unmasked(y, "y")
    labels: NDArray[Any] = column_or_1d(_unmasked(y), warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    spelled = encode_column(labels, na, "y")
    if spelled.missing is not None:
        if encode_column(labels, NO_SPELLINGS, "y").missing is not None:
            raise TableError("Input y contains NaN or None. Give every row a label, or leave those rows out.")
        label = labels[spelled.codes == spelled.missing].tolist()[0]
        raise TableError(
            f"Input y contains {label!r}, which means missing. Give those rows another label, leave them out, or "
            "change ",
            Given("na"),
            ": with ",
            Given("na", ()),
            " no text means missing.",
        )
    return labels


def _unmasked(y: Any) -> Any:
    """A nullable column of pandas of which nothing is missing as numpy has it, which scikit-learn would make floats."""
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is None or y.isna().any():
        return y
    return y.to_numpy(numpy_dtype)


def _as_array(frame: Any) -> NDArray[Any]:
    """The columns of a DataFrame as an array, of objects if their types have none in common."""
    try:
        array: NDArray[Any] = check_array(frame, dtype=None, ensure_all_finite=False)
    except (TypeError, ValueError):
        objects = np.empty(frame.shape, object)
        for j, name in enumerate(frame.columns):
            objects[:, j] = frame[name].to_list()
        array = check_array(objects, dtype=None, ensure_all_finite=False)  # which refuses what is empty
    return array


def _with_weights(table: DecisionTable, sample_weight: Any) -> DecisionTable:
    """The table with a column of weights beside the others."""
    source = table.source
    weights = _check_sample_weight(sample_weight, source.data)
    odd = weights[(weights < 0) | (weights != np.floor(weights))]
    if len(odd):
        raise TableError(
            f"sample_weight says how often each row occurs, in whole numbers. Got {odd[0]:g}. Leave weights of another "
            "kind out: scaled to whole numbers, they would make p-values too small."
        )
    # the columns of an array have no names, and so has this one
    name = f"x{len(source.names)}" if isinstance(source, MatrixSource) else "sample_weight"
    while name in source.names:
        name += "_"
    columns = columns_by_name(source.data, source.names)
    columns[name] = weights.astype(np.int64)
    weighted = MappingSource.open(columns)
    return replace(table, source=weighted, roles=replace(table.roles, weights=name))
