"""Which rows of a table have a decision that is certain, and which are undecided: the table with two columns more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from plar.bins import Cuts
from plar.coding.codes import joint_codes
from plar.coding.column_names import free_name
from plar.errors import NoRows, TableError, shown_names
from plar.grouping.partition import Index, distinct
from plar.input.roles import Roles
from plar.input.tables.coded_rows import CodedRows, RowClasses, code_rows
from plar.input.tables.frames import FrameSource
from plar.input.tables.source import RowSource
from plar.input.tables.spark import SharedFiles, SparkSource
from plar.input.tables.table import DecisionTable, open_source, with_roles
from plar.options import ReadOptions
from plar.results.decision_words import DecisionWords, joined
from plar.results.reading import reading_as
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars

    from plar.results.approximations import Approximations

#: the new columns
APPROXIMATION: Final = "approximation"
POSSIBLE: Final = "possible_decisions"
#: what the first of them says
CERTAIN: Final = "certain"
UNDECIDED: Final = "undecided"
#: options with which the table of the result was read, and others are read too
_READING = ("header", "separator", "decimal", "encoding", "na", "missing", "missing_decision", "weights")


class Marking(NamedTuple):
    """What is looked at in the rows of any table, and in which words it is said."""

    roles: Roles
    #: the columns that are known
    attributes: tuple[str, ...]
    cuts: Mapping[str, Cuts]
    words: DecisionWords


def mark(approximations: Approximations, data: Any, y: Any = None) -> Any:
    """Mark every row; see `Approximations.mark`."""
    table = _opened(approximations, data, y)
    words = DecisionWords(approximations.decision, approximations.intervals)
    marking = Marking(table.roles, approximations.attributes, approximations.cuts, words)
    if isinstance(table.source, SparkSource):
        from plar.results.marking_on_spark import mark_on_cluster

        return mark_on_cluster(table.source, marking)
    assert isinstance(table.source, RowSource)
    return _marked_frame(table.source, marking)


def _opened(approximations: Approximations, data: Any, y: Any) -> DecisionTable:
    """Open a table that has the columns of the result, with the options that its own was read with."""
    settings = approximations.settings
    reading = reading_as(settings, _READING, data)
    options = ReadOptions(decision=None if y is not None else list(approximations.decision), y=y, **reading)
    source = data.source if isinstance(data, DecisionTable) else open_source(data, options)
    if isinstance(source, SharedFiles):
        source = source.data
    if not isinstance(source, (RowSource, SparkSource)):
        raise TableError("These are distinct rows with their counts. Pass the table itself, whose rows are marked.")
    in_table = (*approximations.attributes, *(() if y is not None else approximations.decision))
    lacking = [name for name in in_table if name not in source.names]
    if lacking:
        remedy = " Pass the labels as y=." if settings.get("y") and lacking == list(approximations.decision) else ""
        raise TableError(
            f"The table lacks columns of the approximations: {shown_names(lacking)}. It has: "
            f"{shown_names(source.names)}.{remedy}"
        )
    conditions = settings.get("conditions")
    if options.missing == "value":  # missing values of the other columns do not matter
        conditions = list(approximations.attributes) or None
    table = with_roles(source, replace(options, conditions=conditions))
    decision = table.decision if y is None else approximations.decision
    roles = replace(table.roles, decision=decision, numeric=tuple(settings.get("numeric", ())))
    return replace(table, roles=roles)


def _marked_frame(source: RowSource, marking: Marking) -> polars.DataFrame:
    """The rows of this machine with two columns more."""
    try:
        frame = source.to_frame()
    except NoRows:  # of text, whose columns have no types
        frame = pl.DataFrame(schema=dict.fromkeys(source.names, pl.String))
    if not len(frame):
        nothing = pl.Series([], dtype=pl.String)
        return _with(frame, nothing, nothing)
    if isinstance(source, FrameSource):
        source = FrameSource(frame, source.names)
    coded = code_rows(source, marking.roles, marking.attributes, marking.cuts)
    if len(coded.counts) != len(frame):
        raise TableError(f"y has {len(coded.counts)} labels for {len(frame)} rows. Pass one label for each row.")
    return _with(frame, *_judged(coded, marking.words))


def _with(frame: polars.DataFrame, approximation: polars.Series, possible: polars.Series) -> polars.DataFrame:
    return frame.with_columns(
        approximation.alias(free_name(APPROXIMATION, frame.columns)),
        possible.alias(free_name(POSSIBLE, frame.columns)),
    )


def _judged(coded: CodedRows, words: DecisionWords) -> tuple[polars.Series, polars.Series]:
    """Whether the decision of each row is certain, and which decisions are possible; null for rows that are dropped."""
    decisions, labels = _in_order(coded, words)
    classes = coded.classes()
    possible = _possible_decisions(classes, decisions, len(labels))
    text_of_class, texts = _texts(possible, labels)
    is_undecided = [len(of_class) > 1 for of_class in possible]
    # the last of each list is for rows of no class, -1
    judgements = pl.Series([CERTAIN, UNDECIDED, None], dtype=pl.String)
    return (
        judgements.gather(np.array([*is_undecided, 2])[classes.class_of]),
        pl.Series([*texts, None], dtype=pl.String).gather(np.array([*text_of_class, len(texts)])[classes.class_of]),
    )


def _in_order(coded: CodedRows, words: DecisionWords) -> tuple[Index, list[str]]:
    """The decision of each row, numbered in the order of the decisions, and these in words."""
    codes, values_by_column = joint_codes(coded.decision)
    values = list(zip(*values_by_column, strict=True))
    order = sorted(range(len(values)), key=lambda code: words.order(values[code]))
    rank_of = np.empty(len(values), np.uint32)
    rank_of[order] = np.arange(len(values), dtype=np.uint32)
    return rank_of[codes], [words.label(values[code]) for code in order]


def _possible_decisions(classes: RowClasses, decisions: Index, n_decisions: int) -> list[tuple[int, ...]]:
    """The decisions of each class, rising."""
    n_rows = len(decisions)
    refined, starts = distinct([(decisions, n_decisions)], n_rows, classes.order, classes.starts)
    first_rows = refined[starts[:-1]]  # one for each decision of each class
    of_class = classes.class_of[first_rows]
    decisions_by_class = decisions[first_rows][np.lexsort((decisions[first_rows], of_class))].tolist()
    ends = np.cumsum(np.bincount(of_class, minlength=len(classes.starts) - 1)).tolist()
    return [tuple(decisions_by_class[begin:end]) for begin, end in pairwise([0, *ends])]


def _texts(possible: Sequence[tuple[int, ...]], labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """The number of the text that says which decisions are possible in each class, and these texts."""
    numbers: dict[tuple[int, ...], int] = {}
    text_of_class = [numbers.setdefault(of_class, len(numbers)) for of_class in possible]
    return text_of_class, [joined(labels[decision] for decision in of_class) for of_class in numbers]
