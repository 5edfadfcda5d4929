"""From rows on a cluster to pieces of granules, without a row on the driver.

Every partition granulates its own rows as the local engine would, in parcels with dictionaries of their own; the
dictionaries are made one, and equal granules meet in one piece. A dictionary too long for the driver stays on the
cluster: its values are dealt to the tasks, each of which numbers its share.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from plar.bin_rules import Cuts
from plar.bins import NoNumber, cut_columns, cut_decision, warn_left
from plar.coding.assemble import BadWeight
from plar.coding.codes import combine
from plar.coding.fingerprint import Fingerprint, add_fingerprints
from plar.coding.series import encode_series
from plar.engines.spark.pieces import Coding, Hashes, Piece, dealt, hashes, joined_pieces, merged, pack
from plar.engines.spark.session import explained, quiet
from plar.errors import NoRows, TableError
from plar.granules import Granules
from plar.roles import Roles
from plar.tables.frames import FrameRows
from plar.tables.spark import bin_places, number_of, present

#: up to this many columns Spark itself groups the rows first: fewer reach Python
_NARROW = 100
_COUNT = "\0count"
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_WEIGHT = "w"
#: a task granulates this many cells at a time, which make a parcel
_CELLS = 1 << 24
#: a dictionary of more values in one partition, or in all together, stays on the cluster
LONG = 1 << 16
LONG_IN_ALL = 1 << 18


def itself(bucket: int) -> int:
    """Send a record to the partition that its key names."""
    return bucket


def bin_rows(frame: DataFrame, roles: Roles, *, text: bool) -> tuple[DataFrame, dict[str, Cuts]]:
    """Put bin numbers in place of numbers in a frame whose columns are `roles.read`, and tell where each is cut.

    The driver holds the distinct numbers of one column at a time, by decision where that matters. With `text`, values
    compare as written, blanks around them trimmed.
    """
    assert roles.bins is not None
    kinds = [f.dataType.typeName() for f in frame.schema.fields]
    counted = _counted(frame, roles, kinds, text)
    cuts: dict[str, Cuts] = {}
    left: dict[str, str] = {}
    for j, name in enumerate(roles.conditions):
        rule = roles.bins.rule(name)
        if rule is None:
            continue
        if kinds[j] not in _NUMBERS and not (text and kinds[j] == "string"):
            if name in roles.bins.columns:
                with explained("read the table"):
                    some = counted.filter(counted[f"c{j}"].isNotNull()).head()
                if some is not None:
                    raise NoNumber(some[j], name)
        elif rule.given and kinds[j] in _NUMBERS:
            cuts[name] = rule.cuts
        else:
            by_class = len(roles.decision) if rule.method == "mdlp" else 0
            groups = _value_counts(counted, [j, *range(len(roles.conditions), len(roles.conditions) + by_class)])
            column, *decision = (encode_series(groups[key], roles.na, text=text) for key in groups.columns[:-1])
            counts = groups[_WEIGHT].cast(int).to_numpy().astype(np.int64)
            classes = combine(decision)[0] if decision else np.zeros(len(counts), np.uint32)
            decimal = roles.decimal if text else None
            list(cut_columns([(name, column)], roles.bins, classes, counts, cuts, left=left, decimal=decimal))
    warn_left(left)
    places = {j: cuts[name] for j, name in enumerate(roles.conditions) if name in cuts}
    return bin_places(frame, places, text=text, na=roles.na, decimal=roles.decimal), cuts


def bin_decision(frame: DataFrame, roles: Roles, *, text: bool) -> tuple[DataFrame, dict[str, Cuts]]:
    """Put bin numbers in place of a decision of numbers, as `bin_rows` does for conditions."""
    assert roles.decision_bins is not None
    counted = _counted(frame, roles, [f.dataType.typeName() for f in frame.schema.fields], text)
    cuts: dict[str, Cuts] = {}
    for j, name in enumerate(roles.decision, len(roles.conditions)):
        groups = _value_counts(counted, [j])
        column = encode_series(groups[groups.columns[0]], roles.na, text=text)
        counts = groups[_WEIGHT].cast(int).to_numpy().astype(np.int64)
        _, cuts[name] = cut_decision(column, name, roles.decision_bins, counts, decimal=roles.decimal if text else None)
    places = {j: cuts[name] for j, name in enumerate(roles.decision, len(roles.conditions))}
    return bin_places(frame, places, text=text, na=roles.na, decimal=roles.decimal), cuts


def _counted(frame: DataFrame, roles: Roles, kinds: list[str], text: bool) -> DataFrame:
    """Rows that count, columns c0, c1, …, and how much each does."""
    numbered = frame.toDF(*(f"c{j}" for j in range(len(kinds))))
    if roles.missing == "drop":
        for j in range(len(roles.used)):
            numbered = numbered.filter(present(numbered[f"c{j}"], kinds[j], text=text, na=roles.na).isNotNull())
    if roles.weights is None:
        return numbered.withColumn(_WEIGHT, sql.lit(1))
    last = f"c{len(kinds) - 1}"
    # what is no weight is found where the rows are granulated
    weight = number_of(numbered[last], kinds[-1], text=True, na=(), decimal=".")
    return numbered.withColumn(_WEIGHT, sql.when(weight == sql.floor(weight), weight)).filter(f"{_WEIGHT} > 0")


def _value_counts(counted: DataFrame, places: Sequence[int]) -> pl.DataFrame:
    """How often the values of some columns occur together."""
    with explained("count the numbers"):
        found: Any = counted.groupBy(*(f"c{j}" for j in places)).agg(sql.sum(_WEIGHT).alias(_WEIGHT))
        return pl.DataFrame(found.toArrow() if hasattr(found, "toArrow") else found.toPandas())


def granulated_parcels(frame: Any, roles: Roles, *, text: bool) -> RDD[Granules]:
    """Granulate the rows of every partition of a Spark DataFrame whose columns are `roles.read`.

    With `text`, values compare as written, blanks around them trimmed.
    """
    names = list(roles.read)
    numbered = frame.toDF(*(f"c{j}" for j in range(len(names))))
    if roles.weights is None and len(names) <= _NARROW:
        numbered = numbered.groupBy(*numbered.columns).count()
        roles = replace(roles, weights=_COUNT)
        names.append(_COUNT)
    task = partial(_granulate_batches, roles=roles, names=names, text=text)
    with explained("read the table"), quiet():
        parcels = numbered.mapInArrow(task, "granules binary").rdd
    unpacked: RDD[Granules] = parcels.map(lambda row: pickle.loads(row[0]))  # made by a task of this very run
    return unpacked.persist(StorageLevel.MEMORY_AND_DISK)


def in_one_coding(
    parcels: RDD[Granules], roles: Roles, partitions: int
) -> tuple[RDD[Piece], Coding, dict[str, int], Fingerprint, tuple[Sequence[Any] | None, ...]]:
    """Make the parcels' dictionaries one, and let equal granules meet, in so many pieces.

    Also counts what is missing, takes the fingerprint, and gives the dictionaries that are not too long.
    """
    with explained("read the table"):
        facts = parcels.map(partial(_facts, long=LONG)).collect()
    if not facts:
        raise NoRows("No row is left: the table is empty, or all rows lack a value or have the weight 0.")
    n_missing, fingerprints, values = zip(*facts, strict=True)
    found = sum(map(Counter, n_missing), Counter[str]())
    lacking = {name: found[name] for name in roles.used if name in found}
    if lacking and roles.missing == "error":
        some = ", ".join(f"{name!r} ({n})" for name, n in list(lacking.items())[:10])
        raise TableError(f"Missing values in {some}. Pass missing='value' or missing='drop', or clean the table.")
    books = [_one_dictionary(column) for column in zip(*values, strict=True)]
    cardinalities = [len(book) if book is not None else 0 for book in books]
    joined: RDD[Any] = parcels.glom().map(lambda held: (held, []))
    if long := [j for j, book in enumerate(books) if book is None]:
        answers, sizes = _numbered_on_cluster(parcels, long, partitions)
        cardinalities = [sizes.get(j, n) for j, n in enumerate(cardinalities)]
        joined = parcels.glom().zip(answers)
    coding = Coding(tuple(cardinalities[:-1]), cardinalities[-1])
    shared = parcels.context.broadcast(books)
    records = joined.flatMap(partial(_deal_parcels, books=shared, coding=coding, n=partitions))
    known = tuple(None if book is None else list(book) for book in books[:-1])
    return exchanged(records, coding, partitions), coding, lacking, add_fingerprints(fingerprints), known


def in_pieces(granules: Granules, context: Any, partitions: int) -> tuple[RDD[Piece], Coding]:
    """Ship granules of this machine out."""
    coding = Coding(granules.cardinalities, granules.n_classes)
    whole = pack(granules.columns, granules.classes, granules.counts, coding)
    records = list(dealt_out(whole, coding, partitions))
    # exchanged, though each is whole already: else every later task would carry its part of the data along
    return gathered(context.parallelize(records, max(1, len(records))), coding, partitions), coding


def gathered(records: RDD[tuple[int, Piece]], coding: Coding, partitions: int) -> RDD[Piece]:
    """Bring the granules of every bucket together, one piece each."""
    found = records.partitionBy(partitions, itself).glom()
    return found.map(lambda records: joined_pieces([piece for _, piece in records], coding))


def exchanged(records: RDD[tuple[int, Piece]], coding: Coding, partitions: int) -> RDD[Piece]:
    """Bring the granules of every bucket together, and add up equal ones."""
    return gathered(records, coding, partitions).map(lambda piece: merged(piece, coding))


# -- tasks -------------------------------------------------------------------------------------------------


def _granulate_batches(batches: Iterable[Any], roles: Roles, names: list[str], text: bool) -> Iterator[Any]:
    """Turn the rows of a partition into parcels of granules, pickled."""
    if roles.missing == "error":  # the driver counts them all, then says so
        roles = replace(roles, missing="value")
    for chunk in _chunks(batches, len(names)):
        frame = pl.DataFrame(pa.Table.from_batches(chunk).rename_columns(names))
        try:
            granules = FrameRows(frame, tuple(names), text=text).granulate(roles)
        except NoRows:
            continue
        except BadWeight as error:
            raise BadWeight(error.value, f"column {roles.weights!r}") from None
        yield pa.RecordBatch.from_pydict({"granules": [pickle.dumps(granules, 5)]})


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


def _facts(granules: Granules, long: int) -> tuple[dict[str, int], Fingerprint, list[Sequence[Any] | None]]:
    """What is missing, the fingerprint, and the values of conditions and, last, decision; None for too many."""
    values = [d if len(d) <= long else None for d in _dictionaries(granules)]
    # taken here and always: only here are the values known, and beside the coding of them it costs little
    return granules.n_missing, granules.fingerprint(), values


def _dictionaries(granules: Granules) -> list[Sequence[Any]]:
    return [*granules.dictionaries, list(zip(*granules.decision_values, strict=True))]


def _deal_parcels(
    joined: tuple[list[Granules], list[tuple[int, dict[Any, int]]]], books: Any, coding: Coding, n: int
) -> Iterator[tuple[int, Piece]]:
    """Give parcels the codes that hold everywhere, and deal their granules out."""
    parcels, answers = joined
    complete = [{} if book is None else book for book in books.value]
    for j, book in answers:
        complete[j].update(book)
    for granules in parcels:
        coded = zip((*granules.columns, granules.classes), _dictionaries(granules), complete, strict=True)
        *columns, classes = (
            np.fromiter((book[value] for value in values), np.uint32, len(values))[codes]
            for codes, values, book in coded
        )
        yield from dealt_out(pack(columns, classes, granules.counts, coding), coding, n)


def dealt_out(piece: Piece, coding: Coding, n: int) -> Iterator[tuple[int, Piece]]:
    """Deal granules out by their conditions."""
    for bucket, rows in dealt(hashes(piece, coding), n):
        yield bucket, piece.rows(rows)


# -- dictionaries ------------------------------------------------------------------------------------------


def _one_dictionary(parts: Iterable[Sequence[Any] | None]) -> dict[Any, int] | None:
    """Make one dictionary of a column's, None if it is too long for the driver."""
    book: dict[Any, int] = {}
    for values in parts:
        if values is None or len(book) > LONG_IN_ALL:
            return None
        for value in values:
            book.setdefault(value, len(book))
    return book


