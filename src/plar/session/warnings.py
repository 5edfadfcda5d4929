"""Warnings around a search: questions that are easy to ask and have meaningless answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from plar.bins import MOST_DECISIONS, are_numbers, is_quantity
from plar.coding.codes import sample_of
from plar.coding.times import kind_of_times
from plar.engines.base import GranuleSet
from plar.errors import Given, printable, warn
from plar.session.session import Session

#: with fewer rows for each combination of the chosen values, hardly any new row has one that was seen before
_FEWEST_ROWS_EACH = 1.5
#: numbers that leave more rows for each combination of their own values are not what makes the table thin
_THIN_ALONE = 10
#: columns that a warning names
_SHOWN = 5


def warn_before(session: Session, columns: Collection[str] | None = None) -> None:
    """Warn of what should not be looked at: rows without a decision, a quantity as decision, index columns.

    Of these, only those among `columns`, if they are given.
    """
    _warn_of_missing_decision(session.granules)
    warn_of_quantity(session)
    _warn_of_index(session.granules, columns)


def _warn_of_index(granules: GranuleSet, among: Collection[str] | None) -> None:
    """Warn of columns that only number or name the rows: such a column alone is a meaningless reduct."""
    columns = [name for name in granules.index_like if among is None or name in among]
    if not columns:
        return
    is_one = len(columns) == 1
    are = "is" if is_one else "are"
    leave_out = "Leave it out, " if is_one else "Leave them out, "
    shown = [printable(name) for name in columns[:_SHOWN]]
    end = " and so on." if len(columns) > _SHOWN else "."
    warn(
        f"{_listed(columns)} {are} different in nearly every row: such a column identifies the rows of this table, and "
        f"neither it nor a reduct with it says anything about new rows. {leave_out}",
        Given("drop", shown[0] if is_one else shown),
        end,
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{printable(name)}'" for name in names[:_SHOWN])
    return f"{listed} and {len(names) - _SHOWN:,} more columns" if len(names) > _SHOWN else listed


def warn_of_quantity(session: Session) -> None:
    """Warn of a decision that is a quantity: every number would be a class, and nearly all columns would be kept."""
    granules = session.granules
    name = granules.decision[0]
    if granules.n_decisions <= MOST_DECISIONS or len(granules.decision) > 1 or name in granules.cuts:
        return
    if session.table.has_categorical_decision:
        return
    values = session.engine.sample_values(session.table, granules, name)
    if is_quantity(values, granules.n_decisions, lambda: granules.class_sizes().tolist()):
        kind = "numbers"
    elif kind_of_times(sample_of(value for value in values if value is not None)):
        kind = "dates or times"
    else:
        return
    warn(
        f"The decision {printable(name)!r} holds {granules.n_decisions:,} different {kind}, and each counts as a "
        "class of its own. Cut it into a few classes: ",
        Given("decision_bins", "quantile:4"),
        ".",
    )


def warn_of_target(session: Session, n_classes: int | None) -> None:
    """Warn of a target that nothing can predict: of one value, or of as many classes as there are rows.

    `n_classes` is None for a target of numbers.
    """
    granules = session.granules
    name = printable(granules.decision[0])
    if granules.n_decisions == 1:
        warn(f"The target {name!r} is the same in every row, so there is nothing to predict.")
    elif n_classes == granules.n_objects:
        values = session.engine.sample_values(session.table, granules, granules.decision[0])
        different = f"The target {name!r} is different in every row, so there is nothing to predict. "
        if not are_numbers(values):
            warn(different, "Choose another column.")
        else:
            warn(
                different,
                "Predict its ranks, ",
                Given("target_type", "numbers"),
                ", or cut its numbers into classes: ",
                Given("target_bins", "quantile:4"),
                ".",
            )


def warn_of_header(session: Session) -> None:
    """Warn of text whose first line may be data: all names of columns are numbers, and some are fractions."""
    table = session.table
    is_declared = any(file.suffix.lower() in (".arff", ".dat") for file in table.source.files)
    is_read = table.options.header and not table.is_granulated and not is_declared
    if is_read and session.granules.text and are_numbers(table.names) and any("." in name for name in table.names):
        warn(
            "The names of all columns are numbers, so the first line of the file may be data. If it is, pass ",
            Given("header", False),
            ".",
        )


def _warn_of_missing_decision(granules: GranuleSet) -> None:
    """Warn of rows without a decision, which are a class like any other unless they are left out."""
    lacking = granules.n_missing_decisions
    if not lacking:
        return
    counted = []
    for name, n_rows in lacking.items():
        rows = "row" if n_rows == 1 else "rows"
        counted.append(f"{n_rows:,} {rows} without {name!r}")
    warn(
        f"The decision is missing in some rows ({', '.join(counted)}), and these count as a class of their own. "
        "To leave them out, pass ",
        Given("missing_decision", "drop"),
        ".",
    )


def warn_supervised_bins(session: Session) -> None:
    """Warn that a test against chance is too lenient if the cut points depend on the decision or target."""
    bins = session.table.roles.bins
    spec = bins.spec if bins else None
    rules = list(spec.values()) if isinstance(spec, dict) else [spec]
    if "mdlp" in rules:
        warn(
            "The cut points of ",
            Given("bins", "mdlp"),
            " depend on what is predicted, so p-values are too small and alpha is too lenient. Cut by auto, quantile "
            "or width, or at points of your own (",
            Given("bins", "quantile:5"),
            ").",
        )


def _can_be_cut(session: Session, name: str) -> bool:
    """Whether bins= would cut a column: it holds numbers, as such or written in a text file, and was not asked for."""
    bins = session.table.roles.bins
    if bins is not None and bins.rule(name) is not None:
        return False
    values = list(session.engine.sample_values(session.table, session.granules, name))
    is_text = any(isinstance(value, str) for value in values)
    return are_numbers(values) and (session.granules.text or not is_text)


def warn_after(session: Session, chosen: Iterable[tuple[Sequence[str], int | None]]) -> None:
    """Warn of chosen numbers that should be cut: they leave hardly more than a row for each combination of values.

    `chosen` are the columns of each result, and how many combinations of values they have, if that is known.
    """
    granules = session.granules
    n_rows = min(granules.n_rows, granules.n_objects)
    ids = frozenset(granules.index_like)
    n_values = dict(zip(granules.conditions, granules.cardinalities, strict=True))
    uncut: dict[str, None] = {}
    for attributes, n_combinations in chosen:
        candidates = [
            name
            for name in attributes
            if n_values[name] > MOST_DECISIONS and name not in granules.cuts and name not in ids
        ]
        numbers = [name for name in candidates if _can_be_cut(session, name)]
        if not numbers:
            continue
        if n_combinations is None:
            n_combinations = granules.n_combinations(attributes)
        is_thin = n_rows < _FEWEST_ROWS_EACH * n_combinations
        if is_thin and n_rows < _THIN_ALONE * granules.n_combinations(numbers):
            uncut.update(dict.fromkeys(numbers))
    if uncut:
        warn(
            f"The numbers of {_listed(list(uncut))} are not cut into bins, and there are fewer than "
            f"{_FEWEST_ROWS_EACH} rows for each combination of the chosen values, so hardly any new row will have one "
            "of them. Cut them, ",
            Given("bins", "quantile:4"),
            ", and leave out what only identifies the rows.",
        )
