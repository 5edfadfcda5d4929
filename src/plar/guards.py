"""Warnings before a search: questions that are easy to ask and have meaningless answers."""

from __future__ import annotations

import re

from plar.bins import are_numbers, looks_continuous
from plar.engines.base import Engine, GranuleHandle
from plar.errors import printable, warn
from plar.tables import DecisionTable

#: warn of columns with nearly one value per row from this many rows on; of an unnamed index from the second number on
_ROWS, _FEWEST_ROWS = 50, 5
_UNNAMED = re.compile(r"(unnamed: ?\d+|index|level_\d+)?", re.IGNORECASE)
#: a decision with more different numbers is a quantity
_MANY_NUMBERS = 30
#: columns that a warning names
_SHOWN = 5


def warn_ids(engine: Engine, table: DecisionTable, granules: GranuleHandle) -> None:
    """Warn of columns with nearly one value per row: such a column alone is a meaningless reduct."""
    n, values = granules.n_objects, zip(granules.conditions, granules.cardinalities, strict=True)
    if n >= _ROWS:
        many = [name for name, k in values if k > 0.9 * n]
    else:
        many = [name for name, k in values if k == n >= _FEWEST_ROWS and _is_unnamed(name, table)]
    if not many:
        return
    shown = many[:_SHOWN]
    listed = [printable(name) for name in shown]
    named = ", ".join(f"'{name}'" for name in listed)
    more = f" and {len(many) - _SHOWN:,} more columns" if len(many) > _SHOWN else ""
    dropping = f"drop={(listed[0] if len(listed) == 1 else listed)!r}"
    remedies = [f"leave {'it' if len(many) == 1 else 'them'} out, {dropping}{' and so on' * bool(more)}"]
    if any(looks_continuous(engine.sample_values(table, granules, name)) for name in shown):
        remedies.insert(0, "cut numbers into bins, bins='mdlp'")
    remedy = "; ".join([*remedies, "or take only columns that beat chance, alpha=0.05"])
    warn(
        f"Nearly every row has a value of its own in {named}{more}: such a column identifies the rows of this table, "
        f"and neither it nor a reduct with it says anything about new rows. {remedy[0].upper()}{remedy[1:]}."
    )


def _is_unnamed(name: str, table: DecisionTable) -> bool:
    """Whether a column looks like the index that pandas writes first; without a name it is x0."""
    return bool(_UNNAMED.fullmatch(name.strip())) or (name == table.names[0] == "x0" and "x1" not in table.names)


def warn_many_numbers(engine: Engine, table: DecisionTable, granules: GranuleHandle) -> None:
    """Warn of a decision that is a quantity: every number would be a class, and nearly all columns would be kept."""
    if granules.n_classes <= _MANY_NUMBERS or len(granules.decision) > 1 or granules.decision[0] in granules.cuts:
        return
    name = granules.decision[0]
    if are_numbers(engine.sample_values(table, granules, name)):
        warn(
            f"The decision {printable(name)!r} holds {granules.n_classes:,} different numbers, and each counts as a "
            "class of its own. Cut it into a few classes: decision_bins='quantile:4'."
        )


def warn_missing_decision(granules: GranuleHandle) -> None:
    """Warn of rows without a decision, which are a class like any other unless they are left out."""
    lacking = granules.n_missing_decisions
    if not lacking:
        return
    rows = ", ".join(f"{n_rows:,} row{'s' if n_rows > 1 else ''} without {name!r}" for name, n_rows in lacking.items())
    warn(
        f"The decision is missing in some rows ({rows}), and these count as a class of their own. To leave them out, "
        "pass missing_decision='drop'."
    )


def warn_supervised_bins(table: DecisionTable) -> None:
    """Warn that a test against chance is too lenient if the cut points depend on the decision."""
    spec = table.roles.bins.spec if table.roles.bins else ()
    if "mdlp" in (spec.values() if isinstance(spec, dict) else (spec,)):
        warn(
            "The cut points of bins='mdlp' depend on the decision, so p-values are too small and alpha is too lenient. "
            "Cut by quantile or width, or at points of your own (bins='quantile:5')."
        )
