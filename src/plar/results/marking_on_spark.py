"""The same for a Spark DataFrame: its tasks mark the rows where they are.

Python codes the values of each batch as the engine does, so that they compare alike, and gives every row a key that
spells its values. Rows are grouped by key, and only the keys with several decisions are joined back to the rows: they
are few in most tables, so that Spark sends them to the rows and need not move these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plar.coding.codes import joint_codes
from plar.coding.column_names import free_name
from plar.granules.fingerprint import spell
from plar.grouping.partition import Ints
from plar.input.tables.coded_rows import CodedRows, code_rows
from plar.input.tables.frames import FrameSource
from plar.input.tables.spark import SparkSource, select_places
from plar.results.decision_words import DecisionWords, joined
from plar.results.marking import APPROXIMATION, CERTAIN, POSSIBLE, UNDECIDED, Marking
from plar.runtime.lazy_polars import pl
from plar.runtime.spark_calls import spark_call

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

_KEY = "key"
_DECISION = "decision"
_POSSIBLE = "possible"


class _KeyedRows(NamedTuple):
    """The rows of a batch, and the class of each; -1 for those that are dropped."""

    coded: CodedRows
    class_of: Ints
    #: of each class: its values of the known columns, spelled out
    keys: list[bytes]


@spark_call
def mark_on_cluster(source: SparkSource, marking: Marking) -> DataFrame:
    """The frame with two columns more, which its tasks compute when they are needed."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    from plar.engines.spark.session import quiet

    frame: DataFrame = source.data
    names = source.names
    new_fields = [StructField(_KEY, BinaryType()), StructField(_DECISION, StringType())]
    # by number, since names may contain dots, or differ only in case
    places = [f"c{place}" for place in range(len(names))]
    numbered = frame.toDF(*places)
    with_keys = _mapped(_with_keys, names, marking)
    with quiet():
        rows = numbered.mapInArrow(with_keys, StructType([*numbered.schema.fields, *new_fields]))

    used_names = _used(marking, names)
    used = select_places(frame, source.places(used_names)).toDF(*places[: len(used_names)])
    with quiet():
        keys = used.mapInArrow(_mapped(_different_keys, used_names, marking), StructType(new_fields))
    in_words = sql.udf(_in_words, StringType(), useArrow=False)
    undecided = (
        keys.groupBy(_KEY)
        .agg(sql.collect_set(_DECISION).alias(_POSSIBLE))
        .where(sql.size(_POSSIBLE) > 1)
        .select(_KEY, in_words(_POSSIBLE).alias(_POSSIBLE))
    )
    judged = rows.join(undecided, _KEY, "left")
    is_undecided = sql.col(_POSSIBLE).isNotNull()
    approximation = sql.when(is_undecided, UNDECIDED).when(sql.col(_KEY).isNotNull(), CERTAIN)
    possible = sql.coalesce(_POSSIBLE, _DECISION)
    marked = judged.select(*places, approximation.alias(_KEY), possible.alias(_POSSIBLE))
    return marked.toDF(*names, free_name(APPROXIMATION, names), free_name(POSSIBLE, names))


def _used(marking: Marking, names: Sequence[str]) -> list[str]:
    """The columns that decide how rows are marked, in table order."""
    roles = marking.roles
    used = {*marking.attributes, *roles.decision, roles.weights}
    if roles.missing != "value":
        used.update(roles.conditions)
    return [name for name in names if name in used]


# -- tasks -------------------------------------------------------------------------------------------------


def _mapped(
    columns_of: Callable[[pyarrow.Table, _KeyedRows, DecisionWords], pyarrow.Table],
    names: Sequence[str],
    marking: Marking,
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """What a task does with batches of rows whose columns have these names."""
    return partial(_on_batches, columns_of=columns_of, names=tuple(names), marking=marking)


def _on_batches(
    batches: Iterable[pyarrow.RecordBatch],
    columns_of: Callable[[pyarrow.Table, _KeyedRows, DecisionWords], pyarrow.Table],
    names: Sequence[str],
    marking: Marking,
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    used = _used(marking, names)
    for batch in batches:
        table = pyarrow.Table.from_batches([batch])
        of_batch = table.select([names.index(name) for name in used]).rename_columns(used)
        source = FrameSource(pl.DataFrame(of_batch), tuple(used))
        keyed = _keyed(code_rows(source, marking.roles, marking.attributes, marking.cuts))
        yield from columns_of(table, keyed, marking.words).to_batches()


def _keyed(coded: CodedRows) -> _KeyedRows:
    """Spell the values of each class of a batch."""
    order, starts, class_of = coded.classes()
    spellings = [[_with_length(spell(value)) for value in column.values] for column in coded.columns]
    first_rows = order[starts[:-1]]
    codes = [column.codes[first_rows].tolist() for column in coded.columns]
    keys = [
        b"".join(of_column[code[place]] for of_column, code in zip(spellings, codes, strict=True))
        for place in range(len(first_rows))
    ]
    return _KeyedRows(coded, class_of, keys)


def _with_length(spelling: bytes) -> bytes:
    """A spelling that no other one begins with."""
    return b"%d:%b" % (len(spelling), spelling)


def _with_keys(table: pyarrow.Table, keyed: _KeyedRows, words: DecisionWords) -> pyarrow.Table:
    """All columns, the key of each row, and its own decision in words."""
    import pyarrow

    decisions, values = joint_codes(keyed.coded.decision)
    labels = [words.label(of_one) for of_one in zip(*values, strict=True)]
    is_dropped = keyed.class_of < 0
    keys = pyarrow.array([*keyed.keys, None], pyarrow.binary())
    keys_of_rows = keys.take(pyarrow.array(np.where(is_dropped, len(keyed.keys), keyed.class_of)))
    texts = pyarrow.array([*labels, None], pyarrow.string())
    texts_of_rows = texts.take(pyarrow.array(np.where(is_dropped, len(labels), decisions)))
    return table.append_column(_KEY, keys_of_rows).append_column(_DECISION, texts_of_rows)


def _different_keys(table: pyarrow.Table, keyed: _KeyedRows, words: DecisionWords) -> pyarrow.Table:
    """Each key with each of its decisions, which are given with their order."""
    import pyarrow

    decisions, values = joint_codes(keyed.coded.decision)
    spelled = [json.dumps([words.order(of_one), words.label(of_one)]) for of_one in zip(*values, strict=True)]
    is_kept = keyed.class_of >= 0
    pairs = set(zip(keyed.class_of[is_kept].tolist(), decisions[is_kept].tolist(), strict=True))
    columns = {
        _KEY: pyarrow.array([keyed.keys[number] for number, _ in pairs], pyarrow.binary()),
        _DECISION: pyarrow.array([spelled[decision] for _, decision in pairs], pyarrow.string()),
    }
    return pyarrow.table(columns)


def _in_words(spelled: Sequence[str]) -> str:
    """Decisions with their order, as `_different_keys` gives them, as one text."""
    return joined(label for _, label in sorted(map(json.loads, spelled)))
