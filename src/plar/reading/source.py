"""An opened file: its rows, lazily, and what is wrong with them when they cannot be read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plar.coding.series import named
from plar.coding.threads import check_threads
from plar.errors import NoRows, TableError, reason_of
from plar.limits import check_memory
from plar.reading.text import TextFile, audit, inspect, text_lines
from plar.reading.watching import watched

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Misread", "Source"]

#: cells in a batch, and in one under a memory limit
_BATCH_CELLS, _FEW_CELLS = 1 << 24, 1 << 20


class Misread(TableError):
    """A fast reading does not fit the file; a careful one may."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows of one file or several, as polars reads them.

    Parameters
    ----------
    frame : polars.LazyFrame
        Every column, in the order of the file.
    names : tuple of str
    files : tuple of Path
    text : bool
        Values compare as written.
    texts : tuple of TextFile
        Where polars splits rows itself, it fills short ones up in silence; `audit` looks at the lines then.
    ragged : str or None
        A further column of `frame` that is true in rows of a wrong length; `locate` finds the first.
    decision : tuple of str
        What the file itself says the decision is.
    na : tuple of str
        How the format spells a missing value.
    booleans : mapping
        Columns read as booleans, with what false and true are written as.
    doubt : function or None
        A look at the files that tells whether this fast reading is wrong where its values do not show it.
    suspect : str
        Characters that no value has if this fast reading is right.
    careful : Source or None
        A slower reading that takes what this one cannot.
    """

    frame: pl.LazyFrame
    names: tuple[str, ...]
    files: tuple[Path, ...]
    text: bool
    texts: tuple[TextFile, ...] = ()
    ragged: str | None = None
    locate: Callable[[], TableError] | None = None
    decision: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    booleans: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    doubt: Callable[[], bool] | None = None
    suspect: str = ""
    careful: Source | None = None

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query on the frame; a file that cannot be read is a TableError with the line at fault."""
        import polars as pl

        check_threads()
        try:
            return watched(lambda: query.collect(engine="streaming"))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.explain(error) from None

    def batches(self, columns: Sequence[pl.Expr], width: int) -> Iterator[pl.DataFrame]:
        """Read these columns, of which each row has about so many, some rows at a time."""
        import polars as pl

        limited = check_memory("Reading the table")
        size = max(1000, (_FEW_CELLS if limited else _BATCH_CELLS) // width)
        try:
            batches = iter(self.frame.select(columns).collect_batches(chunk_size=size))
            while (batch := watched(partial(next, batches, None))) is not None:
                if len(batch):
                    yield batch
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self.explain(error) from None

    def explain(self, error: BaseException) -> TableError:
        """Find the line that made polars fail."""
        if self.careful is not None:
            return Misread(str(error))
        try:
            for text in self.texts:
                inspect(text, quotes=True)
            for file in self.files if self.text else ():
                deque(text_lines(file), maxlen=0)
        except TableError as fault:
            return fault
        reason = reason_of(error)
        if not self.files:
            return TableError(f"Cannot read the table: {reason}. Check the query that makes it.")
        if self.texts:  # polars' own words would not help: they name options that plar does not have
            return TableError(f"Cannot read {self.shown} as a table. Check its quotes and line ends.")
        return TableError(f"Cannot read {self.shown}: {reason}. The file is damaged or not what its name says.")

    @property
    def shown(self) -> str:
        """Names of the files, for messages."""
        return ", ".join(repr(str(f)) for f in self.files[:3]) + (", …" if len(self.files) > 3 else "")

    def no_rows(self) -> NoRows:
        """Say that there is nothing to read."""
        if not self.files:
            return NoRows("The table has no rows. Add some.")
        have = "has a header and no rows" if len(self.files) == 1 else "have headers and no rows"
        return NoRows(f"{self.shown} {have}. Add some, or check whether the first line is a header.")

    def find_ragged(self) -> TableError:
        """Name the line of a row that the column `ragged` marks."""
        return self.locate() if self.locate else self.explain(TableError("rows differ in length"))

    def audit(self) -> int:
        """Check the length of every row, and return how many blank lines there are."""
        try:
            return sum(audit(text) for text in self.texts)
        except TableError as error:
            raise self.explain(error) if self.careful is not None else error from None

    def values(self, names: Sequence[str]) -> pl.LazyFrame:
        """Columns with their values as written, without the rows of blank lines."""
        import polars as pl

        if self.doubt is not None and self.doubt():
            raise Misread("values are spelled in several ways")
        if self.ragged is not None and self.collect(self.frame.select(pl.col(self.ragged).any())).item():
            raise self.find_ragged()
        frame = self.frame
        if self.texts:
            last = named(self.names[-1])
            gap = last.is_null() | pl.all_horizontal(named(*self.names).is_null())
            odd, wrong = self.collect(frame.select(gap.any(), self._misread(names).alias("misread"))).row(0)
            if wrong:
                raise Misread("the values hold quotes or comments")
            blank = self.audit() if odd else 0
            if blank:
                frame = frame.filter(~self._lacking(blank))
        return frame.select(self.written(name) for name in names)

    def _lacking(self, blank: int) -> pl.Expr:
        """Rows of blank lines; those that hold nothing but separators cannot be told from them."""
        import polars as pl

        texts = [named(name).cast(pl.String).str.strip_chars() for name in self.names]
        lacking = pl.all_horizontal(text.is_null() | (text == "") for text in texts)
        if self.collect(self.frame.select(lacking.sum())).item() != blank:
            raise TableError(f"{self.shown}: blank lines ({blank}) beside rows without values. Remove the blank lines.")
        return lacking

    def _misread(self, names: Sequence[str]) -> pl.Expr:
        """Whether some value shows that the fast reading is wrong."""
        import polars as pl

        schema = self.frame.collect_schema()
        written = [name for name in names if schema[name] == pl.String] if self.suspect else []
        if not written:
            return pl.lit(False)
        return pl.any_horizontal(named(*written).str.contains(f"[{self.suspect}]").any())

    def written(self, name: str) -> pl.Expr:
        """Return one column with its values as written."""
        import polars as pl

        if not self.text:
            return named(name)
        if name in self.booleans:
            no, yes = self.booleans[name]
            column = named(name).replace_strict({False: no, True: yes}, return_dtype=pl.String)
        else:
            column = named(name).cast(pl.String)
        return column.replace(list(self.na), None) if self.na else column
