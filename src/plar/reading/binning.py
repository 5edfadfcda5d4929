"""Bins of a table that is read: a first pass finds the cuts, a second one reads bin numbers for numbers.

The first pass holds how often the numbers of some columns occur, never their rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from plar.bins import COMMA_NUMBER, NUMBER, Cuts, NoNumber, Rule, bin_column, find_cuts, place
from plar.coding.codes import Column, combine
from plar.coding.series import encode_series, named
from plar.errors import TableError, warn
from plar.parallel import in_threads
from plar.reading.source import Misread, Source
from plar.reading.weights import is_bad, row_weights, weight_of

if TYPE_CHECKING:
    import polars as pl

    from plar.reading.frames import Roles

__all__ = ["NumberPass", "bin_columns", "bin_expression", "bin_source", "check_labels", "check_numbers", "warn_left"]

#: how many columns are counted in one pass: those of a file of columns can be read in turn
_COLUMNAR, _ROWWISE = 16, 64
_COLUMN_FILES = (".parquet", ".arrow", ".feather", ".ipc")
#: counts are added up when at least so many have gathered
_GATHERED = 1 << 20


def check_labels(labels: Column, n_rows: int) -> None:
    """Refuse labels beside a table of another length."""
    if len(labels.codes) != n_rows:
        raise TableError(f"y has {len(labels.codes)} labels for {n_rows} rows. Pass one label for each row.")


def warn_left(left: Mapping[str, str]) -> None:
    """Say which columns of text are not cut though they look like numbers, given with a value that is none."""
    if not left:
        return
    shown = ", ".join(f"{name!r} ({value!r})" for name, value in list(left.items())[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    comma = any(_is_comma_number(value) for value in left.values())
    remedy = "Pass decimal=',' (--decimal ,)" if comma else "Name what means missing in na= (--na)"
    warn(f"Not cut into bins, because of values that are no numbers: {shown}{more}. {remedy}.")


def _is_comma_number(value: str) -> bool:
    return "," in value and re.match(COMMA_NUMBER, value) is not None


# -- columns in memory -------------------------------------------------------------------------------------


def bin_columns(encode: Callable[[Sequence[str]], Iterable[Column]], roles: Roles) -> tuple[list[Column], Roles]:
    """Code the columns that are used, those that hold numbers cut into bins one by one.

    Parameters
    ----------
    encode : function of names
        Codes these columns, in turn.
    roles : Roles

    Returns
    -------
    list of Column
        Conditions, decision, weights where there are some.
    Roles
        With the cuts that were found.
    """
    assert roles.bins is not None
    beside = [*(roles.decision if roles.labels is None else ())]
    last = list(encode([*beside, *([roles.weights] if roles.weights is not None else [])]))
    decided = last[: len(beside)] if roles.labels is None else [roles.labels]
    classes, _ = combine(decided)
    counts = np.ones(len(classes), np.int64)
    if roles.missing == "drop":
        for column in (*decided, *encode(roles.conditions)):
            if roles.labels is not None:
                check_labels(roles.labels, len(column.codes))
            if column.missing is not None:
                counts[column.codes == column.missing] = 0
    if roles.weights is not None and len(last[-1].codes) == len(counts):
        counts *= row_weights(last[-1], np.ones(len(classes), np.int64))

    def cut(named: tuple[str, Column]) -> tuple[Column, Cuts | None]:
        assert roles.bins is not None
        name, column = named
        rule = roles.bins.rule(name)
        if rule is None:
            return column, None
        if roles.labels is not None:
            check_labels(roles.labels, len(column.codes))
        try:
            return bin_column(column, rule, classes, counts)
        except NoNumber as error:
            if name in roles.bins.columns:
                raise NoNumber(error.value, name) from None
            return column, None

    coded = zip(roles.conditions, encode(roles.conditions), strict=True)
    found = list(in_threads(cut, coded, len(classes)))
    columns = [column for column, _ in found]
    cuts = {name: points for name, (_, points) in zip(roles.conditions, found, strict=True) if points is not None}
    return [*columns, *last], replace(roles, bins=None, cuts=cuts)


# -- rows that polars reads --------------------------------------------------------------------------------


def bin_source(source: Source, roles: Roles) -> tuple[Source, Roles]:
    """Find the cuts, and let the source give bin numbers in place of numbers; the roles then know the cuts."""
    assert roles.bins is not None
    rules = _rules(source, roles)
    if roles.labels is not None and not source.files:
        # a query may give its rows in another order each time
        names = [*roles.used, *([roles.weights] if roles.weights is not None else [])]
        source = replace(source, frame=source.collect(source.frame.select([named(name) for name in names])).lazy())
    cuts: dict[str, Cuts] = {}
    left: dict[str, str] = {}
    columnar = source.files and source.files[0].suffix.lower() in _COLUMN_FILES
    step = _COLUMNAR if columnar else _ROWWISE
    open_ended = [name for name, rule in rules.items() if source.text or not rule.given]
    for low in range(0, len(open_ended), step):
        block = {name: rules[name] for name in open_ended[low : low + step]}
        found = NumberPass(source, roles, block).run()
        left |= found.left
        rules = {name: rule for name, rule in rules.items() if name not in found.odd}
        cuts |= found.cuts
    warn_left(left)
    cuts = {name: cuts.get(name, rule.cuts) for name, rule in rules.items()}
    na, decimal = roles.na, roles.bins.decimal
    binned = [bin_expression(source, name, points, na, decimal) for name, points in cuts.items()]
    return replace(source, frame=source.frame.with_columns(binned)), replace(roles, bins=None, cuts=cuts)


def _rules(source: Source, roles: Roles) -> dict[str, Rule]:
    """Rules of the conditions that may hold numbers."""
    assert roles.bins is not None
    schema, rules = source.frame.collect_schema(), {}
    for name in roles.conditions:
        rule = roles.bins.rule(name)
        if rule is None:
            continue
        if source.text or _is_numeric(schema[name]):
            rules[name] = rule
        elif name in roles.bins.columns:
            some = source.collect(source.frame.select(named(name).drop_nulls().head(1)))
            if len(some):  # a column without any value has nothing to cut
                raise NoNumber(some.item(), name)
    return rules


def _is_numeric(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype.is_numeric() or dtype == pl.Null  # without any value there is nothing that is no number


# Values are read by functions of a Series and not by expressions, of which hundreds take polars minutes to plan.


def _present(column: pl.Series, na: Sequence[str]) -> pl.Series:
    """Text without the blanks around it; null where it is missing."""
    return column.str.strip_chars().replace([*na, ""], None)


def _numbers(column: pl.Series, na: Sequence[str], decimal: str) -> pl.Series:
    """Numbers of a column as polars reads it; null where they are missing, or are none."""
    import polars as pl

    if column.dtype == pl.String:
        text = _present(column, na)
        if decimal == ",":
            text = text.str.replace_all(".", "?", literal=True).str.replace_all(",", ".", literal=True)
        written = text.zip_with(text.str.contains(NUMBER).fill_null(False), pl.Series([None], dtype=pl.String))
        numbers = written.cast(pl.Float64, strict=False)
        return numbers.zip_with(numbers.is_finite().fill_null(False), pl.Series([None], dtype=pl.Float64))
    if column.dtype.is_decimal() or column.dtype in (pl.Int128, pl.UInt128):
        column = column.cast(pl.String)  # whose digits are rounded once
    return column.cast(pl.Float64).fill_nan(None)


def _odd(column: pl.Series, na: Sequence[str], decimal: str) -> pl.Series:
    """Text that is no number; null elsewhere."""
    import polars as pl

    return _present(column, na).zip_with(_numbers(column, na, decimal).is_null(), pl.Series([None], dtype=pl.String))


def _is_missing(column: pl.Series, na: Sequence[str]) -> pl.Series:
    return _present(column, na).is_null()


def _lacks(source: Source, name: str, na: Sequence[str]) -> pl.Expr:
    """Whether a value is missing."""
    import polars as pl

    if source.text:
        missing = partial(_is_missing, na=(*na, *source.na))
        return source.written(name).map_batches(missing, return_dtype=pl.Boolean, is_elementwise=True)
    dtype, column = source.frame.collect_schema()[name], named(name)
    if dtype.is_float():
        return column.is_null() | column.is_nan()
    if na and dtype in (pl.String, pl.Categorical, pl.Enum):
        return column.is_null() | column.cast(pl.String).is_in(list(na))
    return column.is_null()


def bin_expression(source: Source, name: str, cuts: Cuts, na: Sequence[str], decimal: str) -> pl.Expr:
    """Bin numbers of a column, null where it is missing."""
    import polars as pl

    bins = partial(_bins, cuts=cuts, na=(*na, *source.na), decimal=decimal)
    return source.written(name).map_batches(bins, return_dtype=pl.Int64, is_elementwise=True).alias(name)


def _bins(column: pl.Series, cuts: Cuts, na: Sequence[str], decimal: str) -> pl.Series:
    import polars as pl

    numbers = _numbers(column, na, decimal).fill_null(math.nan).to_numpy()
    return pl.Series(column.name, place(numbers, cuts)).replace(-1, None)


def check_numbers(source: Source, names: Iterable[str], na: Sequence[str], decimal: str) -> None:
    """Refuse columns that are to be cut and hold something else than numbers."""
    schema, names = source.frame.collect_schema(), list(names)
    for name in names:
        if not source.text and not _is_numeric(schema[name]):
            some = source.collect(source.frame.select(named(name).drop_nulls().head(1)))
            if len(some):
                raise NoNumber(some.item(), name)
    if source.text and names:
        for batch in source.batches([source.written(name) for name in names], len(names)):
            for name in names:
                odd = _odd(batch[name], (*na, *source.na), decimal).drop_nulls()
                if len(odd):
                    raise NoNumber(odd[0], name)


class NumberPass:
    """One reading of some columns, which counts their numbers."""

    def __init__(self, source: Source, roles: Roles, rules: Mapping[str, Rule]) -> None:
        self.source, self.roles, self.rules = source, roles, rules
        self.tallies = {name: _Tally(rule) for name, rule in rules.items()}
        self.by_class = any(rule.method == "mdlp" for rule in rules.values())
        self.classes: dict[Any, int] = {}
        self.row = 0
        #: the least value that is no number, of columns that have such; and those that look like numbers even so
        self.odd: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.cuts: dict[str, Cuts] = {}

    def run(self) -> NumberPass:
        """Read, and find the cuts."""
        totals: dict[str, list[int]] = {name: [0, 0] for name in self.rules}
        for batch in self.source.batches(self._columns(), 2 * len(self.rules)):
            self._count(self._counted(self._read(batch, totals)))
        for name, tally in self.tallies.items():
            if name not in self.odd:
                self.cuts[name] = tally.cuts()
        for name, value in self.odd.items():
            numbers, others = totals[name]
            if numbers >= others or _is_comma_number(value):
                self.left[name] = value
        return self

    def _columns(self) -> list[pl.Expr]:
        import polars as pl

        source, roles, na = self.source, self.roles, self.roles.na
        columns = [source.written(name).alias(f"n{name}") for name in self.rules]
        if self.by_class and roles.labels is None:
            columns += [source.written(name).alias(f"d{name}") for name in roles.decision]
        weight = pl.lit(1)
        if roles.weights is not None:
            given = weight_of(source, roles.weights)
            weight = pl.when(is_bad(given)).then(0).otherwise(given)  # the second pass says where it is bad
        kept = pl.lit(True)
        if roles.missing == "drop":
            kept = ~pl.any_horizontal(_lacks(source, name, na) for name in roles.used)
        columns += [pl.when(kept).then(weight).otherwise(0).cast(pl.Int64).alias("w")]
        if roles.labels is not None:
            columns.append(self._blank(na).alias("blank"))
        return columns

    def _blank(self, na: Sequence[str]) -> pl.Expr:
        """Rows of blank lines, which have no label; only where the labels are fewer than the rows."""
        import polars as pl

        source, roles = self.source, self.roles
        assert roles.labels is not None
        n_rows = source.collect(source.frame.select(pl.len())).item()
        if not source.text or n_rows == len(roles.labels.codes):
            check_labels(roles.labels, n_rows)
            return pl.lit(False)
        lacking = pl.all_horizontal(_lacks(source, name, na) for name in roles.used)
        check_labels(roles.labels, n_rows - source.collect(source.frame.select(lacking.sum())).item())
        return lacking

    def _read(self, batch: pl.DataFrame, totals: dict[str, list[int]]) -> pl.DataFrame:
        """Make numbers of what is written, and note what is none."""
        assert self.roles.bins is not None
        na, decimal = (*self.roles.na, *self.source.na), self.roles.bins.decimal
        numbers = []
        for name in self.rules:
            column = batch[f"n{name}"]
            numbers.append(_numbers(column, na, decimal))
            if self.source.text:
                odd = _odd(column, na, decimal).drop_nulls()
                totals[name][0] += len(batch) - numbers[-1].null_count()
                totals[name][1] += len(odd)
                self._note(name, odd)
        return batch.with_columns(numbers)

    def _note(self, name: str, odd: pl.Series) -> None:
        if not len(odd):
            return
        marks = self.source.suspect
        assert self.roles.bins is not None
        if marks and odd.str.contains(f"[{marks}]").any():
            raise Misread("the values hold quotes or comments")
        if name in self.roles.bins.columns:
            raise NoNumber(odd[0], name)
        least = str(odd.min())
        self.odd[name] = min(least, self.odd.get(name, least))

    def _counted(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Add the classes, and leave the rows that count."""
        import polars as pl

        roles = self.roles
        if roles.labels is not None:
            batch = batch.filter(~pl.col("blank"))
            codes = roles.labels.codes[self.row : self.row + len(batch)]
            self.row += len(batch)
            batch = batch.with_columns(pl.Series("class", codes.astype(np.int64)))
            if roles.missing == "drop" and roles.labels.missing is not None:
                batch = batch.filter(pl.col("class") != roles.labels.missing)
        elif self.by_class:
            batch = batch.with_columns(pl.Series("class", self._classes(batch)))
        return batch.filter(pl.col("w") > 0)

    def _classes(self, batch: pl.DataFrame) -> Any:
        na = (*self.roles.na, *self.source.na)
        named = [encode_series(batch[f"d{name}"], na, text=self.source.text) for name in self.roles.decision]
        codes, values = combine(named)
        known = [self.classes.setdefault(value, len(self.classes)) for value in zip(*values, strict=True)]
        return np.array(known, np.int64)[codes]

    def _count(self, batch: pl.DataFrame) -> None:
        import polars as pl

        wanted = [name for name, rule in self.rules.items() if name not in self.odd and not rule.given]
        queries = [self.tallies[name].query(batch.lazy(), f"n{name}") for name in wanted]
        for name, counted in zip(wanted, pl.collect_all(queries), strict=True):
            self.tallies[name].add(counted)


