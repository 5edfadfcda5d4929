"""Results as self-contained HTML pages: no network, light and dark, on a phone and on paper."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plar.errors import TableError
from plar.files.write import as_path, replacing
from plar.measures import MEASURES
from plar.results.report import layers, rule_facts, selected, words
from plar.results.report.curve import curve
from plar.results.report.filling import filled, safe_json, shown_setting
from plar.results.report.ranking import RankedColumn, ranked
from plar.results.report.reproduce import (
    changed_rule_settings,
    changed_selection_settings,
    changed_settings,
    python_call,
    rules_call,
    rules_command,
    select_call,
    select_command,
    shell_command,
)
from plar.runtime.limits import shown_bytes, shown_seconds

if TYPE_CHECKING:
    from plar.results.reduct import Reduct, Step
    from plar.results.reduct_list import Reducts
    from plar.results.relevant import Relevant
    from plar.results.rules import Rules
    from plar.results.selection import Selection

#: rows of a table shown initially
MAX_ROWS = 50
#: names shown of a list
MAX_NAMES = 6
#: candidates shown beside the one that a step took
MAX_RUNNERS_UP = 3
#: selected columns whose values are shown without a click
MAX_OPENED = 6
#: rows of a table of reducts
MAX_REDUCTS = 100
#: columns of the matrix of reducts
MAX_MATRIX_COLUMNS = 40
#: rules, and classes in a table
MAX_RULES = 2000
MAX_CLASSES = 200


class Page(str):
    """The text of an HTML page; a notebook shows it in a frame.

    >>> Page("<!doctype html><p>text")
    <HTML page of 22 bytes>
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<HTML page of {shown_bytes(len(self.encode()))}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:40em;border:0"></iframe>'


def check_report_name(path: str | os.PathLike[str]) -> None:
    """Refuse names of other formats; a name without a suffix is taken."""
    suffix = as_path(path).suffix
    if suffix.lower() not in ("", ".html", ".htm"):
        raise TableError(
            f"A report is an HTML page. Got {os.fspath(path)!r}; name it .html, or print it from a browser."
        )


def save_or_return(text: str, path: str | os.PathLike[str] | None) -> Page | None:
    """Write a page to a file, whole or not at all; without a path, return it."""
    if path is None:
        return Page(text)
    check_report_name(path)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return None


def page(reduct: Reduct, command: str | None = None) -> str:
    """Make the page of a reduct."""
    columns = ranked(reduct)
    chosen_names = set(reduct.attributes)
    settings = {"measure": reduct.measure, "engine": reduct.engine, **changed_settings(reduct)}
    groups = None
    if reduct.equivalent is not None:
        groups = [(group, set(group) & chosen_names) for group in reduct.equivalent]
    return filled(
        "page.html.j2",
        r=reduct,
        seconds=shown_seconds(sum(reduct.seconds.values())),
        data=_data(reduct, columns),
        wide=curve(reduct),
        narrow=curve(reduct, 340, 260),
        rejected=_rejected(reduct),
        steps=_steps(reduct),
        columns=columns[:MAX_ROWS],
        first_round=_first_round(columns)[:MAX_ROWS],
        groups=groups,
        removed=[step.attribute for step in reduct.steps if step.attribute not in chosen_names],
        settings=[(name, shown_setting(value)) for name, value in settings.items()],
        python=python_call(reduct),
        shell=words.visible(command) if command else shell_command(reduct),
        rows=MAX_ROWS,
        names=MAX_NAMES,
    )


def reducts_page(reducts: Reducts) -> str:
    """Make the page of all reducts: how many of each size, how often each column is needed, which holds what."""
    shares = reducts.frequencies
    by_share = sorted(shares, key=lambda name: -shares[name])
    used = [name for name in by_share if shares[name]]
    largest_count = max(reducts.sizes.values(), default=0)
    return filled(
        "reducts.html.j2",
        reducts=reducts,
        seconds=shown_seconds(reducts.seconds),
        sizes=[(size, n, words.bar_width(n, largest_count)) for size, n in reducts.sizes.items()],
        columns=[_column_share(name, shares[name], reducts) for name in by_share[:MAX_REDUCTS]],
        unshown=len(by_share) - MAX_REDUCTS,
        unused=[name for name in shares if not shares[name]],
        matrix=used[:MAX_MATRIX_COLUMNS],
        left_out=len(used) - MAX_MATRIX_COLUMNS,
        shown=[(i, member, set(member.attributes)) for i, member in enumerate(reducts[:MAX_REDUCTS], 1)],
    )


