"""The command line: the library for the shell. Data and JSON go to stdout, messages to stderr.

What a command needs is imported when it runs, so that help is instant and an early Ctrl-C is caught.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import plar
from plar.cli.commands import COMMANDS, DOES_NOT_STAND, select
from plar.cli.help import Command, Program
from plar.cli.opening import discard_stdout
from plar.cli.options import expand_groups
from plar.cli.shell_words import in_shell
from plar.cli.usage import usage_message
from plar.errors import (
    EngineFailed,
    EngineUnavailable,
    MemoryLimitExceeded,
    PlarError,
    PlarWarning,
    one_line,
    printable,
)
from plar.runtime.interrupts import SafeInterrupts

#: a line of help is not longer, however wide the terminal is
_WIDEST_HELP = 100


def _example(command: str) -> str:
    """A command line under the help, which stays one line."""
    return f"\b\nExample: {command}"


app = typer.Typer(
    help="Feature selection: the columns that predict a target, and those that say as much about it as all columns.",
    epilog=f"'plar COMMAND --help' lists the options of a command.\n\n{_example(COMMANDS[select].example)}",
    cls=Program,
    context_settings={"max_content_width": _WIDEST_HELP},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command, _words in COMMANDS.items():
    _register = app.command(cls=Command, short_help=_words.summary, epilog=_example(_words.example))
    _register(expand_groups(_command))


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False
) -> None:
    if version:
        print(f"plar {plar.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run a command; exit 0 done, 1 the machine failed, 2 bad input or usage, 3 a result that no longer stands.

    130 is for a command that was interrupted.
    """
    # Imports are most of a short run. numba would import scipy, if installed, for BLAS routines that no kernel of
    # plar calls; and there is no garbage to collect among modules, while they load or at exit.
    sys.modules.setdefault("scipy", None)  # type: ignore[arg-type]
    gc.disable()
    _open_closed_streams()
    warnings.showwarning = _warn
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may hold what cannot be encoded
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with SafeInterrupts():
            code = app(standalone_mode=False)
            if code == 130:  # how typer reports an interrupt to its caller
                raise KeyboardInterrupt
        sys.stdout.flush()
        if code == DOES_NOT_STAND:
            sys.exit(code)
    except PlarError as error:
        if isinstance(error, MemoryLimitExceeded):
            print(f"Error: {one_line(in_shell(error.message))}", file=sys.stderr, flush=True)
            os._exit(2)  # polars keeps reading in its threads, and may hit the kernel's limit
        _fail(
            f"Error: {one_line(in_shell(error.message))}",
            1 if isinstance(error, (EngineFailed, EngineUnavailable)) else 2,
        )
    except typer.TyperException as error:
        _fail(f"Error: {usage_message(error, sys.argv[1:])}", 2)
    except (KeyboardInterrupt, typer.Abort):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail("Interrupted.", 130)
    except BrokenPipeError:
        discard_stdout()
        sys.exit(1)
    except MemoryError:
        _fail("Error: Out of memory. Choose fewer columns, or use a machine with more memory.", 1)
    except OSError as error:
        where = f" {Path(error.filename)}" if error.filename else ""
        _fail(f"Error: {error.strerror or error}{where}.", 1)
    except Exception as error:
        if os.environ.get("PLAR_DEBUG"):
            raise
        _fail(f"Error: {type(error).__name__}: {error} This is a bug in plar; PLAR_DEBUG=1 shows where.", 1)
    finally:
        gc.freeze()


def _open_closed_streams() -> None:
    """Open closed standard streams (``>&-``) as /dev/null, or files opened later would get their descriptors."""
    while (null := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(null)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
    """Print plar's own warnings on one line, and others with their place."""
    if isinstance(message, PlarWarning):
        print(printable(f"Warning: {in_shell(message.message)}"), file=sys.stderr, flush=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _fail(message: str, code: int) -> None:
    print(printable(message), file=sys.stderr)
    sys.exit(code)
