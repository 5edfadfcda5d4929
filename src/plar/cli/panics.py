"""Polars tells stderr of its panics by itself, in many lines, before plar says in one what is wrong with the file."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["panics_held"]

#: how a panic begins, and the end of a text in which one may
_PANIC = re.compile(rb"\n*thread '[^\n]*panicked at ")
_UNFINISHED = re.compile(rb"\n*[^\n]*\Z")
_UNDERSTOOD = b"\0"


@contextmanager
def panics_held() -> Iterator[None]:
    """Keep panics from stderr while plar deals with them; one that ends the process is told all the same.

    Stderr passes through a process of its own meanwhile, because nothing of this one is left to tell what ended it.
    """
    before = sys.__stderr__
    wanted = hasattr(os, "fork") and not os.environ.get("PLAR_DEBUG")
    if before is None or before is not sys.stderr or before.fileno() != 2 or not wanted:
        yield
        return
    before.flush()
    stderr = os.dup(2)
    source, sink = os.pipe()
    relay = os.fork()
    if relay == 0:
        try:
            os.close(sink)
            _relay(source, stderr)
        finally:
            os._exit(0)
    os.close(source)
    os.dup2(sink, 2)
    os.close(sink)
    sys.stderr = os.fdopen(os.dup(stderr), "w", 1, encoding=before.encoding, errors=before.errors)
    try:
        yield
    finally:
        with suppress(OSError):  # nobody may be left to read it
            sys.stderr.close()
        with suppress(OSError):
            os.write(2, _UNDERSTOOD)
        sys.stderr = before
        os.dup2(stderr, 2)
        os.close(stderr)
        os.waitpid(relay, 0)


def _relay(source: int, target: int) -> None:
    """Pass on what is written to `source` up to a panic, and the rest if nobody says that it is understood."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    text = b""
    while chunk := os.read(source, 1 << 16):
        text += chunk
        understood = text.endswith(_UNDERSTOOD)
        panic = _PANIC.search(text)
        if panic is None and not understood:
            panic = _UNFINISHED.search(text)
        told = panic.start() if panic else len(text) - 1
        os.write(target, text[:told])
        text = text[told:]
        if understood:
            return
    os.write(target, text)
