"""What the page, the picture and a notebook say of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plar.results.report.words import LONGEST, aligned, bar_width, counted, p_words, shortened, visible
from plar.results.selection import NOT_SHOWN, REDUNDANT, UNDECIDED

if TYPE_CHECKING:
    from plar.results.selection import ColumnFacts, Selection, SelectionStep, TargetByValue

UNTESTED = "included without a test"


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A selected column, as tables show it."""

    name: str
    is_included: bool
    #: at its step
    share: float | None
    share_text: str
    bar_width: str
    p_value: float | None
    p_text: str
    #: the columns where chance explains it best
    beside: tuple[str, ...]
    #: the share by itself
    alone: float | None
    alone_text: str


def selected(selection: Selection) -> list[SelectedColumn]:
    """The selected columns in their order.

    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(256)] for j in range(3)]
    >>> s = plar.select({"a": bits[0], "b": bits[1], "t": bits[0]}, "t", include=["b"])
    >>> [(column.name, column.is_included, column.share_text, column.p_text) for column in selected(s)]
    [('b', True, '–', '–'), ('a', False, '0.9921', '<0.001')]
    """
    steps = {step.column: step for step in selection.steps}
    share_texts = dict(zip(steps, aligned([step.share for step in selection.steps]), strict=True))
    alone = {name: selection.alone[name] for name in selection.columns if name in selection.alone}
    alone_texts = dict(zip(alone, aligned(list(alone.values())), strict=True))
    largest = max((step.share for step in selection.steps), default=0.0)
    return [
        _selected_column(name, steps.get(name), share_texts, alone.get(name), alone_texts, largest, selection.alpha)
        for name in selection.columns
    ]


def _selected_column(
    name: str,
    step: SelectionStep | None,
    share_texts: dict[str, str],
    alone: float | None,
    alone_texts: dict[str, str],
    largest: float,
    alpha: float,
) -> SelectedColumn:
    share = None if step is None else step.share
    return SelectedColumn(
        name=name,
        is_included=step is None,
        share=share,
        share_text=share_texts.get(name, "–"),
        bar_width=bar_width(share, largest),
        p_value=None if step is None else step.p_value,
        p_text="–" if step is None else p_words(step.p_value, alpha),
        beside=() if step is None else step.given,
        alone=alone,
        alone_text=alone_texts.get(name, "–"),
    )


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """Any column of the table, as the ranking shows it."""

    name: str
    role: str
    reason: str
    alone: float | None
    alone_text: str
    p_value: float | None
    p_text: str
    #: its place in the table, from 1
    place: int


#: what becomes of a column, in the order of the ranking
ROLES = ("included", "selected", "undecided", "rejected", "left out")


def ranked(selection: Selection) -> list[ListedColumn]:
    """All columns: the selected ones in their order, then the others by what they say by themselves."""
    frame_rows = selection.column_facts()
    alone_texts = dict(zip(selection.alone, aligned(list(selection.alone.values())), strict=True))
    columns = [
        ListedColumn(
            name=row.column,
            role=row.role,
            reason=_short_reason(selection, row),
            alone=row.share_alone,
            alone_text=alone_texts.get(row.column, "–"),
            p_value=row.p_value,
            p_text="–" if row.p_value is None else p_words(row.p_value, selection.alpha),
            place=place,
        )
        for place, row in enumerate(frame_rows, 1)
    ]
    rank_of = {name: rank for rank, name in enumerate(selection.columns)}

    def order(column: ListedColumn) -> tuple[float, int, float, int]:
        rank = rank_of.get(column.name, len(rank_of))
        return rank, ROLES.index(column.role), -(column.alone or 0.0), column.place

    return sorted(columns, key=order)


def _short_reason(selection: Selection, facts: ColumnFacts) -> str:
    """The reason, without the many or long names that it may have."""
    rejection = selection.rejected.get(facts.column)
    if rejection is not None and rejection.given:
        return f"says nothing more beside {plain_list(rejection.given, LONGEST)}"
    return visible(facts.reason)


def headline(selection: Selection) -> str:
    """Say how many columns predict the target."""
    n = len(selection.columns)
    n_all = len(selection.conditions)
    target = ", ".join(shortened(name) for name in selection.target)
    if n == 0:
        return f"No column predicts {target}" if selection.complete else f"No column is selected for {target} yet"
    if not selection.steps:
        return f"No column predicts {target}, beside what was included"
    if n == n_all:
        return f"The only column predicts {target}" if n == 1 else f"All {n:,} columns predict {target}"
    return f"{n:,} of {counted(n_all, 'column')} {'predicts' if n == 1 else 'predict'} {target}"