def _numbered_on_cluster(parcels: RDD[Granules], long: list[int], n: int) -> tuple[RDD[Any], dict[int, int]]:
    """Number the values of long dictionaries: for every partition its own values' codes, and how many there are."""
    asked = parcels.mapPartitionsWithIndex(partial(_ask, long=long, n=n))
    shares = asked.partitionBy(n, itself).mapPartitions(_share)
    with explained("number the values"):
        sizes = shares.map(lambda share: {j: len(book) for j, book in share[1].items()}).collect()
    # the values of share b are numbered from where those of share b - 1 end
    offsets = {j: [0, *accumulate(size.get(j, 0) for size in sizes)] for j in long}
    answers = shares.mapPartitionsWithIndex(partial(_answer, offsets=offsets))
    count = parcels.getNumPartitions()
    return answers.partitionBy(count, itself).values().glom(), {j: offsets[j][-1] for j in long}


def _ask(partition: int, parcels: Iterable[Granules], long: list[int], n: int) -> Iterator[tuple[int, Any]]:
    for granules in parcels:
        dictionaries = _dictionaries(granules)
        for j in long:
            values = dictionaries[j]
            numbers: Hashes = np.fromiter((crc32(repr(v).encode()) for v in values), np.uint64, len(values))
            for bucket, rows in dealt(numbers, n):
                yield bucket, (partition, j, [values[i] for i in rows.tolist()])


def _share(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[list[Any], dict[int, dict[Any, int]]]]:
    """What was asked of a task, and the numbers of its values by column."""
    questions = [question for _, question in records]
    found: dict[int, set[Any]] = {}
    for _, j, values in questions:
        found.setdefault(j, set()).update(values)
    # in an order that the values alone decide, so that a lost share is numbered as before
    yield questions, {j: {value: i for i, value in enumerate(sorted(found[j], key=repr))} for j in found}


def _answer(bucket: int, shares: Iterable[Any], offsets: dict[int, list[int]]) -> Iterator[tuple[int, Any]]:
    for questions, books in shares:
        for partition, j, values in questions:
            yield partition, (j, {value: offsets[j][bucket] + books[j][value] for value in values})
