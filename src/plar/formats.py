"""Which format a file has: its suffix tells, here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plar.errors import TableError

__all__ = ["FORMATS", "Format", "format_of", "known_format", "output_format", "suffix_of"]

_PACKED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Format:
    """A format, the suffixes of its files, those that plar writes too, and whether .gz or .zst may follow."""

    name: str
    suffixes: tuple[str, ...]
    written: tuple[str, ...] = ()
    packed: bool = False


#: text is one row a line, also as the UCI repository names it; .dat is KEEL's, or text, which its first line tells;
#: .json is one array of objects, or one object a line
FORMATS = (
    Format(
        "text",
        (".csv", ".tsv", ".tab", ".txt", ".data", ".all", ".trn", ".tst", ".train", ".test"),
        (".csv", ".tsv", ".txt"),
        packed=True,
    ),
    Format("dat", (".dat",), packed=True),
    Format("arff", (".arff",), packed=True),
    Format("ndjson", (".ndjson", ".jsonl"), (".ndjson", ".jsonl"), packed=True),
    Format("json", (".json",)),
    Format("excel", (".xlsx",)),
    Format("parquet", (".parquet",), (".parquet",)),
    Format("ipc", (".arrow", ".feather", ".ipc"), (".arrow", ".feather", ".ipc")),
)


def suffix_of(path: Path) -> tuple[str, str]:
    """Suffix that tells the format, and the one of compression behind it.

    >>> suffix_of(Path("Census.CSV.gz")), suffix_of(Path("t.jsonl.parquet"))
    (('.csv', '.gz'), ('.parquet', ''))
    """
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in _PACKED else (last, "")


def known_format(path: Path) -> str | None:
    """Name of the format of a file; None where its suffix tells none.

    >>> known_format(Path("t.csv.zst")), known_format(Path("t.parquet.gz")), known_format(Path("breast.data-1"))
    ('text', None, 'text')
    """
    suffix, packed = suffix_of(path)
    if suffix.startswith(".data"):
        return "text"
    found = next((known for known in FORMATS if suffix in known.suffixes), None)
    return None if found is None or (packed and not found.packed) else found.name


def format_of(path: Path, *, as_text: bool = False) -> str:
    """Name of the format of a file to read; what has no known suffix may be taken `as_text`."""
    found = known_format(path)
    if found is None and as_text and not any(suffix_of(path)[0] in known.suffixes for known in FORMATS):
        return "text"
    if found is None:
        known = " ".join(suffix for kind in FORMATS for suffix in kind.suffixes)
        raise TableError(
            f"Unknown format {''.join(suffix_of(path)) or path.name!r} of {str(path)!r}. Known: {known}, text also "
            ".gz .zst. Pass separator= to read it as text."
        )
    return found


def output_format(path: Path) -> str:
    """Name of the format of a file to write."""
    suffix, packed = suffix_of(path)
    for known in FORMATS:
        if suffix in known.written and (known.packed or not packed):
            return known.name
    shown = " ".join(suffix for known in FORMATS for suffix in known.written)
    raise TableError(f"Unknown output format of {str(path)!r}. Choose one of: {shown} (text also .gz .zst).")
