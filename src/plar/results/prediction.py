"""What rules say about the rows of any table: predictions, how likely they are, and which rules they rest on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plar.bins import Cuts, NoNumber, as_numbers, place
from plar.coding.column_names import free_name
from plar.coding.shown_values import shown_value
from plar.coding.times import TimeCuts, kind_of_times
from plar.errors import Given, ParameterError, TableError, shown_names
from plar.input.tables.frames import FrameSource
from plar.input.tables.source import ColumnChoice, RowSource, sink_frame
from plar.input.tables.spark import SharedFiles, SparkSource
from plar.input.tables.table import DecisionTable, open_source
from plar.matching.condition import EQUAL, Condition, ConditionValue
from plar.matching.matcher import CodedConditions, RuleMatcher
from plar.matching.value_groups import group_values
from plar.options import ReadOptions, TextKwargs
from plar.results.reading import reading_as
from plar.results.report.rule_words import RuleWords
from plar.results.report.words import half_open
from plar.results.rules import EVIDENCE_UNITS, Rules, as_array
from plar.results.saved import writable
from plar.runtime.lazy_polars import pl
from plar.runtime.spark_calls import spark_call

if TYPE_CHECKING:
    import polars
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

#: options with which the table of the rules was read, and others are read too, unless they are given
_READING = tuple(TextKwargs.__annotations__)
#: the predictions, in the tasks that compute them
_NEW = "new"
#: beyond this, whole numbers are no longs
_LONG = 1 << 63
PREDICTION = "prediction"
PROBABILITY = "probability"


class NewRows(NamedTuple):
    """A table of this machine whose rows are looked at, and how it is read."""

    source: RowSource
    options: ReadOptions


class ClusterRows(NamedTuple):
    """A Spark DataFrame, and how its values are read."""

    frame: DataFrame
    options: ReadOptions


#: what a task adds to some rows
ValuesOf: TypeAlias = "Callable[[Rules, NewRows], pyarrow.Array]"


def predict(rules: Rules, data: Any, reading: TextKwargs) -> Any:
    """Predict the decision of every row; see `Rules.predict`."""
    rows = open_rows(rules, data, reading)
    if isinstance(rows, ClusterRows):
        return _on_spark(rules, rows, PREDICTION, _spark_type(rules.decisions), _spark_predictions)
    return as_array(rules.decisions)[_decision_codes(rules, rows)]


def predict_proba(rules: Rules, data: Any, reading: TextKwargs) -> Any:
    """How likely each row has each decision; see `Rules.predict_proba`."""
    rows = open_rows(rules, data, reading)
    if isinstance(rows, ClusterRows):
        from pyspark.sql.types import ArrayType, DoubleType

        return _on_spark(rules, rows, PROBABILITY, ArrayType(DoubleType()), _spark_probabilities)
    return _all_probabilities(rules, rows)


class PredictedTable:
    """A table of this machine with two columns more: the prediction, and how likely it is.

    Parameters
    ----------
    rules : Rules
    data : path or table in memory
    reading : mapping
        How it is written, where that is not as the table of the rules.
    """

    def __init__(self, rules: Rules, data: Any, reading: TextKwargs | None = None) -> None:
        rows = open_rows(rules, data, reading or {})
        if isinstance(rows, ClusterRows):
            raise TableError("The rows are on a Spark cluster. Call Rules.predict with the DataFrame.")
        self._rows = rows
        codes: list[NDArray[np.intp]] = [np.empty(0, np.intp)]
        shares: list[NDArray[np.float64]] = [np.empty(0)]
        for scores in _scores(rules, rows):
            codes.append(scores.argmax(axis=1))
            shares.append(_probabilities(scores).max(axis=1))
        self._codes = np.concatenate(codes)
        self._shares = np.concatenate(shares)
        self._decisions = [None if decision is None else shown_value(decision) for decision in rules.decisions]
        #: rows whose decision is in the table, and those of them that are predicted right
        self.n_known = 0
        self.n_right = 0
        if rules.decision[0] in rows.source.names:
            self._compare(rules)

    def _compare(self, rules: Rules) -> None:
        """Count how many rows are predicted right."""
        [name] = rules.decision
        [column] = self._rows.source.encode([name], self._rows.options.spellings)
        values = column.values
        decimal = self._rows.options.decimal
        if name in rules.cuts:
            values = _intervals(rules.cuts[name], name, values, decimal)
        conditions = [Condition(name, EQUAL, decision) for decision in rules.decisions]
        grouped = group_values(name, conditions, values, decimal)
        is_present = np.array([value is not None for value in values], np.bool_)[column.codes]
        is_right = grouped.holds[grouped.group_of[column.codes], self._codes]
        self.n_known = int(is_present.sum())
        self.n_right = int((is_present & is_right).sum())

    def sink(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, in the format of its suffix, whole or not at all."""
        source = self._rows.source
        frame = pl.DataFrame(source.select(ColumnChoice(source.names)))
        decisions = pl.Series(self._decisions, dtype=pl.String)
        predictions = decisions.gather(self._codes).alias(free_name(PREDICTION, frame.columns))
        shares = pl.Series(free_name(PROBABILITY, frame.columns), self._shares)
        sink_frame(frame.with_columns(predictions, shares).lazy(), path)


