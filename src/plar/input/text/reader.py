"""Tables in text files: opened by their header, then read into coded columns by all available threads.

Every thread takes chunks of rows and has its own dictionary. At the end the dictionaries are merged, in the
order in which values first appear in the file, and rows are recoded, so nothing depends on which thread read
what.
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
from plar.errors import Given, NoRows, Part, TableError
from plar.files.find import shown_files, suffix_of
from plar.grouping.partition import Index
from plar.input.text import tokens
from plar.input.text.chunks import Chunk, Chunks, FileRange, built_upon_ascii
from plar.input.text.dictionary import META_QUOTED, Dictionary, lengths_of, merged
from plar.input.text.headers import LONE_CR, Header, decoded, read_header
from plar.input.text.rows import Fault, Rows, Worker
from plar.options import ReadOptions
from plar.runtime.parallel import in_threads, usable_cores

#: maximum number of columns of a table in a file
MAX_COLUMNS = 1 << 18
#: another thread pays from so many bytes for each
_BYTES_PER_THREAD = 1 << 21
#: how much larger text is than its compressed file, roughly
_COMPRESSION = 20


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

        `trim` ignores blanks around a value. With `group`, equal rows may be merged; otherwise every row
        comes out, in the order of the files.
        """
        spellings = dict.fromkeys(names, na)
        if weights is not None:
            spellings[weights] = NO_SPELLINGS
        places = {name: place for place, name in enumerate(self.names)}
        workers = self._work([places[name] for name in spellings], group, usable_cores())
        self._check(workers)
        rows = Rows([worker.blocks for worker in workers])
        if not rows.n_rows:
            have = "has a header and no rows" if len(self.files) == 1 else "have headers and no rows"
            shown = shown_files(self.files)
            raise NoRows(f"{shown} {have}. Add some, or check whether the first line is a header.")
        entries, master = merged([worker.dictionary for worker in workers])
        values, final = self._values(list(spellings.values()), trim, workers, master)
        luts = [worker.final_codes(final[of_worker]) for worker, of_worker in zip(workers, entries, strict=True)]

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
        files = [FileRange(path, header.size, header.end, header.stamp) for path, header in pairs]
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
                size += (end - header.size) * (_COMPRESSION if suffix_of(file)[1] else 1)
        return max(1, min(n_jobs, -(-size // _BYTES_PER_THREAD)))

    # -- errors ------------------------------------------------------------------------------------------------

    def _check(self, workers: Sequence[Worker]) -> None:
        """Raise for the first malformed row of the files, if there is one."""
        faults = [worker.fault for worker in workers if worker.fault is not None]
        if not faults:
            return
        fault = min(faults, key=lambda fault: fault.chunk)
        path, line = self._place(workers, (fault.chunk << 32) | fault.line)
        raise TableError(f"{str(path)!r}, line {line}: ", *self._reason(fault))

    def _reason(self, fault: Fault) -> tuple[Part, ...]:
        """What is wrong, as the parts of a message."""
        dialect = self.headers[0].dialect
        if fault.kind == tokens.RAGGED:
            fields = "1 field" if fault.fields == 1 else f"{fault.fields} fields"
            return (
                f"{fields} where {len(self.names)} are expected. Fix the line, or pass the right ",
                Given("separator"),
                ".",
            )
        if fault.kind == tokens.LONE_CR:
            return (LONE_CR,)
        if fault.kind == tokens.UNCLOSED:
            return ("a quote is not closed. Close it, or double quotes inside values.",)
        remedy = "Escape it with a backslash." if dialect.padded else "Double the quotes inside a quoted value."
        return (f"{dialect.separator!r} expected after a closing quote. {remedy}",)

    def _place(self, workers: Sequence[Worker], first: int) -> tuple[Path, int]:
        """File and line of a position: the chunk in the upper 32 bits, its line in the lower."""
        chunk = first >> 32
        line = first & 0xFFFFFFFF
        files_and_lines = {number: place for worker in workers for number, place in worker.lines.items()}
        file, _ = files_and_lines[chunk]
        before = sum(n for number, (other, n) in files_and_lines.items() if other == file and number < chunk)
        return self.files[file], self.headers[file].lines + before + line

    # -- values ------------------------------------------------------------------------------------------------

    def _values(
        self, spellings: Sequence[MissingSpellings], trim: bool, workers: Sequence[Worker], master: Dictionary
    ) -> tuple[list[Column], Index]:
        """Values of every column, in the order of their first appearance, and the codes of all entries.

        `spellings` says for each column what means missing.
        """
        owners = master.columns
        order = np.lexsort((master.entries["first"][: master.n_entries], owners))
        bounds = np.searchsorted(owners[order], np.arange(len(spellings) + 1))
        final = np.empty(master.n_entries, np.uint32)
        columns = []
        texts = self._texts(workers, master)
        for na, (low, high) in zip(spellings, pairwise(bounds), strict=True):
            of_column = order[low:high]
            codes = np.arange(len(of_column), dtype=np.uint32)
            column = encode_distinct(codes, texts(of_column), na=na, trim=trim)
            final[of_column] = column.codes
            columns.append(column)
        return columns, final

    def _texts(
        self, workers: Sequence[Worker], master: Dictionary
    ) -> Callable[[NDArray[np.int64]], Sequence[str | None]]:
        """Make a function that decodes entries."""
        entries = master.entries
        data = master.arena[: master.n_bytes].tobytes()
        is_ascii = data.isascii()
        text = data.decode("ascii") if is_ascii else ""
        missing = self.headers[0].dialect.missing
        encoding = self.encoding if built_upon_ascii(self.encoding) else "utf-8"

        def decode(value: bytes, first: int) -> str:
            try:
                return value.decode(encoding)
            except UnicodeDecodeError:
                return decoded(value, *self._place(workers, first), encoding)

        def texts(chosen: NDArray[np.int64]) -> Sequence[str | None]:
            starts = entries["place"][chosen]
            metas = entries["meta"][chosen]
            bounds = zip(starts.tolist(), (starts + lengths_of(metas)).tolist(), strict=True)
            if is_ascii:
                values = [text[start:end] for start, end in bounds]
            else:
                firsts = entries["first"][chosen].tolist()
                values = [decode(data[start:end], first) for (start, end), first in zip(bounds, firsts, strict=True)]
            if not missing:
                return values
            pairs = zip(values, (metas & META_QUOTED).tolist(), strict=True)
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
            raise TableError(
                f"{str(file)!r} has a different separator from {str(files[0])!r}. Pass ", Given("separator"), "."
            )
    missing = max((header.dialect.missing for header in headers), key=len)
    headers[0] = replace(first, dialect=replace(first.dialect, missing=missing))
    if len(first.names) > MAX_COLUMNS:
        raise TableError(
            f"{str(files[0])!r} has {len(first.names):,} columns, and files may have {MAX_COLUMNS:,}. "
            "Check its separator, divide its columns, or pass the table as an array."
        )
    remedy: tuple[Part, ...] = ("Rename them, or pass ", Given("header", False), " if the first line is a row.")
    if first.dialect.padded:  # ARFF declares its names
        remedy = ("Rename them.",)
    check_names(first.names, repr(str(files[0])), *remedy)
    return TextFile(tuple(files), tuple(headers), options.encoding)
