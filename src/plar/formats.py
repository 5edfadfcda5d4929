"""Which format a file has: its suffix tells, here and nowhere else."""

from __future__ import annotations

from pathlib import Path

from plar.errors import TableError

#: formats by suffix. Text is one row a line, also as the UCI repository names it; .dat is KEEL's, or text, which its
#: first line tells; .json is one array of objects, or one object a line
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".data", ".all", ".trn", ".tst", ".train", ".test"), "text"),
    **{".dat": "dat", ".arff": "arff", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "json", ".xlsx": "excel"},
    **{".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"},
}
#: those that plar writes too
WRITTEN = (".csv", ".tsv", ".txt", ".ndjson", ".jsonl", ".parquet", ".arrow", ".feather", ".ipc")
_PACKED = (".gz", ".zst")
#: formats that may be packed so
_PACKABLE = ("text", "dat", "arff", "ndjson")


def suffix_of(path: Path) -> tuple[str, str]:
    """Suffix that tells the format, and the one of compression behind it: .csv and .gz."""
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in _PACKED else (last, "")


def known_format(path: Path) -> str | None:
    """Name of the format of a file; None where its suffix tells none.

    >>> known_format(Path("t.csv.zst")), known_format(Path("t.parquet.gz")), known_format(Path("breast.data-1"))
    ('text', None, 'text')
    """
    suffix, packed = suffix_of(path)
    found = "text" if suffix.startswith(".data") else SUFFIXES.get(suffix)
    return found if found in _PACKABLE or not packed else None


def format_of(path: Path, *, as_text: bool = False) -> str:
    """Name of the format of a file to read; what has no known suffix may be taken `as_text`."""
    found = known_format(path)
    if found is None and as_text and suffix_of(path)[0] not in SUFFIXES:
        return "text"
    if found is None:
        raise TableError(
            f"Unknown format {''.join(suffix_of(path)) or path.name!r} of {str(path)!r}. Known: {' '.join(SUFFIXES)}, "
            "text also .gz .zst. Pass separator= to read it as text."
        )
    return found


def output_format(path: Path) -> str:
    """Name of the format of a file to write."""
    found = known_format(path)
    if found is None or suffix_of(path)[0] not in WRITTEN:
        known = " ".join(WRITTEN)
        raise TableError(f"Unknown output format of {str(path)!r}. Choose one of: {known} (text also .gz .zst).")
    return found