def explain(rules: Rules, data: Any, reading: TextKwargs) -> polars.DataFrame:
    """The rules that match each row; see `Rules.explain`."""
    rows = open_rows(rules, data, reading)
    if isinstance(rows, ClusterRows):
        raise TableError("explain shows single rows. Collect some first: frame.limit(10).toPandas().")
    matcher, coded = _coded(rules, rows)
    prior = np.array(rules.prior, np.int64)
    evidence = np.array([rule.evidence for rule in rules], np.int64).reshape(len(rules), len(prior))
    words = RuleWords(rules)
    lines: list[tuple[Any, ...]] = []
    for row, matching in matcher.matches(coded):
        decision = int((prior + evidence[matching].sum(axis=0)).argmax())
        prediction = writable(words.decision(rules.decisions[decision]))
        lines.append((row, prediction, None, "", "", None, None, prior[decision] / EVIDENCE_UNITS))
        for number in matching.tolist():
            rule = rules[number]
            text = writable(words.conditions(rule))
            says = writable(words.decision(rule.decision))
            adds = evidence[number, decision] / EVIDENCE_UNITS
            lines.append((row, prediction, number, text, says, rule.support, rule.confidence, adds))
    schema = {
        "row": pl.Int64,
        "prediction": pl.String,
        "rule": pl.Int64,
        "text": pl.String,
        "says": pl.String,
        "support": pl.Int64,
        "confidence": pl.Float64,
        "adds": pl.Float64,
    }
    return pl.DataFrame(lines, schema=schema, orient="row")


def open_rows(rules: Rules, data: Any, reading: TextKwargs) -> NewRows | ClusterRows:
    """Open a table that has the columns of the rules: as given, and else with the options of their own table."""
    _check_reading(reading, data)
    if isinstance(data, DecisionTable):
        source = data.source
        options = data.options
    else:
        options = ReadOptions(**{**reading_as(rules.settings, _READING, data), **reading})
        source = open_source(data, options)
    if isinstance(source, SharedFiles):
        source = source.data
    if not isinstance(source, (RowSource, SparkSource)):
        raise TableError("These are distinct rows with their counts. Pass the table itself, whose rows are predicted.")
    lacking = [name for name in RuleMatcher([rule.conditions for rule in rules]).columns if name not in source.names]
    if lacking:
        raise TableError(
            f"The table lacks columns that the rules look at: {shown_names(lacking)}. It has: "
            f"{shown_names(source.names)}."
        )
    return ClusterRows(source.data, options) if isinstance(source, SparkSource) else NewRows(source, options)


def _check_reading(reading: TextKwargs, data: Any) -> None:
    """Refuse unknown options, and any for a table that is open already."""
    for name in reading:
        if name not in _READING:
            raise TypeError(f"Unexpected keyword argument {name!r}. Rows are read by: {', '.join(_READING)}.")
        if isinstance(data, DecisionTable):
            raise ParameterError("The table is open already. Leave ", Given(name), " out, or pass it to read_table.")


def _coded(rules: Rules, rows: NewRows) -> tuple[RuleMatcher, CodedConditions]:
    source, options = rows
    matcher = RuleMatcher([rule.conditions for rule in rules])
    if matcher.columns:
        columns = list(source.encode(matcher.columns, options.spellings))
        n_rows = len(columns[0].codes)
    else:
        columns = []
        n_rows = sum(len(column.codes) for column in source.encode(source.names[:1], options.spellings))
    return matcher, matcher.code(columns, n_rows, options.decimal)


