"""Rules as a small table for a notebook, in the notebook's own colours."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plar.results.report.rule_facts import ShownRule, checks, headline, lead, shown_classes
from plar.results.report.rule_words import ALWAYS, Part
from plar.results.report.views import MAX_ROWS, html_name, html_row
from plar.results.report.words import LONGEST, counted

if TYPE_CHECKING:
    from plar.results.rules import Rules


def notebook_table(rules: Rules) -> str:
    """Write the first rules of each class as HTML; names and values are escaped."""
    heads = ["#", "if", "then", "rows", "right"]
    sides = ["right", "left", "left", "right", "right"]
    if rules.rule_kind == "tested":
        heads.append("p-value")
        sides.append("right")
    shown = [(of_class.name, rule) for of_class in shown_classes(rules, MAX_ROWS) for rule in of_class.rules]
    rows = []
    for name, rule in shown[:MAX_ROWS]:
        right = f'<span title="{rule.confidence}">{escape(rule.right)}</span>'
        cells = [str(rule.number), _conditions(rule), html_name(name), f"{rule.n_matched:,}", right]
        cells.append(escape(rule.p_text))
        rows.append(html_row("td", cells, sides))
    n_unshown = len(rules) - len(rows)
    if n_unshown > 0:
        rows.append(html_row("td", ["", f"… and {n_unshown:,} more"], sides))
    heading = f'<div style="max-width:60em;padding:.3em 0">{_heading(rules)}</div>'
    if not rows:
        return heading
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    head = html_row("th", heads, sides)
    return f'{heading}<table style="{style}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _conditions(rule: ShownRule) -> str:
    return " and ".join(map(_condition, rule.parts)) or ALWAYS


def _condition(part: Part) -> str:
    """What a rule asks of one column, as HTML, in full when pointed at."""
    return f'<span title="{escape(part.text())}">{escape(part.text(LONGEST))}</span>'


def _heading(rules: Rules) -> str:
    """What stands above the table, as HTML."""
    properties = [counted(rules.n_objects, "row"), counted(len(rules.decisions), "class", "classes")]
    if rules.alpha is not None:
        properties.append(f"alpha {rules.alpha:g}")
    lines = [" · ".join(properties), " ".join(lead(rules))]
    claims = [line.claim if line.holds else f"but {line.claim}" for line in checks(rules)]
    if claims and len(rules):
        text = "; ".join(claims)
        lines.append(f"{text[:1].upper()}{text[1:]}.")
    lines += rules.notes
    shown = "<br>".join(escape(line) for line in lines if line)
    return f'<b>{escape(headline(rules))}</b><br><span style="opacity:.7">{shown}</span>'
