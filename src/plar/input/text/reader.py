"""Tables in text files: opened by their header, then read into coded columns by all available threads.

Every thread takes chunks of rows and has its own dictionary. At the end the dictionaries are merged, in the order in
which values first appear in the file, and rows are recoded, so nothing depends on which thread read what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plar.coding.codes import Column, encode_distinct
from plar.coding.column_names import check_names
from plar.coding.missing import NO_SPELLINGS, MissingSpellings
from plar.errors import NoRows, TableError
from plar.files.find import shown_files, suffix_of
from plar.input.text import tokens
from plar.input.text.chunks import Chunk, Chunks, built_upon_ascii
from plar.input.text.dictionary import LENGTH, QUOTED, Dictionary, merged
from plar.input.text.distinct import Index
from plar.input.text.headers import LONE_CR, Header, decoded, read_header
from plar.input.text.rows import Fault, Rows, Worker
from plar.options import ReadOptions
from plar.runtime.parallel import in_threads, usable_cores

#: maximum number of columns of a table in a file
MAX_COLUMNS = 1 << 18
#: bytes per thread at which another thread pays
_SHARED = 1 << 21


class CodedRows(NamedTuple):
    """Columns of a table, in the order of its rows."""

    columns: list[Column]
    #: how many rows of the file each one stands for
    counts: NDArray[np.int64]
    #: whether rows are known to be distinct, except for values that became equal by trimming
    distinct: bool
    #: where a value first occurs, given the position of its column and its code
    where: Callable[[int, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A table in one or more text files, whose headers have been read and have the same names."""

    files: tuple[Path, ...]
    headers: tuple[Header, ...]
    encoding: str

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return self.headers[0].names

    @property
    def decision(self) -> tuple[str, ...]:
        """The decision that the files themselves declare."""
        return tuple(dict.fromkeys(name for header in self.headers for name in header.decision))

    def read(
        self,
        names: Sequence[str],
        na: MissingSpellings = NO_SPELLINGS,
        weights: str | None = None,
        *,
        trim: bool = True,
        group: bool = True,
    ) -> CodedRows:
        """Code columns, in which `na` are further spellings of missing, and after them those of `weights` as they are.

        `trim` ignores blanks around a value. With `group`, equal rows may be merged; otherwise every row comes out, in
        the order of the files.
        """
        spellings = dict.fromkeys(names, na)
        if weights is not None:
            spellings[weights] = NO_SPELLINGS
        at = {name: place for place, name in enumerate(self.names)}
        workers = self._work([at[name] for name in spellings], group, usable_cores())
        self._check(workers)
        rows = Rows([worker.blocks for worker in workers])
        if not rows.n_rows:
            have = "has a header and no rows" if len(self.files) == 1 else "have headers and no rows"
            shown = shown_files(self.files)
            raise NoRows(f"{shown} {have}. Add some, or check whether the first line is a header.")
        places, master = merged([worker.dictionary for worker in workers])
        values, final = self._values(list(spellings.values()), trim, workers, master)
        luts = [worker.final_codes(final[own]) for worker, own in zip(workers, places, strict=True)]

        def where(column: int, code: int) -> str:
            chosen = np.flatnonzero((master.columns == column) & (final == code))
            path, line = self._place(workers, int(master.entries["first"][chosen].min()))
            return f"{str(path)!r}, line {line}"

        return CodedRows(rows.columns(values, luts), rows.counts(), rows.distinct, where)

    # -- threads ---------------------------------------------------------------------------------------------

    def _work(self, wanted: list[int], group: bool, n_jobs: int) -> list[Worker]:
        """Have every thread read chunks until there are no more, or one is malformed."""
        dialect = self.headers[0].dialect
        n_jobs = self._threads(n_jobs)
        workers = [Worker(dialect, wanted, len(self.names), group, n_jobs) for _ in range(n_jobs)]
        pairs = zip(self.files, self.headers, strict=True)
        files = [(path, header.size, header.end, header.stamp) for path, header in pairs]
        with Chunks(files, dialect, self.encoding) as chunks:
            first = chunks.next(None)
            if first is None or workers[0].read(first):
                return workers[:1]
            for worker in workers[1:]:
                worker.learn(workers[0])

            def work(worker: Worker) -> None:
                chunk: Chunk | None = first if worker is workers[0] else None
                try:
                    while (chunk := chunks.next(chunk)) is not None:
                        if worker.read(chunk):
                            break
                    worker.finish()
                finally:
                    # a fault stops the reading: all rows before it have been dealt out already
                    chunks.over = chunks.over or chunk is not None

            _run_all(work, workers, chunks)
        return workers

    def _threads(self, n_jobs: int) -> int:
        size = 0
        for file, header in zip(self.files, self.headers, strict=True):
            with suppress(OSError):  # opening the file reports it
                end = file.stat().st_size if header.end is None else header.end
                size += (end - header.size) * (20 if suffix_of(file)[1] else 1)
        return max(1, min(n_jobs, -(-size // _SHARED)))

    # -- errors ------------------------------------------------------------------------------------------------

    def _check(self, workers: Sequence[Worker]) -> None:
        """Raise for the first malformed row of the files, if there is one."""
        faults = [worker.fault for worker in workers if worker.fault is not None]
        if not faults:
            return
        fault = min(faults, key=lambda fault: fault.chunk)
        path, line = self._place(workers, (fault.chunk << 32) | fault.line)
        raise TableError(f"{str(path)!r}, line {line}: {self._reason(fault)}")

    def _reason(self, fault: Fault) -> str:
        dialect = self.headers[0].dialect
        if fault.kind == tokens.RAGGED:
            found, expected = fault.fields, len(self.names)
            return (
                f"{found} field{'s' * (found != 1)} where {expected} are expected. "
                "Fix the line, or pass the right separator=."
            )
        if fault.kind == tokens.LONE_CR:
            return LONE_CR
        if fault.kind == tokens.UNCLOSED:
            return "a quote is not closed. Close it, or double quotes inside values."
        remedy = "Escape it with a backslash." if dialect.padded else "Double the quotes inside a quoted value."
        return f"{dialect.separator!r} expected after a closing quote. {remedy}"

    def _place(self, workers: Sequence[Worker], first: int) -> tuple[Path, int]:
        """File and line of a position: the chunk in the upper 32 bits, its line in the lower."""
        chunk, line = first >> 32, first & 0xFFFFFFFF
        lines = {number: place for worker in workers for number, place in worker.lines.items()}
        file = lines[chunk][0]
        before = sum(n for number, (other, n) in lines.items() if other == file and number < chunk)
        return self.files[file], self.headers[file].lines + before + line

    # -- values ------------------------------------------------------------------------------------------------

    def _values(
        self, spellings: Sequence[MissingSpellings], trim: bool, workers: Sequence[Worker], master: Dictionary
    ) -> tuple[list[Column], Index]:
        """Values of every column, in the order of their first appearance, and the codes of all entries.

        `spellings` says for each column what means missing.
        """
        owners, entries = master.columns, master.entries[: master.made]
        order = np.lexsort((entries["first"], owners))
        bounds = np.searchsorted(owners[order], np.arange(len(spellings) + 1))
        final, columns = np.empty(master.made, np.uint32), []
        texts = self._texts(workers, master)
        for na, (low, high) in zip(spellings, pairwise(bounds), strict=True):
            own = order[low:high]
            column = encode_distinct(np.arange(len(own), dtype=np.uint32), texts(own), na=na, trim=trim)
            final[own] = column.codes
            columns.append(column)
        return columns, final

    def _texts(self, workers: Sequence[Worker], master: Dictionary) -> Callable[..., Sequence[str | None]]:
        """Make a function that decodes entries."""
        entries, whole = master.entries, master.arena[: master.filled].tobytes()
        text = whole.decode("ascii") if whole.isascii() else ""
        missing = self.headers[0].dialect.missing
        encoding = self.encoding if built_upon_ascii(self.encoding) else "utf-8"

        def decode(value: bytes, first: int) -> str:
            try:
                return value.decode(encoding)
            except UnicodeDecodeError:
                return decoded(value, *self._place(workers, first), encoding)

        def texts(chosen: NDArray[np.int64]) -> Sequence[str | None]:
            starts, metas = entries["place"][chosen].tolist(), entries["meta"][chosen]
            ends = (entries["place"][chosen] + (metas >> QUOTED & LENGTH)).tolist()
            if text or not whole:
                found = [text[a:b] for a, b in zip(starts, ends, strict=True)]
            else:
                firsts = entries["first"][chosen].tolist()
                found = [decode(whole[a:b], first) for a, b, first in zip(starts, ends, firsts, strict=True)]
            if not missing:
                return found
            pairs = zip(found, (metas & QUOTED).tolist(), strict=True)
            return [None if not quoted and value.strip() in missing else value for value, quoted in pairs]

        return texts


def _run_all(work: Callable[[Worker], None], workers: Sequence[Worker], chunks: Chunks) -> None:
    """Run all workers at once, under the caller's limits; an interrupt stops each after its current chunk."""
    if len(workers) == 1:
        work(workers[0])
        return

    def stop() -> None:
        chunks.over = True

    for _ in in_threads(work, workers, stop=stop):
        pass


def open_text(files: Sequence[Path], kind: str, options: ReadOptions) -> TextFile:
    r"""Read the headers of text files that make up one table: delimited text, ARFF, or .dat, which is either.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text("a,d\n1,x\n1,x\n2,y\n")
    ...     rows = open_text([file], "text", ReadOptions()).read(["a", "d"])
    >>> [column.values for column in rows.columns], rows.counts.tolist()
    ([['1', '2'], ['x', 'y']], [2, 1])
    """
    headers = [read_header(file, kind, options) for file in files]
    first = headers[0]
    for file, other in zip(files, headers, strict=True):
        if other.names != first.names:
            raise TableError(
                f"{str(file)!r} has different columns from {str(files[0])!r}. All files must have the same columns."
            )
        if replace(other.dialect, missing=()) != replace(first.dialect, missing=()):
            raise TableError(f"{str(file)!r} has a different separator from {str(files[0])!r}. Pass separator=.")
    missing = max((h.dialect.missing for h in headers), key=len)
    headers[0] = replace(first, dialect=replace(first.dialect, missing=missing))
    if len(first.names) > MAX_COLUMNS:
        raise TableError(
            f"{str(files[0])!r} has {len(first.names):,} columns, and files may have {MAX_COLUMNS:,}. "
            "Check its separator, divide its columns, or pass the table as an array."
        )
    remedy = "Rename them."
    if not first.dialect.padded:  # ARFF declares its names
        remedy = "Rename them, or pass header=False if the first line is a row."
    check_names(first.names, repr(str(files[0])), remedy)
    return TextFile(tuple(files), tuple(headers), options.encoding)
