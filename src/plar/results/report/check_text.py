"""What a check says in words, and in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from plar.coding.shown_values import shown_value
from plar.errors import printable
from plar.results.report.selection_text import listed
from plar.results.report.words import aligned, counted, p_words, percent, shortened

if TYPE_CHECKING:
    from plar.results.check import Check, CheckedColumn, NeverSeen

#: columns of the result that have a line
_SHOWN_COLUMNS: Final = 40
#: of a line of examples, or of the values of a witness
_SHOWN_EXAMPLES = 3
_SHOWN_VALUES = 8
#: characters of a line, unless a word is longer
_WIDTH = 80
#: what the numbers of the table are
_LEGENDS: Final = {
    "selection": "says: of what was left to say about the target, beyond chance",
    "reduct": "says: how much the uncertainty left falls",
}
_P_LEGEND: Final = "p-value now: how often a shuffled target gives as much, given the columns before it"


class ColumnLine(NamedTuple):
    """A column of the result as tables show it; – stands for what is not known."""

    name: str
    role: str
    p_then: str
    p_now: str
    gain_then: str
    gain_now: str
    replicates: bool
    #: what is to be said of it beside the numbers
    remark: str


def summary(check: Check) -> str:
    """Whether the result stands, column by column, and why not, in a terminal."""
    lines = [f"{headline(check)}."]
    if check.columns:
        lines += ["", *_table(check)]
    for paragraph in (_witness_lines(check), _indented(news(check)), _indented(check.notes)):
        if paragraph:
            lines += ["", *paragraph]
    return "\n".join(lines)


def headline(check: Check) -> str:
    """The most important thing about the result, in a sentence without its full stop."""
    verdict = "stands" if check.stands else "does not stand"
    said = _reduct_words(check) if check.checked == "reduct" else _selection_words(check)
    return f"the {check.checked} {verdict}: {said}"


def _reduct_words(check: Check) -> str:
    """What a reduct keeps."""
    n_left = sum(column.state == "there" for column in check.columns)
    gone = _gone_words(check)
    if gone:
        which = f"{gone}; the {counted(n_left, 'column')} left" if n_left else f"{gone}; without them"
    else:
        which = f"its {counted(n_left, 'column')}"
    everything = (
        f"everything that all {counted(len(check.conditions), 'column')} say about {_target(check)} "
        f"in {counted(check.n_rows, 'new row')}"
    )
    if gone and not n_left:
        return f"{which}, {everything} is {'kept all the same' if check.preserves else 'not kept'}"
    if check.preserves:
        return f"{which} {'keeps' if n_left == 1 else 'keep'} {everything}"
    return f"{which} {'does' if n_left == 1 else 'do'} not keep {everything}"


def _selection_words(check: Check) -> str:
    """How many columns replicate, and which do not."""
    tested = check.tested
    rows = counted(check.n_rows, "new row")
    if not tested:
        return f"no column was selected for {_target(check)} ({rows})"
    n = len(tested)
    n_good = len(check.replicating)
    if n_good == n:
        which = {1: "the only column", 2: "both columns"}.get(n, f"all {n:,} columns")
        return f"{which} selected for {_target(check)} {'beats' if n == 1 else 'beat'} chance in {rows}"
    beat = "beats" if n_good == 1 else "beat"
    said = f"{n_good:,} of {counted(n, 'column')} selected for {_target(check)} {beat} chance in {rows}"
    failing = [column for column in tested if column.state == "there" and not column.replicates]
    parts = []
    if failing:
        shown = ", ".join(f"{shortened(one.column)} (p = {_p(check, one.p_value)})" for one in failing[:_SHOWN_VALUES])
        if len(failing) > _SHOWN_VALUES:
            shown += f" and {len(failing) - _SHOWN_VALUES:,} more"
        verb = "does" if len(failing) == 1 else "do"
        parts.append(f"no longer {verb}: {shown}" if len(failing) > 1 else f"{shown} no longer {verb}")
    parts += [_gone_words(check)] if _gone_words(check) else []
    return "; ".join([said, *parts])


def _gone_words(check: Check) -> str:
    """Which columns of the result cannot be used any more; empty if there are none."""
    parts = []
    for state, words in (("gone", "gone"), ("another type", "of another type")):
        names = [one.column for one in check.columns if one.state == state]
        if names:
            parts.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} {words}")
    return " and ".join(parts)


def _target(check: Check) -> str:
    return repr(", ".join(map(printable, check.decision)))


def _p(check: Check, p_value: float | None) -> str:
    return "–" if p_value is None else p_words(p_value, check.alpha)


def column_lines(check: Check) -> list[ColumnLine]:
    """The columns of the result in its order."""
    gains = [one.gain for one in check.columns if one.gain is not None]
    gains += [one.gain_then for one in check.columns if one.gain_then is not None]
    texts = dict(zip(gains, aligned(gains), strict=True))
    lines = []
    for one in check.columns:
        line = ColumnLine(
            name=one.column,
            role=one.role,
            p_then=_p(check, one.p_value_then),
            p_now=_p(check, one.p_value),
            gain_then="–" if one.gain_then is None else texts[one.gain_then],
            gain_now="–" if one.gain is None else texts[one.gain],
            replicates=one.replicates,
            remark=_remark(check, one),
        )
        lines.append(line)
    return lines


def _remark(check: Check, one: CheckedColumn) -> str:
    """What is to be said of a column beside the numbers."""
    words = []
    if one.state == "gone":
        words.append("gone")
    elif one.column in check.retyped:
        words.append(printable(check.retyped[one.column]))
    elif not one.replicates:
        words.append("no better than chance")
    if one.new_values is not None and one.new_values.n:
        words.append(f"{counted(one.new_values.n, 'new value')}")
    return ", ".join(words)


def _table(check: Check) -> list[str]:
    """The columns, then and now."""
    lines = column_lines(check)[:_SHOWN_COLUMNS]
    heads = ColumnLine("column", "", "p then", "p now", "says then", "says now", False, "")
    widths = [max(len(printable(line[i])) for line in (heads, *lines)) for i in range(6)]  # type: ignore[arg-type]
    rows = []
    for line in (heads, *lines):
        numbers = [line.p_then, line.p_now, line.gain_then, line.gain_now]
        cells = [f"{text:>{width}}" for text, width in zip(numbers, widths[2:], strict=True)]
        rows.append(f"  {printable(line.name):<{widths[0]}}  {'  '.join(cells)}  {line.remark}".rstrip())
    n_unshown = len(check.columns) - len(lines)
    if n_unshown:
        rows.append(f"  … and {n_unshown:,} more")
    return [*rows, "", f"  {_LEGENDS[check.checked]};", f"  {_P_LEGEND}"]


def news(check: Check) -> list[str]:
    """What the new rows have that no old row had, a sentence each."""
    sentences = []
    for one in check.columns:
        if one.new_values is not None and one.new_values.n:
            what = counted(one.new_values.n, "value")
            sentences.append(
                f"{shortened(one.column)} has {what} never seen before, in {_share(check, one.new_values)}: "
                f"{_examples(one.new_values)}."
            )
    if check.new_combinations is not None and check.new_combinations.n:
        combinations = check.new_combinations
        verb = "has" if combinations.n_rows == 1 else "have"
        sentences.append(
            f"{_share(check, combinations)} {verb} {counted(combinations.n, 'combination')} of values never seen "
            f"before, of {check.n_combinations:,}."
        )
    if check.new_decisions is not None and check.new_decisions.n:
        decisions = check.new_decisions
        sentences.append(
            f"The target has {counted(decisions.n, 'value')} never seen before, in {_share(check, decisions)}: "
            f"{_examples(decisions)}."
        )
    return sentences


def _share(check: Check, news: NeverSeen) -> str:
    return f"{counted(news.n_rows, 'row')} ({percent(news.n_rows, check.n_rows)})"


def _examples(news: NeverSeen) -> str:
    shown = ", ".join(map(shortened, news.examples[:_SHOWN_EXAMPLES]))
    n_more = news.n - min(len(news.examples), _SHOWN_EXAMPLES)
    return f"{shown} and {n_more:,} more" if n_more else shown


class WitnessRow(NamedTuple):
    """One of the two rows of a witness in words."""

    values: str
    decisions: str


def agreeing(check: Check) -> str:
    """The values of the columns of the reduct in which the rows of the witness agree; empty if it has none."""
    assert check.witness is not None
    value_of = dict(zip(check.conditions, check.witness.row, strict=True))
    return _values([one.column for one in check.columns if one.column in value_of], value_of)


def witness_rows(check: Check) -> list[WitnessRow]:
    """How the two rows differ."""
    assert check.witness is not None
    rows = []
    for row, decisions in (
        (check.witness.row, check.witness.decisions),
        (check.witness.other, check.witness.other_decisions),
    ):
        value_of = dict(zip(check.conditions, row, strict=True))
        shown = [f"{printable(label)} ({counted(n_rows, 'row')})" for label, n_rows in decisions[:_SHOWN_VALUES]]
        if len(decisions) > _SHOWN_VALUES:
            shown.append(f"and {len(decisions) - _SHOWN_VALUES:,} more")
        rows.append(WitnessRow(_values(check.witness.columns, value_of), ", ".join(shown)))
    return rows


def _values(names: Sequence[str], value_of: Mapping[str, object]) -> str:
    shown = [f"{printable(name)} = {shortened(shown_value(value_of[name]))}" for name in names[:_SHOWN_VALUES]]
    if len(names) > _SHOWN_VALUES:
        shown.append(f"and {len(names) - _SHOWN_VALUES:,} more")
    return ", ".join(shown)


def mending_words(check: Check) -> str:
    """Which columns mend a reduct; empty if nothing is to be mended."""
    if check.mending is None:
        return ""
    names = check.mending.columns
    added = f"Adding {listed(names)} mends it"
    if check.mending.is_fewest:
        return f"{added}." if len(names) == 1 else f"{added}; fewer than {len(names):,} columns do not."
    return (
        f"{added}: the fewest columns found in the time there was; at least {check.mending.at_least:,} "
        f"{'is' if check.mending.at_least == 1 else 'are'} needed."
    )


def _witness_lines(check: Check) -> list[str]:
    """Two rows that agree in the columns, and the columns that mend it."""
    if check.witness is None:
        return []
    same = agreeing(check)
    agree = f"agree in the columns of the reduct ({same})" if same else "are all alike without any column"
    lines = [f"Two kinds of rows {agree}, but not in {_target(check)}:"]
    lines += [f"  {row.values}: {row.decisions}" for row in witness_rows(check)]
    return [*_wrapped(lines[0]), *lines[1:], *_wrapped(mending_words(check))]


def _indented(sentences: Sequence[str]) -> list[str]:
    return [line for sentence in sentences for line in _wrapped(sentence)]


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
