"""What rules say about the rows of any table: predictions, how likely they are, and which rules they rest on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plar.coding.shown_values import shown_value
from plar.errors import TableError, shown_names
from plar.input.tables.source import ColumnChoice, RowSource, sink_frame
from plar.input.tables.spark import SharedFiles, SparkSource
from plar.input.tables.table import open_source
from plar.matching.condition import EQUAL, Condition, ConditionValue
from plar.matching.matcher import CodedConditions, RuleMatcher
from plar.matching.value_groups import group_values
from plar.options import ReadOptions
from plar.results.report.rule_words import RuleWords
from plar.results.rules import EVIDENCE_UNITS, Rules, as_array
from plar.results.saved import writable
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

#: options with which the table of the rules was read, and others are read too
_READING = ("header", "separator", "decimal", "encoding", "na")
PREDICTION = "prediction"
PROBABILITY = "probability"


def predict(rules: Rules, data: Any) -> Any:
    """Predict the decision of every row; see `Rules.predict`."""
    source = open_rows(rules, data)
    if isinstance(source, SparkSource):
        return _on_spark(rules, source.data, PREDICTION, _spark_type(rules.decisions), _spark_predictions)
    return as_array(rules.decisions)[_decision_codes(rules, source)]


def predict_proba(rules: Rules, data: Any) -> Any:
    """How likely each row has each decision; see `Rules.predict_proba`."""
    source = open_rows(rules, data)
    if isinstance(source, SparkSource):
        from pyspark.sql.types import ArrayType, DoubleType

        return _on_spark(rules, source.data, PROBABILITY, ArrayType(DoubleType()), _spark_probabilities)
    no_rows = np.empty((0, len(rules.decisions)))
    return np.concatenate([no_rows, *map(_probabilities, _scores(rules, source))])


class PredictedTable:
    """A table of this machine with two columns more: the prediction, and how likely it is.

    Parameters
    ----------
    rules : Rules
    data : path or table in memory
    """

    def __init__(self, rules: Rules, data: Any) -> None:
        source = open_rows(rules, data)
        if isinstance(source, SparkSource):
            raise TableError("The rows are on a Spark cluster. Call Rules.predict with the DataFrame.")
        self._source = source
        codes: list[NDArray[np.intp]] = [np.empty(0, np.intp)]
        shares: list[NDArray[np.float64]] = [np.empty(0)]
        for scores in _scores(rules, source):
            codes.append(scores.argmax(axis=1))
            shares.append(_probabilities(scores).max(axis=1))
        self._codes = np.concatenate(codes)
        self._shares = np.concatenate(shares)
        self._decisions = [None if decision is None else shown_value(decision) for decision in rules.decisions]
        #: rows whose decision is in the table, and those of them that are predicted right
        self.n_known = 0
        self.n_right = 0
        if rules.decision[0] in source.names:
            self._compare(rules)

    def _compare(self, rules: Rules) -> None:
        """Count how many rows are predicted right."""
        [name] = rules.decision
        options = reading_of(rules)
        [column] = self._source.encode([name], options.spellings)
        conditions = [Condition(name, EQUAL, decision) for decision in rules.decisions]
        code_of_value = group_values(name, conditions, column.values, options.decimal).group_of
        is_present = np.array([value is not None for value in column.values], np.bool_)[column.codes]
        self.n_known = int(is_present.sum())
        self.n_right = int((is_present & (code_of_value[column.codes] == self._codes)).sum())

    def sink(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, in the format of its suffix, whole or not at all."""
        frame = pl.DataFrame(self._source.select(ColumnChoice(self._source.names)))
        decisions = pl.Series(self._decisions, dtype=pl.String)
        predictions = decisions.gather(self._codes).alias(_free(PREDICTION, frame.columns))
        shares = pl.Series(_free(PROBABILITY, frame.columns), self._shares)
        sink_frame(frame.with_columns(predictions, shares).lazy(), path)


def explain(rules: Rules, data: Any) -> polars.DataFrame:
    """The rules that match each row; see `Rules.explain`."""
    source = open_rows(rules, data)
    if isinstance(source, SparkSource):
        raise TableError("explain shows single rows. Collect some first: frame.limit(10).toPandas().")
    matcher, coded = _coded(rules, source)
    prior = np.array(rules.prior, np.int64)
    evidence = np.array(rules.evidence, np.int64).reshape(len(rules), len(prior))
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