def selection_page(selection: Selection, command: str | None = None) -> str:
    """Make the page of a selection."""
    all_columns = selected.ranked(selection)
    shown = [name for name in selection.columns[:MAX_ROWS] if name in selection.by_values]
    values = [
        (name, selection.by_values[name], selected.value_rows(selection, selection.by_values[name])) for name in shown
    ]
    settings = {"engine": selection.engine, "alpha": selection.alpha, **changed_selection_settings(selection)}
    return filled(
        "selection.html.j2",
        s=selection,
        headline=selected.headline(selection),
        lead=selected.lead(selection),
        best=selected.best_alone(selection),
        columns=selected.selected(selection),
        n_cut=sum(name not in selection.left_out for name in selection.cuts),
        untested=selected.UNTESTED,
        values=values,
        heads=next((by_value.heads for _, by_value, _ in values), ()),
        opened=MAX_OPENED,
        reasons=selected.reasons(selection),
        all_columns=all_columns,
        data=_ranked_data(
            selection.conditions,
            [[c.place, c.role, c.reason, c.alone, c.p_value, c.p_text] for c in all_columns],
        ),
        seconds=shown_seconds(sum(selection.seconds.values())),
        settings=[(name, shown_setting(value)) for name, value in settings.items()],
        python=select_call(selection),
        shell=words.visible(command) if command else select_command(selection),
        rows=MAX_ROWS,
        names=MAX_NAMES,
    )


def relevant_page(relevant: Relevant, command: str | None = None) -> str:
    """Make the page of the columns that beat chance."""
    columns = layers.layered(relevant)
    first = relevant.first
    settings = {"measure": first.measure, "engine": first.engine, "alpha": relevant.alpha, **changed_settings(first)}
    return filled(
        "relevant.html.j2",
        r=relevant,
        headline=layers.headline(relevant),
        n_beyond_chance=layers.n_beyond_chance(relevant),
        lead=layers.lead(relevant),
        columns=columns,
        data=_ranked_data(
            first.conditions, [[c.place, c.role, c.reason, c.gain, c.p_value, c.p_text] for c in columns]
        ),
        seconds=shown_seconds(sum(sum(layer.seconds.values()) for layer in relevant.layers or (first,))),
        settings=[(name, shown_setting(value)) for name, value in settings.items()],
        python=python_call(first, "relevant"),
        shell=words.visible(command) if command else shell_command(first, "relevant"),
        rows=MAX_ROWS,
        names=MAX_NAMES,
    )


def rules_page(rules: Rules, command: str | None = None) -> str:
    """Make the page of a set of rules."""
    classes = rule_facts.shown_classes(rules, MAX_RULES)
    with_rules = [of_class for of_class in classes if of_class.rules]
    uses = rule_facts.column_uses(rules)
    used = {use.name for use in uses}
    settings = {"engine": rules.engine, **changed_rule_settings(rules)}
    return filled(
        "rules.html.j2",
        r=rules,
        headline=rule_facts.headline(rules),
        lead=rule_facts.lead(rules),
        checks=rule_facts.checks(rules),
        classes=classes[:MAX_CLASSES],
        n_more_classes=max(len(classes) - MAX_CLASSES, 0),
        with_rules=with_rules,
        without_rules=[of_class.name for of_class in classes if not of_class.rules],
        n_shown=sum(len(of_class.rules) for of_class in with_rules),
        uses=uses,
        unused=[name for name in rules.attributes if name not in used],
        left_out=rule_facts.left_out_by_reason(rules),
        mean_conditions=round(sum(len(rule.conditions) for rule in rules) / max(len(rules), 1), 1),
        data=_rule_data(with_rules),
        seconds=shown_seconds(sum(rules.seconds.values())),
        settings=[(name, shown_setting(value)) for name, value in settings.items()],
        python=rules_call(rules),
        shell=words.visible(command) if command else rules_command(rules),
        rows=MAX_ROWS,
        names=MAX_NAMES,
    )


