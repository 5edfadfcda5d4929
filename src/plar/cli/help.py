"""How help looks: options under their headings, in the order of `Heading`, and the commands before the options.

Plain text, not typer's panels: of 80 characters, these leave 26 to say what an option means.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from typer.core import TyperCommand, TyperGroup

from plar.options import Heading

#: longer options stand on a line of their own, above what they mean
_WIDEST_OPTION = 30


class Command(TyperCommand):
    """A command whose help lists the options under headings."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the command: FILE, where typer has {FILE}."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by heading; those that typer adds come last."""
        sections: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is None:
                continue
            name, meaning = row
            if parameter.param_type_name == "argument":
                sections["Arguments"].append((name.split()[0], meaning))  # without its type
            else:
                sections[getattr(parameter, "rich_help_panel", None) or Heading.HELP].append(row)
        width = _width_of_names([name for section in sections.values() for name, _ in section])
        for heading in ("Arguments", *Heading):
            if sections[heading]:
                with formatter.section(str(heading)):
                    formatter.write_dl([(name.ljust(width), help) for name, help in sections[heading]], _WIDEST_OPTION)


def _width_of_names(names: list[str]) -> int:
    """One width for all sections, so that what the options mean is one column."""
    return max((len(name) for name in names if len(name) <= _WIDEST_OPTION), default=0)


class Program(TyperGroup):
    """The program, whose help lists the commands first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        rows = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([row for row in rows if row is not None])
