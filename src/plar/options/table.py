"""Every option of plar in one table: its type, default, check and meaning, and its names in the shell and in Spark ML.

The table is made of seven frozen dataclasses, by what the options are about: how a table is read, what is
searched for, which columns are selected, how many reducts are listed, which rules are found, what is asked of a
result on new rows, and how a call runs. The public functions, the estimators, the Spark ML stage and the commands build
the same objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from plar.coding.column_names import ColumnName, by_label
from plar.errors import Given, Parameter, ParameterError, Part, invalid
from plar.options.checks import (
    check_alpha,
    check_amount,
    check_at_least_1,
    check_columns,
    check_costs,
    check_count,
    check_decimal,
    check_encoding,
    check_flag,
    check_level,
    check_memory,
    check_n_jobs,
    check_search,
    check_separator,
    check_spellings,
    check_start,
    check_time,
    one_of,
)
from plar.options.declare import Heading, Option, keep_checked, option

if TYPE_CHECKING:
    from plar.bins import Spec
    from plar.coding.missing import MissingSpellings

#: columns by name or position: one, or several
Columns: TypeAlias = ColumnName | Iterable[ColumnName]
#: what happens to rows with missing values, the strictest last
POLICIES: Final = ("value", "drop", "error")
#: p-values above this level are taken for chance, unless `alpha` is given
DEFAULT_ALPHA: Final = 0.05
#: what a target may be
TARGET_TYPES: Final = ("classes", "numbers")
#: how rules cut numbers of many values
DECILES: Final = "auto:10"
#: what rules may be
RULE_KINDS: Final = ("tested", "certain", "possible")
#: how shells write na=()
NO_NA: Final = "none"


class TextKwargs(TypedDict, total=False):
    """The options that say how a table is written, as predictions take them."""

    header: bool
    separator: str | None
    decimal: str
    encoding: str
    na: str | float | Iterable[str | float] | None


class FormatKwargs(TextKwargs, total=False):
    """The options of reading as `plar.check` takes them, which has columns and cut points from a result."""

    numeric: Columns
    missing: str
    missing_decision: str
    weights: ColumnName | None


class ReadingKwargs(TypedDict, total=False):
    """The options of reading as the short functions of plar take them, by keyword; see `plar.reduce`."""

    conditions: Sequence[ColumnName] | None
    drop: Columns
    header: bool
    separator: str | None
    decimal: str
    encoding: str
    numeric: Columns
    na: str | float | Iterable[str | float] | None
    missing: str
    missing_decision: str
    weights: ColumnName | None
    bins: Spec | None
    decision_bins: str | Sequence[float] | None


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """How a table is read; see `plar.reduce`. What can be checked without the table is checked here."""

    decision: Columns | None = option(
        None,
        "The decision (target) column: a name, or a position such as 0 or -1.",
        flags=("--decision", "--target", "-d"),
        param="labelCol",
        heading=Heading.COLUMNS,
    )
    y: Any = option(None, "Labels beside the table, in place of a decision column.")
    conditions: Columns | None = option(
        None, "Columns to choose from; by default all others.", param="inputCols", heading=Heading.COLUMNS
    )
    drop: Columns = option((), "Columns to leave out.", heading=Heading.COLUMNS)
    header: bool = option(True, "Whether text begins with a line of names.", check_flag)
    separator: str | None = option(
        None,
        "What separates fields of text: a character, or comma, semicolon, tab, pipe, blank; by default detected.",
        check_separator,
    )
    decimal: str = option(".", "Decimal mark of numbers in text: . or ,", check_decimal)
    encoding: str = option("utf-8", "Encoding of text, e.g. latin-1.", check_encoding)
    numeric: Columns = option((), "Columns of text to compare as numbers, so that 1 is 1.0.")
    na: Any = option(
        None,
        "What else means missing, beside NA, NaN, null, …: '?' or -999.",
        check_spellings,
    )
    missing: str = option(
        "value",
        "Missing values: a 'value' of their own, 'drop' their rows, or an 'error'.",
        one_of(*POLICIES),
        choices=POLICIES,
    )
    missing_decision: str = option(
        "value",
        "Rows without a decision: a class of their own ('value'), 'drop' them, or an 'error'.",
        one_of(*POLICIES),
        choices=POLICIES,
    )
    weights: ColumnName | None = option(None, "Column of whole-number row counts.", param="weightCol")
    bins: Spec | None = option(
        None,
        "Cut numbers into bins: auto, quantile:10, width:10 or mdlp.",
        choices=("auto", "mdlp", "quantile:10", "width:10"),
    )
    decision_bins: str | Sequence[float] | None = option(
        None,
        "Cut a decision of numbers into classes: quantile:4, width:4, or cut points.",
        choices=("quantile:4", "width:4"),
    )

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        keep_checked(self)

    @classmethod
    def of(cls, function: Callable[..., Any], decision: Columns | None, y: Any, reading: ReadingKwargs) -> ReadOptions:
        """The options of a function that takes them by keyword; an unknown one is refused as Python does."""
        for name in reading:
            if name not in ReadingKwargs.__annotations__:
                parameters = signature(function).parameters.values()
                own_names = [parameter.name for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD]
                other_word = {"decision": "target", "target": "decision"}.get(name)
                near = get_close_matches(name, [*ReadingKwargs.__annotations__, *own_names], n=1)
                if other_word in own_names:
                    near = [other_word]
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}.{hint}")
        return cls(decision, y, **reading)

    @property
    def spellings(self) -> MissingSpellings:
        """What means missing, beside None, NaN and null."""
        from plar.coding.missing import MissingSpellings  # which needs numpy, as the shell's help does not

        return MissingSpellings.of(self.na, self.decimal)

    def changed(self) -> list[str]:
        """Names of the options that differ from their defaults, in the order of the fields."""
        return [declared.name for declared in fields(self) if not _is_default(getattr(self, declared.name), declared)]

    @property
    def decision_policy(self) -> str:
        """What happens to rows without a decision: the stricter of `missing` and `missing_decision`."""
        return max(self.missing, self.missing_decision, key=POLICIES.index)

    def by_label(self, labels: Mapping[Any, str]) -> ReadOptions:
        """Name the columns by the ints or tuples that are their labels; other ints stay positions."""
        if not labels:
            return self
        bins = self.bins
        if isinstance(bins, Mapping):
            bins = {by_label(name, labels): rule for name, rule in bins.items()}
        return replace(
            self,
            decision=by_label(self.decision, labels),
            conditions=by_label(self.conditions, labels),
            drop=by_label(self.drop, labels),
            numeric=by_label(self.numeric, labels),
            weights=by_label(self.weights, labels),
            bins=bins,
        )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What is searched for; see `plar.reduce`."""

    include: Any = option((), "Columns to always include.", check_columns, heading=Heading.COLUMNS)
    epsilon: float = option(0.0, "A column is core if its loss would raise Θ by more than this.", check_amount)
    tolerance: float = option(0.0, "Stop when Θ is at most this far above that of all columns.", check_amount)
    max_attributes: int | None = option(None, "Select at most this many columns.", check_count)
    minimal: bool = option(False, "At the end, remove columns that can go without a loss.", check_flag)
    alpha: float | None = option(None, "Take only columns that beat chance at this level, e.g. 0.05.", check_alpha)
    start: str | None = option(
        None,
        "Begin with the core, or with the included columns alone: core, empty. Default: core; with alpha: empty.",
        check_start,
        choices=("core", "empty"),
    )
    search: str = option(
        "greedy",
        "greedy adds one column after another; smallest finds the smallest set and proves it.",
        check_search,
        choices=("greedy", "smallest"),
    )
    costs: Mapping[Any, int] | None = option(
        None, "What columns cost in the smallest search; the others cost 1.", check_costs
    )
    exclude: Any = option(
        (), "Columns to never include, with the smallest search.", check_columns, heading=Heading.COLUMNS
    )
    equivalent: bool = option(False, "Also find the columns that carry the same information.", check_flag)

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        # a tuple may be the label of one column, which only the table can tell
        is_list = not isinstance(self.include, tuple)
        keep_checked(self)
        self._check_kind_of_search()
        if is_list:
            self.check_limit(self.include)

    def check_limit(self, include: Sequence[Any]) -> None:
        """Refuse more columns to include than may be selected."""
        n_included = len(include)
        limit = self.max_attributes
        if limit is not None and limit < n_included:
            raise ParameterError(
                Parameter("max_attributes"), f" is {limit}, but ", Given("include"),
                f" alone has {n_included} columns. Raise the limit or include fewer.",
            )  # fmt: skip

    def _check_kind_of_search(self) -> None:
        """Refuse options of the other kind of search."""
        is_greedy = self.search == "greedy"
        others = ("costs", "exclude") if is_greedy else _GREEDY_ONLY
        for declared in fields(self):
            if declared.name not in others or getattr(self, declared.name) in (declared.default, None, {}):
                continue
            kind = Given("search", "smallest" if is_greedy else "greedy")
            message: list[Part] = [Parameter(declared.name), " goes with ", kind, "."]
            if declared.name == "exclude":
                message += [" To leave columns out of the table, use ", Given("drop"), "."]
            raise ParameterError(*message)

    def settings(self) -> dict[str, Any]:
        """The options as JSON has them, once columns have their names."""
        return {
            "include": list(self.include),
            "epsilon": self.epsilon,
            "tolerance": self.tolerance,
            "max_attributes": self.max_attributes,
            "minimal": self.minimal,
            "alpha": self.alpha,
            "start": self.begins,
            "search": self.search,
            "costs": {str(name): int(cost) for name, cost in (self.costs or {}).items()},
            "exclude": list(self.exclude),
        }

    @property
    def begins(self) -> str:
        """What the search starts with: by default the core; with alpha nothing, since the core is not tested."""
        if self.start is not None:
            return self.start
        return "core" if self.alpha is None else "empty"


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """Which columns are selected; see `plar.select`."""

    alpha: float = option(DEFAULT_ALPHA, "How rarely a table of noise may give any column at all.", check_level)
    given: str = option(
        "each",
        "What a column must add to: 'each' selected column, or 'all' of them together, which ends early.",
        one_of("each", "all"),
        choices=("each", "all"),
    )
    max_columns: int | None = option(None, "Select at most this many columns.", check_count)
    include: Any = option((), "Columns to always include, without a test.", check_columns, heading=Heading.COLUMNS)
    exclude: Any = option((), "Columns to never select.", check_columns, heading=Heading.COLUMNS)
    keep: Any = option(
        (),
        "Columns to consider although they seem only to number or name the rows.",
        check_columns,
        heading=Heading.COLUMNS,
    )
    target_type: str = option(
        "auto",
        "What the target is: 'classes', or 'numbers', whose ranks are predicted; 'auto' judges by its values.",
        one_of("auto", *TARGET_TYPES),
        choices=("auto", *TARGET_TYPES),
    )

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        is_list = not isinstance(self.include, tuple)
        keep_checked(self)
        if is_list:
            self.check_limit(self.include)

    def check_limit(self, include: Sequence[Any]) -> None:
        """Refuse more columns to include than may be selected."""
        n_included = len(include)
        limit = self.max_columns
        if limit is not None and limit < n_included:
            raise ParameterError(
                Parameter("max_columns"), f" is {limit}, but ", Given("include"),
                f" alone has {n_included} columns. Raise the limit or include fewer.",
            )  # fmt: skip

    def check_columns(self) -> None:
        """Refuse columns, once they have their names, that are both to be included and never to be selected."""
        both = [name for name in self.include if name in self.exclude]
        if both:
            raise ParameterError(
                f"Column {both[0]!r} is in ", Given("include"), " and in ", Given("exclude"), ". Take it out of one."
            )

    def settings(self) -> dict[str, Any]:
        """The options as JSON has them, once columns have their names."""
        return {
            "alpha": self.alpha,
            "given": self.given,
            "max_columns": self.max_columns,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "keep": list(self.keep),
            "target_type": self.target_type,
        }