def _rule_data(classes: Sequence[rule_facts.ShownClass]) -> str:
    """What the rules of the page are filtered and sorted by: the words of each, and its numbers."""
    rows = [
        [
            " ".join(part.text() for part in rule.parts),
            rule.n_matched,
            rule.confidence,
            rule.lift,
            rule.p_value,
            len(rule.parts),
        ]
        for of_class in classes
        for rule in of_class.rules
    ]
    return safe_json({"rules": rows})


def _data(reduct: Reduct, columns: list[RankedColumn]) -> str:
    """The contents of the sortable tables, as JSON that is safe between script tags."""
    data = {
        "names": [words.visible(name) for name in reduct.conditions],
        "columns": [
            [
                column.place,
                column.role,
                column.of,
                column.gain,
                column.first_gain,
                column.n_values,
                column.n_missing,
            ]
            for column in columns
        ],
        "rounds": [[step.candidates.get(name) for name in reduct.conditions] for step in reduct.steps],
        "taken": [reduct.conditions.index(step.attribute) for step in reduct.steps],
    }
    return safe_json(data)


def _ranked_data(names: Sequence[str], rows: list[list[Any]]) -> str:
    """The contents of a table of all columns: place, role, reason, value, p-value, and the p-value as text."""
    return safe_json({"names": [words.visible(name) for name in names], "ranked": rows})


def _first_round(columns: list[RankedColumn]) -> list[RankedColumn]:
    """The candidates of the first step, best first."""

    def rank(candidate: tuple[float, RankedColumn]) -> tuple[float, int]:
        gain, column = candidate
        return -gain, column.place

    candidates = [(column.first_gain, column) for column in columns if column.first_gain is not None]
    return [column for _, column in sorted(candidates, key=rank)]


def _steps(reduct: Reduct) -> list[dict[str, Any]]:
    """The rows of the table of steps."""
    theta_texts = words.aligned([step.theta for step in reduct.steps])
    p_values = words.p_values_of(reduct)
    tie_bound = _tie_bound(reduct)
    rows = []
    for step, theta_text, p_value in zip(reduct.steps, theta_texts, p_values, strict=True):
        passed_over = _passed_over(step, tie_bound) if reduct.settings.get("alpha") else []
        rows.append(
            {
                "step": step,
                "theta_text": theta_text,
                "p_value": p_value,
                "passed_over": passed_over,
                "ties": [name for name in step.ties if name != step.attribute],
                "runners_up": _runners_up(step.candidates, {*step.ties, *passed_over}),
            }
        )
    return rows


def _rejected(reduct: Reduct) -> list[tuple[str, str, float]]:
    """The remaining columns that came close to beating chance, the closest first."""
    level = words.level_of(reduct)
    nearest = sorted((p, name) for name, p in reduct.rejected.items() if p < 1)
    return [(name, words.p_words(p, level), p) for p, name in nearest]


def _passed_over(step: Step, tie_bound: float) -> list[str]:
    """Candidates that would have been taken if they had beaten chance."""
    least = max(step.candidates[name] for name in step.ties) - tie_bound
    return [name for name, gain in step.candidates.items() if gain >= least and name not in step.ties]


def _tie_bound(reduct: Reduct) -> float:
    """By how much the gains of two columns that tie may differ."""
    measure = MEASURES.get(reduct.measure)
    if measure is None:
        return 0.0
    return measure.value(measure.tie_bound(reduct.n_objects), reduct.n_objects)


def _runners_up(candidates: Mapping[str, float], left_out: set[str]) -> list[tuple[str, str, float]]:
    """The best of the other candidates that gain anything: name, gain in words, gain."""
    best = sorted((-gain, name) for name, gain in candidates.items() if name not in left_out and gain)
    return [(name, words.number(-minus_gain), -minus_gain) for minus_gain, name in best[:MAX_RUNNERS_UP]]


def _column_share(name: str, share: float, reducts: Reducts) -> dict[str, Any]:
    """A column of the page of all reducts."""
    n_reducts = round(share * len(reducts))
    part = ""
    if name in reducts.core:
        part = "core"
    elif reducts.complete and n_reducts == 0:
        part = "in none"
    share_text = words.percent(n_reducts, max(len(reducts), 1))
    return {"name": name, "share": share, "share_text": share_text, "n_reducts": n_reducts, "part": part}
