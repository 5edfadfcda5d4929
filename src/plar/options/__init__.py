"""Every option of plar: its type, default, check and meaning, and its names in the shell and in Spark ML."""

from plar.options.checks import MAX_COST
from plar.options.declare import Heading, Option
from plar.options.table import (
    DEFAULT_ALPHA,
    NO_NA,
    OPTIONS,
    POLICIES,
    RULE_KINDS,
    RULE_OPTIONS,
    SELECT_OPTIONS,
    Columns,
    ListOptions,
    ReadingKwargs,
    ReadOptions,
    RuleOptions,
    RunOptions,
    SearchOptions,
    SelectOptions,
    param_name,
    shell_flag,
    wants_bins,
)

__all__ = [
    "DEFAULT_ALPHA",
    "MAX_COST",
    "NO_NA",
    "OPTIONS",
    "POLICIES",
    "RULE_KINDS",
    "RULE_OPTIONS",
    "SELECT_OPTIONS",
    "Columns",
    "Heading",
    "ListOptions",
    "Option",
    "ReadOptions",
    "ReadingKwargs",
    "RuleOptions",
    "RunOptions",
    "SearchOptions",
    "SelectOptions",
    "param_name",
    "shell_flag",
    "wants_bins",
]