#: options that the search for the smallest set does not take
_GREEDY_ONLY: Final = ("epsilon", "tolerance", "max_attributes", "minimal", "alpha", "start")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How many reducts are listed; see `plar.reducts`."""

    limit: int | None = option(1_000_000, "List at most this many reducts.", check_count)
    max_size: int | None = option(None, "List reducts of at most this many columns.", check_count)

    def __post_init__(self) -> None:
        """Refuse numbers of reducts or columns below 1."""
        keep_checked(self)


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Which rules are looked for; see `plar.rules`."""

    kind: str = option(
        "tested",
        "tested: each beats chance; certain or possible: describe the lower or upper approximations (LEM2).",
        one_of(*RULE_KINDS),
        choices=RULE_KINDS,
    )
    alpha: float = option(DEFAULT_ALPHA, "How rarely a table of noise may give any rule at all.", check_level)
    min_support: int = option(1, "Only rules that match at least this many rows of their decision.", check_at_least_1)
    max_conditions: int | None = option(None, "Only rules of at most this many conditions.", check_count)

    def __post_init__(self) -> None:
        """Refuse what is invalid for any table."""
        keep_checked(self)

    def settings(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return {
            "kind": self.kind,
            "alpha": self.alpha if self.kind == "tested" else None,
            "min_support": self.min_support,
            "max_conditions": self.max_conditions,
        }


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What is asked of a result on new rows; see `plar.check`."""

    alpha: float | None = option(
        None,
        "The level of the p-values on the new rows. Default: that of the result, else 0.05.",
        check_alpha,
    )
    #: granules, a table, or the path of one
    seen: Any = option(None, "The old table, or its granules: says which values and combinations are new.")

    def __post_init__(self) -> None:
        """Refuse what is no level."""
        keep_checked(self)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a call runs: where it computes and what it may use; see `plar.reduce`."""

    #: a name, or an Engine
    engine: object = option(
        "auto",
        "The engine: auto, local, spark or cuda; see 'plar engines'.",
        flags=("--engine", "-e"),
        choices=("auto", "local", "spark", "cuda"),
        heading=Heading.COMPUTING,
    )
    n_jobs: int | None = option(
        None,
        "Threads of this machine; by default all cores.",
        check_n_jobs,
        flags=("--jobs", "-j"),
        heading=Heading.COMPUTING,
    )
    memory_limit: Any = option(
        None, "Stop with an error rather than use more memory than this, e.g. 2GB.", check_memory
    )
    time_limit: Any = option(None, "Stop with the best result so far after 90s, 10m, 2h, …", check_time)
    checkpoint: str | os.PathLike[str] | None = option(
        None, "Save every step in this file; if it exists, continue from it."
    )

    def __post_init__(self) -> None:
        """Refuse limits that are neither a size nor a time."""
        keep_checked(self)


def _declared(kind: type, heading: Heading) -> dict[str, Option]:
    """The options of a dataclass, listed under `heading` unless they name another."""
    options: dict[str, Option] = {declared.name: declared.metadata["option"] for declared in fields(kind)}
    return {name: replace(declared, heading=declared.heading or heading) for name, declared in options.items()}


#: the options of `plar.select` by their names, some of which mean something else elsewhere
SELECT_OPTIONS: Final = _declared(SelectOptions, Heading.SEARCH)
#: those of `plar.rules`
RULE_OPTIONS: Final = _declared(RuleOptions, Heading.SEARCH)
#: those of `plar.check`
CHECK_OPTIONS: Final = _declared(CheckOptions, Heading.SEARCH)
#: every option by its name
OPTIONS: Final = {
    **CHECK_OPTIONS,
    **RULE_OPTIONS,
    **SELECT_OPTIONS,
    **_declared(ReadOptions, Heading.READING),
    **_declared(SearchOptions, Heading.SEARCH),
    **_declared(ListOptions, Heading.SEARCH),
    **_declared(RunOptions, Heading.LIMITS),
}


def shell_flag(name: str) -> str:
    """An option as the shell spells it.

    >>> shell_flag("max_attributes"), shell_flag("n_jobs")
    ('--max-attributes', '--jobs')
    """
    declared = OPTIONS.get(name)
    if declared is not None and declared.flags:
        return declared.flags[0]
    return f"--{name.replace('_', '-')}"


def param_name(name: str) -> str:
    """An option as Spark ML calls it.

    >>> param_name("decision"), param_name("max_attributes")
    ('labelCol', 'maxAttributes')
    """
    if OPTIONS[name].param:
        return OPTIONS[name].param
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def wants_bins(output: Any) -> bool:
    """Whether columns that were cut are returned as bin numbers."""
    if output not in ("values", "bins"):
        raise invalid("output", "'values' or 'bins'", output)
    return bool(output == "bins")


def _is_default(value: Any, declared: Field[Any]) -> bool:
    default = declared.default
    if value is default:
        return True
    if isinstance(value, (list, tuple)) and isinstance(default, tuple):
        return tuple(value) == default
    return type(value) is type(default) and bool(value == default)
