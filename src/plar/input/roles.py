"""The roles of a table's columns: the options, resolved against its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plar.bins import Bins, Cuts, Rule, parse_bins, parse_decision_bins
from plar.coding.codes import Column
from plar.coding.column_names import decision_names, resolve_all, roles_of
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.errors import Given, NoDecision, PythonOnly, TableError, Term, shown_names
from plar.options import ReadOptions


@dataclass(frozen=True, slots=True, eq=False)
class Roles:
    """The columns of a table by role, how missing values count, and how numbers become bins.

    `coded_y` is the decision if it was given beside the data; the rest is as in `plar.reduce`.
    """

    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    weights: str | None = None
    missing: str = "value"
    #: what happens to rows without a decision: what `missing` says, or something stricter
    missing_decision: str = "value"
    na: MissingSpellings = NO_SPELLINGS
    coded_y: Column | None = None
    bins: Bins | None = None
    decision_bins: Rule | None = None
    numeric: tuple[str, ...] = ()
    decimal: str = "."
    #: whether the weights are how many equal rows each row stands for
    weights_count_rows: bool = False
    #: where decision columns are cut, as far as that is known
    decision_cuts: Mapping[str, Cuts] = field(default_factory=dict)
    #: how many different values conditions have before they are cut, as far as that is known
    n_values: Mapping[str, int] = field(default_factory=dict)
    #: whether all rows may be dropped for a missing value, since these are a part of the table
    is_part: bool = False

    def decision_rule(self, name: str) -> Rule | None:
        """How a decision column is cut, if it is."""
        return Rule("cuts", cuts=self.decision_cuts[name]) if name in self.decision_cuts else self.decision_bins

    def policies(self) -> list[str]:
        """What happens to rows with a missing value, for every condition and decision."""
        return [self.missing] * len(self.conditions) + [self.missing_decision] * len(self.decision)

    @property
    def used(self) -> list[str]:
        """Columns to be read and compared."""
        return [*self.conditions, *(self.decision if self.coded_y is None else ())]

    @property
    def read(self) -> list[str]:
        """Columns to be read: conditions, decision, weights."""
        return [*self.used, *([self.weights] if self.weights is not None else [])]


def assign(names: Sequence[str], options: ReadOptions, coded_y: Column | None = None, y_name: str = "y") -> Roles:
    """Give the columns of a table their roles; labels given separately are coded, and become a decision of this name.

    >>> assign(["a", "b", "w", "d"], ReadOptions("d", drop=["a"], weights=2)).conditions
    ('b',)
    """
    if not names:
        raise TableError(
            "The table has no columns. Pass one with a ", Term("decision"), " and at least one other column."
        )
    _check_decision(names, options)
    decision = (y_name,) if options.y is not None else decision_names(names, options.decision)
    if not decision:
        raise TableError("The list of ", Term("decisions"), " is empty. Name at least one column.")
    decision_in_table = () if coded_y is not None else decision
    conditions, weights = roles_of(names, decision_in_table, options.conditions, options.drop, options.weights)
    used = {*conditions, *decision_in_table}
    numeric = resolve_all(names, options.numeric, "numeric column")
    return Roles(
        conditions=conditions,
        decision=decision,
        weights=weights,
        missing=options.missing,
        missing_decision=options.decision_policy,
        na=options.spellings,
        coded_y=coded_y,
        bins=parse_bins(options.bins, names, conditions, decision),
        decision_bins=parse_decision_bins(options.decision_bins),
        numeric=tuple(name for name in numeric if name in used),
        decimal=options.decimal,
    )


def _check_decision(names: Sequence[str], options: ReadOptions) -> None:
    """Refuse no decision, or two."""
    remedy = ("Pass ", Given("decision"), ", a column of the table", PythonOnly(", or y=, labels beside it"), ".")
    if options.decision is None and options.y is None:
        raise NoDecision("No ", Term("decision"), " is given. ", *remedy, f" Columns: {shown_names(names)}.")
    if options.decision is not None and options.y is not None:
        raise TableError("Both ", Term("decision"), " and y are given. ", *remedy)
