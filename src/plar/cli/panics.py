"""Keep polars' own reports of its panics off stderr, where plar says in one line what is wrong with the file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile

__all__ = ["panics_hidden"]

_PANIC = re.compile(rb"\n*thread '[^\n]*panicked at ")


@contextmanager
def panics_hidden() -> Iterator[None]:
    """Send what libraries write to descriptor 2 to a file, and pass it on at the end, up to the first panic.

    Python's own `sys.stderr` still writes at once. With PLAR_DEBUG set, everything does.
    """
    before = sys.__stderr__
    ours = before is not None and before is sys.stderr and before.fileno() == 2
    held = None
    if ours and not os.environ.get("PLAR_DEBUG"):
        with suppress(OSError):  # there may be no place for it
            held = TemporaryFile()  # noqa: SIM115 - closed below
    if before is None or held is None:
        yield
        return
    before.flush()
    with held, os.fdopen(os.dup(2), "w", 1, encoding=before.encoding, errors=before.errors) as direct:
        os.dup2(held.fileno(), 2)
        sys.stderr = direct
        try:
            yield
        finally:
            sys.stderr = before
            with suppress(OSError):  # its reader may be gone
                direct.flush()
            os.dup2(direct.fileno(), 2)
            held.seek(0)
            with suppress(OSError):
                os.write(2, _PANIC.split(held.read(), maxsplit=1)[0])
