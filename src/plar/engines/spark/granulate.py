"""From rows on a cluster to pieces of granules, without a row on the driver.

Every partition granulates its own rows as the local engine would, with dictionaries of its own; the dictionaries are
made one, and equal granules meet in one piece. A dictionary too long for the driver stays on the cluster: its values
are dealt to the tasks, each of which numbers its share.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from plar.coding.assemble import BadWeight
from plar.coding.fingerprint import Fingerprint, add_fingerprints
from plar.engines.spark.pieces import Coding, Hashes, Piece, dealt, hashes, joined_pieces, merged, pack
from plar.engines.spark.session import explained, quiet
from plar.errors import NoRows, TableError
from plar.granules import Granules
from plar.roles import Roles
from plar.tables.frames import FrameRows

if TYPE_CHECKING:
    from pyspark import RDD

__all__ = ["exchanged", "granulated_parcels", "in_one_coding", "in_pieces", "itself", "together"]

#: up to this many columns Spark itself groups the rows first: fewer reach Python
_NARROW = 100
_COUNT = "\0count"
#: a task granulates this many cells at a time
_CELLS = 1 << 24
#: a partition hands its granules on in parcels of at most about this many cells
_PARCEL = 1 << 25
#: a dictionary of more values in one partition, or in all together, stays on the cluster
LONG = 1 << 16
LONG_IN_ALL = 1 << 18


class Facts(NamedTuple):
    """What the driver learns of one parcel."""

    n_objects: int
    n_missing: dict[str, int]
    fingerprint: Fingerprint
    #: the values of every condition and, last, of the decision; a number where they are too many
    values: list[Sequence[Any] | int]


def itself(bucket: int) -> int:
    """Send a record to the partition that its key names."""
    return bucket


def granulated_parcels(frame: Any, roles: Roles, *, text: bool) -> RDD[Granules]:
    """Granulate the rows of every partition of a Spark DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its columns are `roles.used`, then the weights where there are some.
    roles : Roles
    text : bool
        Values compare as written, blanks around them trimmed.
    """
    names = [*roles.used, *([roles.weights] if roles.weights is not None else [])]
    numbered = frame.toDF(*(f"c{j}" for j in range(len(names))))
    if roles.weights is None and len(names) <= _NARROW:
        numbered = numbered.groupBy(*numbered.columns).count()
        roles = replace(roles, weights=_COUNT)
        names.append(_COUNT)
    task = partial(_granulate_batches, roles=roles, names=names, text=text)
    with explained("read the table"), quiet():
        parcels = numbered.mapInArrow(task, "granules binary").rdd
    made: RDD[Granules] = parcels.map(_unpack).persist(_storage())
    return made


def in_one_coding(
    parcels: RDD[Granules], missing: str, partitions: int
) -> tuple[RDD[Piece], Coding, dict[str, int], Fingerprint]:
    """Make the parcels' dictionaries one, and let equal granules meet, in so many pieces.

    Also counts what is missing, and takes the fingerprint.
    """
    with explained("read the table"):
        facts = parcels.map(partial(_facts, long=LONG)).collect()
    lacking: dict[str, int] = {}
    for fact in facts:
        for name, n in fact.n_missing.items():
            lacking[name] = lacking.get(name, 0) + n
    if lacking and missing == "error":
        some = ", ".join(f"{name!r} ({n})" for name, n in list(lacking.items())[:10])
        raise TableError(f"Missing values in {some}. Pass missing='value' or missing='drop', or clean the table.")
    if not facts:
        raise NoRows("No row is left: the table is empty, or all rows lack a value or have the weight 0.")
    books = _one_dictionary_each([fact.values for fact in facts])
    long = [j for j, book in enumerate(books) if book is None]
    numbered = _numbered_on_cluster(parcels, long, partitions) if long else None
    cardinalities = [len(book) if book is not None else 0 for book in books]
    shared = parcels.context.broadcast(books)
    if numbered is None:
        dealt_out = parcels.flatMap(partial(_deal_parcel, books=shared, cardinalities=cardinalities, n=partitions))
    else:
        answers, sizes = numbered
        for j, size in sizes.items():
            cardinalities[j] = size
        joined = parcels.glom().zip(answers)
        dealt_out = joined.flatMap(partial(_deal_parcels, books=shared, cardinalities=cardinalities, n=partitions))
    coding = Coding(tuple(cardinalities[:-1]), cardinalities[-1])
    fingerprint = add_fingerprints(fact.fingerprint for fact in facts)
    return exchanged(dealt_out, coding, partitions), coding, lacking, fingerprint


def in_pieces(granules: Granules, context: Any, partitions: int) -> tuple[RDD[Piece], Coding]:
    """Ship granules of this machine out."""
    coding = Coding(granules.cardinalities, granules.n_classes)
    whole = pack(granules.columns, granules.classes, granules.counts, coding)
    records = [(bucket, whole.rows(rows)) for bucket, rows in dealt(hashes(whole, coding), partitions)]
    # exchanged, though each is whole already: else every later task would carry its part of the data along
    sent = context.parallelize(records, max(1, len(records))).partitionBy(partitions, itself)
    return sent.mapPartitions(partial(together, coding=coding)), coding


def exchanged(records: RDD[tuple[int, Piece]], coding: Coding, partitions: int) -> RDD[Piece]:
    """Bring the granules of every bucket together, one piece each."""
    return records.partitionBy(partitions, itself).mapPartitions(partial(_meet, coding=coding))


def _storage() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.MEMORY_AND_DISK


# -- tasks -------------------------------------------------------------------------------------------------


def _granulate_batches(batches: Iterable[Any], roles: Roles, names: list[str], text: bool) -> Iterator[Any]:
    """Turn the rows of a partition into parcels of granules, pickled."""
    import pyarrow as pa

    for granules in _parcels(batches, roles, names, text):
        yield pa.RecordBatch.from_pydict({"granules": [pickle.dumps(granules, 5)]})


def _parcels(batches: Iterable[Any], roles: Roles, names: list[str], text: bool) -> Iterator[Granules]:
    ready: Granules | None = None
    fresh: list[Granules] = []
    for chunk in _chunks(batches, len(names)):
        granules = _granulate_chunk(chunk, roles, names, text)
        if granules is None:
            continue
        fresh.append(granules)
        # merged when there is as much new as old, so that every granule is merged a few times only
        if ready is None or sum(map(len, fresh)) >= len(ready):
            ready = reduce(Granules.merge, fresh if ready is None else [ready, *fresh])
            fresh = []
        if len(ready) * len(names) >= _PARCEL:
            yield ready
            ready = None
    if ready is not None or fresh:
        yield reduce(Granules.merge, fresh if ready is None else [ready, *fresh])


def _chunks(batches: Iterable[Any], width: int) -> Iterator[list[Any]]:
    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows * width >= _CELLS:
            yield held
            held, rows = [], 0
    if rows:
        yield held


def _granulate_chunk(batches: list[Any], roles: Roles, names: list[str], text: bool) -> Granules | None:
    import polars as pl
    import pyarrow as pa

    frame = pl.DataFrame(pa.Table.from_batches(batches).rename_columns(names))
    policy = "value" if roles.missing == "error" else roles.missing  # the driver counts them all, then says so
    wanted = replace(roles, missing=policy)
    try:
        return FrameRows(frame, tuple(names), text=text).granulate(wanted)
    except NoRows:
        return None
    except BadWeight as error:
        raise BadWeight(error.value, f"column {roles.weights!r}") from None


def _unpack(row: Any) -> Granules:
    granules: Granules = pickle.loads(row[0])  # made by a task of this very run
    return granules


def _facts(granules: Granules, long: int) -> Facts:
    dictionaries = _dictionaries(granules)
    values: list[Sequence[Any] | int] = [d if len(d) <= long else len(d) for d in dictionaries]
    # taken here and always: only here are the values known, and beside the coding of them it costs little
    return Facts(granules.n_objects, granules.n_missing, granules.fingerprint(), values)


def _dictionaries(granules: Granules) -> list[Sequence[Any]]:
    return [*granules.dictionaries, list(zip(*granules.decision_values, strict=True))]


def _deal_parcel(granules: Granules, books: Any, cardinalities: list[int], n: int) -> Iterator[tuple[int, Piece]]:
    return _dealt(granules, books.value, cardinalities, n)


def _deal_parcels(
    joined: tuple[list[Granules], dict[int, dict[Any, int]]], books: Any, cardinalities: list[int], n: int
) -> Iterator[tuple[int, Piece]]:
    parcels, answers = joined
    complete = [answers[j] if book is None else book for j, book in enumerate(books.value)]
    for granules in parcels:
        yield from _dealt(granules, complete, cardinalities, n)


def _dealt(
    granules: Granules, books: Sequence[dict[Any, int]], cardinalities: list[int], n: int
) -> Iterator[tuple[int, Piece]]:
    """Give a parcel the codes that hold everywhere, and deal its granules out by their conditions."""
    coding = Coding(tuple(cardinalities[:-1]), cardinalities[-1])
    codes = zip((*granules.columns, granules.classes), _dictionaries(granules), books, strict=True)
    *columns, classes = (_recoded(*column) for column in codes)
    whole = pack(columns, classes, granules.counts, coding)
    for bucket, rows in dealt(hashes(whole, coding), n):
        yield bucket, whole.rows(rows)


def _recoded(codes: Any, values: Sequence[Any], book: dict[Any, int]) -> Any:
    try:
        return np.fromiter((book[value] for value in values), np.uint32, len(values))[codes]
    except KeyError:
        raise TableError(
            "The DataFrame gave other rows when it was read again. Cache it, or write it to a file, first."
        ) from None


def together(records: Iterable[tuple[int, Piece]], coding: Coding) -> Iterator[Piece]:
    """All pieces of a bucket as one."""
    yield joined_pieces([piece for _, piece in records], coding)


def _meet(records: Iterable[tuple[int, Piece]], coding: Coding) -> Iterator[Piece]:
    yield merged(joined_pieces([piece for _, piece in records], coding), coding)


# -- dictionaries ------------------------------------------------------------------------------------------


def _one_dictionary_each(parts: list[list[Sequence[Any] | int]]) -> list[dict[Any, int] | None]:
    """Make one dictionary of each column's, None for those that are too long for the driver."""
    books: list[dict[Any, int] | None] = []
    for column in zip(*parts, strict=True):
        book: dict[Any, int] | None = {}
        for values in column:
            if isinstance(values, int) or book is None or len(book) > LONG_IN_ALL:
                book = None
                break
            for value in values:
                book.setdefault(value, len(book))
        books.append(book)
    return books