def lead(selection: Selection) -> list[str]:
    """Say what that means, in sentences."""
    sentences = []
    test = f"(permutation test, alpha {selection.alpha:g})"
    if selection.steps:
        each = "It adds" if len(selection.steps) == 1 else "Each adds"
        beside = " to the others" if len(selection.columns) > 1 else ""
        sentences.append(f"{each} information beyond chance{beside} {test}.")
    elif selection.complete:
        if selection.included:
            sentences.append(f"No other column adds anything beyond chance {test}.")
        else:
            sentences.append(f"No column is better than chance {test}.")
    if selection.included:
        n = len(selection.included)
        sentences.append(f"{counted(n, 'column')} {'was' if n == 1 else 'were'} {UNTESTED}.")
    sentences += _undecided_words(selection)
    return sentences


def _undecided_words(selection: Selection) -> list[str]:
    """Say why some columns were not decided; nothing if all were."""
    if not selection.complete:
        return ["The search was stopped, by its time limit or by hand, before all columns were decided."]
    n = sum(fact.role == "undecided" for fact in selection.column_facts())
    limit = selection.settings.get("max_columns")
    if n and limit is not None and len(selection.columns) >= limit:
        were = "was" if n == 1 else "were"
        return [f"With the limit of {counted(limit, 'column')}, {counted(n, 'other column')} {were} not decided."]
    return []


def reasons(selection: Selection) -> dict[str, list[str]]:
    """The columns that are not selected, by the reason in a few words."""
    groups: dict[str, list[str]] = {}
    for column in ranked(selection)[len(selection.columns) :]:
        if column.role == "rejected":
            reason = REDUNDANT if selection.rejected[column.name].given else NOT_SHOWN
        elif column.role == "undecided":
            reason = UNDECIDED
        else:
            reason = column.reason
        groups.setdefault(reason, []).append(column.name)
    return groups


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar of a value: where it begins and how wide it is, in percent, and what it stands for."""

    left: str
    width: str
    colour: int
    title: str


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value of a selected column, with the target where it has that value."""

    value: str
    rows: int
    segments: list[Segment]
    #: the shares or quartiles, as many as tables have columns for
    texts: list[str]
    #: where the median of a target of numbers is, in percent
    median: str | None


#: classes whose shares are also written as numbers
MAX_WRITTEN = 4


def value_rows(selection: Selection, by_value: TargetByValue) -> list[ValueRow]:
    """The rows of the small table of a selected column."""
    if selection.target_type == "numbers":
        return _quartile_rows(by_value)
    rows = []
    for line in by_value.values:
        left = 0.0
        segments = []
        for colour, (head, share) in enumerate(zip(by_value.heads, line.numbers, strict=True)):
            if share:
                title = f"{visible(head)}: {100 * share:.1f} %"
                segments.append(Segment(f"{100 * left:.2f}%", f"{100 * share:.2f}%", colour, title))
                left += share
        texts = []
        if len(by_value.heads) <= MAX_WRITTEN:
            texts = [_percent(share) for share in line.numbers]
        rows.append(ValueRow(line.value, line.rows, segments, texts, None))
    return rows


def _quartile_rows(by_value: TargetByValue) -> list[ValueRow]:
    """From the lower to the upper quartile, on one scale for all values."""
    numbers = [number for line in by_value.values for number in line.numbers if number is not None]
    low = min(numbers, default=0.0)
    span = max(numbers, default=0.0) - low

    def place(number: float) -> float:
        return 100 * (number - low) / span if span > 0 else 0.0

    texts = aligned([0.0 if number is None else number for line in by_value.values for number in line.numbers])
    rows = []
    for i, line in enumerate(by_value.values):
        lower, median, upper = line.numbers
        written = [
            "–" if number is None else text for number, text in zip(line.numbers, texts[3 * i : 3 * i + 3], strict=True)
        ]
        segments = []
        if lower is not None and upper is not None:
            title = f"half of the rows from {written[0]} to {written[2]}"
            width = max(place(upper) - place(lower), 0.5)
            segments.append(Segment(f"{min(place(lower), 99.5):.2f}%", f"{width:.2f}%", 0, title))
        mark = None if median is None else f"{min(place(median), 99.2):.2f}%"
        rows.append(ValueRow(line.value, line.rows, segments, written, mark))
    return rows


def _percent(share: float | None) -> str:
    """A share of rows as a percentage; 0 % and 100 % only if exact."""
    if share is None:
        return "–"
    if 0 < share < 0.001:
        return "<0.1\xa0%"
    if 0.999 < share < 1:
        return ">99.9\xa0%"
    return f"{100 * share:.1f}\xa0%" if 0 < share < 1 else f"{100 * share:.0f}\xa0%"


def best_alone(selection: Selection) -> tuple[str, float] | None:
    """The selected column that says most by itself, and its share."""
    shares = {name: selection.alone[name] for name in selection.columns if name in selection.alone}
    if not shares:
        return None
    name = max(shares, key=shares.__getitem__)
    return name, shares[name]


def plain_list(names: Sequence[str], longest: int, n_shown: int = 2) -> str:
    """Names for a place without room, and how many more there are."""
    shown = ", ".join(shortened(name, longest) for name in names[:n_shown])
    return f"{shown} and {len(names) - n_shown:,} more" if len(names) > n_shown else shown
