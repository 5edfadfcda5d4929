"""From rows on a cluster to pieces of granules, without a row on the driver.

Every part of the table is granulated as the local engine would do it, in parcels that each have their own
dictionaries; the dictionaries are merged, and equal granules meet in one piece. A dictionary too long for the driver
stays on the cluster: its values are dealt out to the tasks, each of which numbers its share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any
from uuid import uuid4
from zlib import crc32

import numpy as np
from pyspark import RDD, SparkContext, StorageLevel

from plar.coding.assemble import missing_values
from plar.coding.index_like import merged_profiles
from plar.engines.spark.cut_points import cuts_of
from plar.engines.spark.part_granules import (
    WIDE,
    PartGranules,
    PartReport,
    dictionaries_of,
    granulate_parts,
    remove_files,
    report_on,
)
from plar.engines.spark.partitions import (
    Cardinalities,
    GranulePartition,
    Hashes,
    bucket_rows,
    concat_buckets,
    concat_partitions,
    pack_codes,
    shuffle_by_conditions,
    split_by_hash,
)
from plar.engines.spark.session import explained
from plar.engines.spark.sources import Source
from plar.engines.spark.spark_granules import SparkGranules
from plar.errors import NoRows
from plar.granules.fingerprint import add_fingerprints, written
from plar.granules.granules import Granules, merge_granules
from plar.grouping.partition import smallest_codes
from plar.input.roles import Roles
from plar.input.tables import DecisionTable
from plar.input.text.numbers import warn_of_spellings
from plar.runtime.spark_calls import spark_call

#: a dictionary with more values than this, in one partition or in all, stays on the cluster
LONG = 1 << 16
LONG_IN_ALL = 1 << 18
#: a piece of granules shipped out has at most about this many bytes
_PIECE = 1 << 25


def granulate(
    source: Source, table: DecisionTable, roles: Roles, partitions: int | None, *, small: int, by_columns: int
) -> SparkGranules | Granules:
    """Granulate rows in parcels, merge their dictionaries, and bring equal granules together in `partitions` pieces.

    If they take at most `small` bytes, they are collected; if they are at most `by_columns`, they are laid out so.
    """
    token = uuid4().hex
    made = granulate_parts(source, roles, token, long=LONG, small=small)
    try:
        with explained("read the table"):
            reports = made.map(lambda parcel: parcel.report).collect()
        if not reports:
            raise NoRows("No row is left: the table is empty, or every row has a missing value or weight 0.")
        here = [report for report in reports if isinstance(report, Granules)]
        if len(here) < len(reports) and sum(report.nbytes for report in reports) <= small:
            with explained("read the table"):
                here = made.map(lambda parcel: parcel.load(remove=True)).collect()
        text = table.source.text
        if len(here) == len(reports):
            granules = merge_granules(here, roles.n_values)
            _check_values(granules.n_missing, granules.dictionaries, roles, text=text)
            made.unpersist()
            return replace(granules, names=table.names, text=text)
        facts = [report_on(report, LONG) if isinstance(report, Granules) else report for report in reports]
        n = int(partitions or max(made.context.defaultParallelism, source.n_parts))
        found = _in_one_coding(made, facts, table, roles, n, in_order=source.can_be_read_again)
        if small and len(roles.conditions) < WIDE:
            whole = _collected(found, small, text=text)
            if whole is not None:
                return whole
        n_rows = sum(fact.n_rows for fact in facts)
        return found.computed(n_rows if n_rows <= by_columns else None)
    except BaseException:
        made.unpersist()
        remove_files(made.context, token)
        raise


def _in_one_coding(
    made: RDD[PartGranules], facts: Sequence[PartReport], table: DecisionTable, roles: Roles, n: int, *, in_order: bool
) -> SparkGranules:
    """Merge the dictionaries; the pieces are not computed yet."""
    found = sum((Counter(fact.n_missing) for fact in facts), Counter[str]())
    lacking = {name: found[name] for name in (*roles.conditions, *roles.decision) if name in found}
    books = [_one_dictionary(column) for column in zip(*(fact.values for fact in facts), strict=True)]
    known = tuple(None if book is None else list(book) for book in books)
    _check_values(lacking, known, roles, text=table.source.text)
    sizes: dict[int, int] = {}
    joined: RDD[Any] = made.glom().map(lambda held: (held, []))
    if long := [j for j, book in enumerate(books) if book is None]:
        answers, sizes = _numbered_on_cluster(made, long, n)
        joined = made.glom().zip(answers)
    *cardinalities, n_decisions = (sizes[j] if book is None else len(book) for j, book in enumerate(books))
    coding = Cardinalities(tuple(cardinalities), n_decisions)
    shared = made.context.broadcast(books)
    recoded = joined.flatMap(partial(_recoded, books=shared, coding=coding))
    if in_order and not _overlap([fact.keys for fact in facts]):
        pieces = recoded.glom().map(lambda held: concat_partitions(held, coding))
    else:
        pieces = shuffle_by_conditions(recoded, coding, n)
    some_values = [facts[0].values[j][0] if book is None else book for j, book in enumerate(known)]
    samples = dict(zip(roles.conditions, some_values, strict=False))
    samples |= dict(zip(roles.decision, zip(*some_values[-1], strict=True), strict=True))

    cuts = cuts_of(roles)
    n_values = {name: n for name, n in zip(roles.conditions, cardinalities, strict=True) if name not in cuts}
    profiles = merged_profiles([fact.profiles for fact in facts], {**n_values, **roles.n_values})

    def release() -> None:
        made.unpersist()
        shared.destroy()

    return SparkGranules(
        conditions=roles.conditions,
        decision=roles.decision,
        names=table.names,
        pieces=pieces,
        coding=coding,
        n_missing=lacking,
        hashed=add_fingerprints(fact.fingerprint for fact in facts),
        cuts=cuts,
        dictionaries=known[:-1],
        samples=samples,
        text=table.source.text,
        n_rows=sum(fact.n_rows_read for fact in facts),
        profiles=profiles,
        release=release,
    )


def _collected(found: SparkGranules, small: int, *, text: bool) -> Granules | None:
    """Collect the pieces if they are small once equal granules are merged; else leave them where they are."""
    decisions = tuple(list(found.samples[name]) for name in found.decision)
    if any(values is None for values in found.dictionaries) or len(decisions[0]) < found.n_decisions:
        return None
    pieces = found.pieces.persist(StorageLevel.MEMORY_AND_DISK)
    share = small // pieces.getNumPartitions()
    with explained("granulate the table"):
        collected = pieces.map(lambda piece: piece if piece.nbytes <= share else None).collect()
    here = [piece for piece in collected if piece is not None]
    if len(here) < len(collected):
        return None
    found.unpersist()
    whole = concat_partitions(here, found.coding)
    return Granules(
        conditions=found.conditions,
        columns=whole.columns(found.coding),
        dictionaries=tuple(values or () for values in found.dictionaries),
        decision=found.decision,
        decision_codes=whole.decision_codes,
        decision_values=decisions,
        counts=whole.counts,
        n_objects=int(whole.counts.sum()),
        names=found.names,
        cuts=found.cuts,
        text=text,
        n_rows=found.n_rows,
        profiles=found.profiles,
    )


def _check_values(
    lacking: Mapping[str, int], values: Sequence[Sequence[Any] | None], roles: Roles, *, text: bool
) -> None:
    """Refuse missing values where they are an error, and warn of numbers spelled in several ways."""
    policies = dict(zip((*roles.conditions, *roles.decision), roles.policies(), strict=True))
    refused = {name: n_objects for name, n_objects in lacking.items() if policies[name] == "error"}
    if refused:
        raise missing_values(refused, "missing" if roles.missing == "error" else "missing_decision")
    if text and roles.bins is None:
        named = zip(roles.conditions, values, strict=False)
        warn_of_spellings({name: known for name, known in named if known is not None and name not in roles.numeric})


@spark_call
def ship(granules: Granules, context: SparkContext, partitions: int | None) -> SparkGranules:
    """Ship granules from this machine to the cluster, for the rows layout."""
    cores = context.defaultParallelism
    n = int(partitions or cores * -(-max(granules.nbytes, 1) // (_PIECE * cores)))
    coding = Cardinalities(granules.cardinalities, granules.n_decisions)
    whole = pack_codes(granules.columns, granules.decision_codes, granules.counts, coding)
    records = list(split_by_hash(whole, coding, n))
    # shuffled, although each bucket is whole already: else every later task would carry its share of the data
    pieces = concat_buckets(context.parallelize(records, max(1, len(records))), coding, n)
    facts = granules.conditions, granules.decision, granules.names
    values = tuple(granules.dictionaries)
    return SparkGranules(*facts, pieces, coding, granules.n_missing, dictionaries=values).computed()


# -- tasks -------------------------------------------------------------------------------------------------


def _recoded(
    joined: tuple[list[PartGranules], list[tuple[int, dict[Any, int]]]], books: Any, coding: Cardinalities
) -> Iterator[GranulePartition]:
    """Recode parcels with the merged dictionaries."""
    held, answers = joined
    complete = [{} if book is None else book for book in books.value]
    for j, book in answers:
        complete[j].update(book)
    for parcel in held:
        granules = parcel.load(remove=True)
        coded = zip((*granules.columns, granules.decision_codes), dictionaries_of(granules), complete, strict=True)
        *columns, classes = (
            smallest_codes(np.fromiter((book[value] for value in values), np.uint32, len(values)), len(book))[codes]
            for codes, values, book in coded
        )
        yield pack_codes(columns, classes, granules.counts, coding)


def _overlap(keys: Sequence[Hashes | None]) -> bool:
    """Whether rows of different parts may have equal conditions, judging by their hashes."""
    known = [np.unique(part) for part in keys if part is not None]
    return len(known) < len(keys) or len(np.unique(np.concatenate(known))) < sum(map(len, known))


# -- dictionaries ------------------------------------------------------------------------------------------


def _one_dictionary(parts: Iterable[tuple[Sequence[Any], bool]]) -> dict[Any, int] | None:
    """Merge the dictionaries of a column; None if the result is too long for the driver."""
    book: dict[Any, int] = {}
    for values, whole in parts:
        if not whole or len(book) > LONG_IN_ALL:
            return None
        for value in values:
            book.setdefault(value, len(book))
    return book


def _numbered_on_cluster(made: RDD[PartGranules], long: list[int], n: int) -> tuple[RDD[Any], dict[int, int]]:
    """Number the values of long dictionaries: the codes each partition needs, and the number of values by column."""
    asked = made.mapPartitionsWithIndex(partial(_ask, long=long, n=n))
    shares = asked.partitionBy(n, int).mapPartitions(_share)
    with explained("number the values"):
        sizes = shares.map(lambda share: {j: len(book) for j, book in share[1].items()}).collect()
    # share b is numbered from where share b - 1 ends
    offsets = {j: [0, *accumulate(size.get(j, 0) for size in sizes)] for j in long}
    answers = shares.mapPartitionsWithIndex(partial(_answer, offsets=offsets))
    count = made.getNumPartitions()
    return answers.partitionBy(count, int).values().glom(), {j: offsets[j][-1] for j in long}


def _ask(partition: int, held: Iterable[PartGranules], long: list[int], n: int) -> Iterator[tuple[int, Any]]:
    for parcel in held:
        dictionaries = dictionaries_of(parcel.load())
        for j in long:
            values = dictionaries[j]
            numbers: Hashes = np.fromiter((crc32(written(v)) for v in values), np.uint64, len(values))
            for bucket, rows in bucket_rows(numbers, n):
                yield bucket, (partition, j, [values[i] for i in rows.tolist()])


def _share(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[list[Any], dict[int, dict[Any, int]]]]:
    """The questions put to a task, and the numbers it gives to its values, by column."""
    questions = [question for _, question in records]
    found: dict[int, set[Any]] = {}
    for _, j, values in questions:
        found.setdefault(j, set()).update(values)
    # sorted, so that a share that is lost and recomputed gets the same numbers
    yield questions, {j: {value: i for i, value in enumerate(sorted(found[j], key=written))} for j in found}


def _answer(bucket: int, shares: Iterable[Any], offsets: dict[int, list[int]]) -> Iterator[tuple[int, Any]]:
    for questions, books in shares:
        for partition, j, values in questions:
            yield partition, (j, {value: offsets[j][bucket] + books[j][value] for value in values})
