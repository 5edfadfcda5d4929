"""Every option of plar: its type, default, check and meaning, and its names in the shell and in Spark ML."""

from plar.options.checks import MAX_COST
from plar.options.declare import Option
from plar.options.table import (
    DEFAULT_ALPHA,
    NO_NA,
    OPTIONS,
    POLICIES,
    Columns,
    ListOptions,
    ReadingOptions,
    ReadOptions,
    RunOptions,
    SearchOptions,
    param_name,
    read_options,
    shell_flag,
    wants_bins,
)

__all__ = [
    "DEFAULT_ALPHA",
    "MAX_COST",
    "NO_NA",
    "OPTIONS",
    "POLICIES",
    "Columns",
    "ListOptions",
    "Option",
    "ReadOptions",
    "ReadingOptions",
    "RunOptions",
    "SearchOptions",
    "param_name",
    "read_options",
    "shell_flag",
    "wants_bins",
]