class _Tally:
    """How many objects have each number of a column, by class where that matters, batch after batch."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.keys = ["n", "class"] if rule.method == "mdlp" else ["n"]
        self.parts: list[pl.DataFrame] = []
        self.added, self.settled = 0, 0

    def query(self, batch: pl.LazyFrame, number: str) -> pl.LazyFrame:
        """What a batch adds."""
        import polars as pl

        others = [key for key in (*self.keys, "w") if key != "n"]
        known = batch.select(pl.col(number).alias("n"), *others).filter(pl.col("n").is_finite())
        if self.rule.method == "width":
            ends = known.select(pl.col("n").min().alias("low"), pl.col("n").max().alias("high"))
            return ends.select(n=pl.concat_list("low", "high")).explode("n").drop_nulls().with_columns(w=pl.lit(1))
        return known.group_by(self.keys).agg(pl.col("w").sum())

    def add(self, counted: pl.DataFrame) -> None:
        """Take what a batch added."""
        self.parts.append(counted)
        self.added += len(counted)
        if self.added > max(self.settled, _GATHERED):
            self._settle()

    def _settle(self) -> None:
        import polars as pl

        whole = pl.concat(self.parts).group_by(self.keys).agg(pl.col("w").sum())
        self.parts, self.added, self.settled = [whole], 0, len(whole)

    def cuts(self) -> Cuts:
        """Return the cuts, from all."""
        if self.rule.given or not self.parts:
            return self.rule.cuts
        self._settle()
        whole = self.parts.pop()
        classes = whole["class"].to_numpy() if "class" in self.keys else None
        return find_cuts(self.rule, whole["n"].to_numpy(), whole["w"].cast(int).to_numpy().astype(np.int64), classes)
