"""plar as a person calls it in a shell."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from pathlib import Path

from support.environment import PLAR, TIC_TAC_TOE

__all__ = ["PLAR", "TABLE", "on_a_terminal", "run"]

TABLE = str(TIC_TAC_TOE)


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command with these words; what it wrote, and its exit code."""
    return subprocess.run([PLAR, *words], capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def on_a_terminal(
    *words: str, interrupt_at: bytes | None = None, width: int = 80, stdin_too: bool = False
) -> tuple[int, str]:
    """Exit code, and what stderr shows on a terminal."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    stdin = child if stdin_too else subprocess.DEVNULL
    env = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}, "TERM": "xterm-256color"}
    command = [PLAR, *words]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=child, env=env) as process:
        os.close(child)
        shown = b""
        try:
            while piece := os.read(parent, 4096):
                shown += piece
                if interrupt_at and interrupt_at in shown:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
        except OSError:  # the terminal's end, on Linux
            pass
    os.close(parent)
    return process.returncode, shown.decode()