def _scores(rules: Rules, rows: NewRows) -> Iterator[NDArray[np.int64]]:
    """For some rows after others, what each decision has, in millionths of a nat."""
    matcher, coded = _coded(rules, rows)
    evidence = np.array([rule.evidence for rule in rules], np.int64).reshape(len(rules), len(rules.decisions))
    return matcher.scores(coded, np.array(rules.prior, np.int64), evidence)


def _decision_codes(rules: Rules, rows: NewRows) -> NDArray[np.intp]:
    return np.concatenate([np.empty(0, np.intp), *(scores.argmax(axis=1) for scores in _scores(rules, rows))])


def _all_probabilities(rules: Rules, rows: NewRows) -> NDArray[np.float64]:
    no_rows = np.empty((0, len(rules.decisions)))
    return np.concatenate([no_rows, *map(_probabilities, _scores(rules, rows))])


def _intervals(cuts: Cuts, name: str, values: Sequence[Any], decimal: str) -> Sequence[Any]:
    """The values of a decision that was cut, as the intervals that rules predict; as they are if it is no number."""
    try:
        numbers = as_numbers(values, name, decimal)
    except NoNumber:
        return values
    kind = kind_of_times(values)
    intervals = half_open(cuts if kind is None else TimeCuts(cuts, kind))
    return [None if number < 0 else intervals[number] for number in place(numbers, cuts).tolist()]


def _probabilities(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares whose logarithms differ as the scores do."""
    below_best = (scores - scores.max(axis=1, keepdims=True)) / EVIDENCE_UNITS
    weights = np.exp(below_best)
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


# -- on Spark, where the rows are -------------------------------------------------------------------------------


@spark_call
def _on_spark(rules: Rules, rows: ClusterRows, name: str, kind: DataType, values_of: ValuesOf) -> DataFrame:
    """The frame with one column more, which its tasks compute."""
    from pyspark.sql.types import StructField, StructType

    from plar.engines.spark.session import quiet

    names = rows.frame.columns
    # by number, since names may contain dots, or differ only in case
    numbered = rows.frame.toDF(*(f"c{place}" for place in range(len(names))))
    task = partial(_with_column, rules=rules, options=rows.options, names=names, values_of=values_of)
    with quiet():
        predicted = numbered.mapInArrow(task, StructType([*numbered.schema.fields, StructField(_NEW, kind)]))
    return predicted.toDF(*names, free_name(name, names))


def _with_column(
    batches: Iterable[pyarrow.RecordBatch],
    rules: Rules,
    options: ReadOptions,
    names: Sequence[str],
    values_of: ValuesOf,
) -> Iterator[pyarrow.RecordBatch]:
    """Add a column to batches of rows, in a task."""
    import pyarrow

    used = RuleMatcher([rule.conditions for rule in rules]).columns
    for batch in batches:
        if used:
            frame = pl.DataFrame(pyarrow.Table.from_batches([batch]).rename_columns(list(names)).select(list(used)))
        else:
            frame = pl.DataFrame({_NEW: np.zeros(batch.num_rows, np.int8)})
        values = values_of(rules, NewRows(FrameSource(frame, tuple(frame.columns)), options))
        yield pyarrow.RecordBatch.from_arrays([*batch.columns, values], [*batch.schema.names, _NEW])


def _spark_predictions(rules: Rules, rows: NewRows) -> pyarrow.Array:
    import pyarrow

    decisions = list(rules.decisions)
    kind = {"boolean": pyarrow.bool_(), "long": pyarrow.int64(), "double": pyarrow.float64()}.get(
        _spark_type(decisions).typeName(), pyarrow.string()
    )
    if kind == pyarrow.string():
        decisions = [None if decision is None else shown_value(decision) for decision in decisions]
    return pyarrow.array([decisions[code] for code in _decision_codes(rules, rows).tolist()], kind)


def _spark_probabilities(rules: Rules, rows: NewRows) -> pyarrow.Array:
    import pyarrow

    shares = _all_probabilities(rules, rows).tolist()
    return pyarrow.array(shares, pyarrow.list_(pyarrow.float64()))


def _spark_type(decisions: Iterable[ConditionValue]) -> DataType:
    """The type of a column of predictions: text, if the decisions have several."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType

    present = [decision for decision in decisions if decision is not None]
    kinds = set(map(type, present))
    if kinds == {bool}:
        return BooleanType()
    if kinds == {int} and all(-_LONG <= int(decision) < _LONG for decision in present):
        return LongType()
    return DoubleType() if kinds == {float} else StringType()