def open_rows(rules: Rules, data: Any) -> RowSource | SparkSource:
    """Open a table that has the columns of the rules, with the options that their own was read with."""
    source = open_source(data, reading_of(rules))
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
    return source


def reading_of(rules: Rules) -> ReadOptions:
    """How a table is read to be compared with that of the rules."""
    return ReadOptions(**{name: rules.settings[name] for name in _READING if name in rules.settings})


def _free(name: str, names: Sequence[str]) -> str:
    """A name that no column has."""
    while name in names:
        name += "_"
    return name


def _coded(rules: Rules, source: RowSource) -> tuple[RuleMatcher, CodedConditions]:
    options = reading_of(rules)
    matcher = RuleMatcher([rule.conditions for rule in rules])
    if matcher.columns:
        columns = list(source.encode(matcher.columns, options.spellings))
        n_rows = len(columns[0].codes)
    else:
        columns = []
        n_rows = sum(len(column.codes) for column in source.encode(source.names[:1], options.spellings))
    return matcher, matcher.code(columns, n_rows, options.decimal)


def _scores(rules: Rules, source: RowSource) -> Iterator[NDArray[np.int64]]:
    """For some rows after others, what each decision has, in millionths of a nat."""
    matcher, coded = _coded(rules, source)
    evidence = np.array(rules.evidence, np.int64).reshape(len(rules), len(rules.decisions))
    return matcher.scores(coded, np.array(rules.prior, np.int64), evidence)


def _decision_codes(rules: Rules, source: RowSource) -> NDArray[np.intp]:
    return np.concatenate([np.empty(0, np.intp), *(scores.argmax(axis=1) for scores in _scores(rules, source))])


def _probabilities(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares whose logarithms differ as the scores do."""
    below_best = (scores - scores.max(axis=1, keepdims=True)) / EVIDENCE_UNITS
    weights = np.exp(below_best)
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


# -- on Spark, where the rows are -------------------------------------------------------------------------------


def _on_spark(
    rules: Rules, frame: DataFrame, name: str, kind: DataType, values_of: Callable[[Rules, RowSource], list[Any]]
) -> DataFrame:
    """The frame with one column more, which its tasks compute."""
    from pyspark.sql.types import StructField, StructType

    name = _free(name, frame.columns)
    schema = StructType([*frame.schema.fields, StructField(name, kind)])
    return frame.mapInArrow(partial(_with_column, rules, name, values_of), schema)


def _with_column(
    rules: Rules,
    name: str,
    values_of: Callable[[Rules, RowSource], list[Any]],
    batches: Iterable[pyarrow.RecordBatch],
) -> Iterator[pyarrow.RecordBatch]:
    """Add a column to batches of rows, in a task."""
    import pyarrow

    for batch in batches:
        table = pyarrow.Table.from_batches([batch])
        source = open_rows(rules, table)
        assert isinstance(source, RowSource)
        values = pyarrow.array(values_of(rules, source))
        yield from table.append_column(name, values).to_batches()


def _spark_predictions(rules: Rules, source: RowSource) -> list[Any]:
    decisions = list(rules.decisions)
    if _spark_type(rules.decisions).typeName() == "string":
        decisions = [None if decision is None else shown_value(decision) for decision in decisions]
    return [decisions[code] for code in _decision_codes(rules, source).tolist()]


def _spark_probabilities(rules: Rules, source: RowSource) -> list[Any]:
    no_rows = np.empty((0, len(rules.decisions)))
    shares: list[Any] = np.concatenate([no_rows, *map(_probabilities, _scores(rules, source))]).tolist()
    return shares


def _spark_type(decisions: Iterable[ConditionValue]) -> DataType:
    """The type of a column of predictions: text, if the decisions have several."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType

    kinds = {type(decision) for decision in decisions if decision is not None}
    if kinds == {bool}:
        return BooleanType()
    if kinds == {int}:
        return LongType()
    return DoubleType() if kinds == {float} else StringType()