def _numbered_on_cluster(parcels: RDD[Granules], long: list[int], n: int) -> tuple[RDD[Any], dict[int, int]]:
    """Number the values of long dictionaries: for every partition its own values' codes, and how many there are."""
    asked = parcels.mapPartitionsWithIndex(partial(_ask, long=long, n=n))
    shares = asked.partitionBy(n, itself).mapPartitions(_share).persist(_storage())
    with explained("number the values"):
        sizes = shares.map(_share_sizes).collect()
    # the values of share b are numbered from where those of share b - 1 end
    offsets = {j: [0, *accumulate(size.get(j, 0) for size in sizes)] for j in long}
    answers = shares.mapPartitionsWithIndex(partial(_answer, offsets=offsets))
    count = parcels.getNumPartitions()
    return answers.partitionBy(count, itself).mapPartitions(_answered), {j: offsets[j][-1] for j in long}


def _ask(partition: int, parcels: Iterable[Granules], long: list[int], n: int) -> Iterator[tuple[int, Any]]:
    for granules in parcels:
        dictionaries = _dictionaries(granules)
        for j in long:
            values = dictionaries[j]
            numbers: Hashes = np.fromiter((crc32(repr(v).encode()) for v in values), np.uint64, len(values))
            for bucket, rows in dealt(numbers, n):
                yield bucket, (partition, j, [values[i] for i in rows.tolist()])


def _share(records: Iterable[tuple[int, Any]]) -> Iterator[list[Any]]:
    yield [question for _, question in records]


def _share_sizes(share: list[Any]) -> dict[int, int]:
    return {j: len(book) for j, book in _books_of(share).items()}


def _books_of(share: list[Any]) -> dict[int, dict[Any, int]]:
    # in an order that the values alone decide, so that a lost share is numbered as before
    found: dict[int, set[Any]] = {}
    for _, j, values in share:
        found.setdefault(j, set()).update(values)
    return {j: {value: code for code, value in enumerate(sorted(values, key=repr))} for j, values in found.items()}


def _answer(bucket: int, shares: Iterable[list[Any]], offsets: dict[int, list[int]]) -> Iterator[tuple[int, Any]]:
    for share in shares:
        books = _books_of(share)
        for partition, j, values in share:
            yield partition, (j, {value: offsets[j][bucket] + books[j][value] for value in values})


def _answered(records: Iterable[tuple[int, Any]]) -> Iterator[dict[int, dict[Any, int]]]:
    books: dict[int, dict[Any, int]] = {}
    for _, (j, book) in records:
        books.setdefault(j, {}).update(book)
    yield books
