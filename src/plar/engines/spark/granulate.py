"""From rows on a cluster to pieces of granules, without a row on the driver.

Every part of the table is granulated as the local engine would do it, with dictionaries of its own; these are
merged, and equal granules meet in one piece. A dictionary too long for the driver stays on the cluster: its
values are assigned to tasks by hash, and each task numbers its share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import uuid4
from zlib import crc32

import numpy as np
from pyspark import RDD, Broadcast, SparkContext, StorageLevel

from plar.coding.assemble import missing_values
from plar.coding.index_like import merged_profiles
from plar.engines.spark.cut_points import count_values, cuts_of
from plar.engines.spark.distributed_tables import DistributedTable
from plar.engines.spark.long_dictionaries import DECISION, CodeOf, LongDictionaries
from plar.engines.spark.part_granules import (
    WIDE_CONDITIONS,
    PartGranules,
    PartReport,
    dictionaries_of,
    granulate_parts,
    remove_files,
    report_on,
)
from plar.engines.spark.pieces import (
    Cardinalities,
    Hashes,
    Piece,
    bucket_rows,
    concat_buckets,
    concat_pieces,
    pack_codes,
    shuffle_by_conditions,
    split_by_hash,
)
from plar.engines.spark.session import explained
from plar.engines.spark.spark_granules import SparkGranules
from plar.errors import AllRowsDropped, NoRows
from plar.granules.fingerprint import add_fingerprints, spell
from plar.granules.granules import Granules, merge_granules
from plar.grouping.partition import Codes, smallest_codes
from plar.input.roles import Roles
from plar.input.tables import DecisionTable
from plar.input.text.numbers import warn_of_spellings
from plar.runtime.spark_calls import spark_call

#: a dictionary with more values than this, in one part or in all, stays on the cluster
MAX_VALUES_OF_PART = 1 << 16
MAX_VALUES_ON_DRIVER = 1 << 18
#: a piece of granules shipped out has at most about this many bytes
_MAX_PIECE_BYTES = 1 << 25


def granulate(
    source: DistributedTable,
    table: DecisionTable,
    roles: Roles,
    partitions: int | None,
    *,
    small: int,
    by_columns: int,
) -> SparkGranules | Granules:
    """Granulate rows part by part, merge the dictionaries, and bring equal granules together in `partitions` pieces.

    If they take at most `small` bytes, they are collected; if they are at most `by_columns`, they are laid out so.
    """
    token = uuid4().hex
    parts = granulate_parts(source, roles, token, long=MAX_VALUES_OF_PART, small=small)
    try:
        with explained("read the table"):
            reports = parts.map(lambda part: part.report).collect()
        if not reports:
            raise NoRows("No row is left: the table is empty, or every row has a missing value or weight 0.")
        if not any(map(_n_granules, reports)):
            raise AllRowsDropped("missing" if roles.missing == "drop" else "missing_decision")
        unsure = _unsure_of_index(reports, roles)
        if unsure:
            n_values = count_values(source, roles, unsure, text=table.source.text)
            roles = replace(roles, n_values={**roles.n_values, **n_values})
        small_parts = _collected_parts(parts, reports, small)
        if small_parts is not None:
            granules = merge_granules(small_parts, roles.n_values)
            _check_values(granules.n_missing, granules.dictionaries, roles, text=table.source.text)
            parts.unpersist()
            return replace(
                granules,
                names=table.names,
                text=table.source.text,
                categorical_decision=table.has_categorical_decision,
            )
        part_reports = [
            report_on(report, MAX_VALUES_OF_PART) if isinstance(report, Granules) else report for report in reports
        ]
        n_pieces = int(partitions or max(parts.context.defaultParallelism, source.n_parts))
        on_cluster = _in_one_coding(parts, part_reports, table, roles, n_pieces, in_order=source.can_be_read_again)
        return _collected_or_computed(
            on_cluster, small=small, by_columns=by_columns, n_rows=sum(report.n_rows for report in part_reports)
        )
    except BaseException:
        parts.unpersist()
        remove_files(parts.context, token)
        raise


def _unsure_of_index(reports: Sequence[PartReport | Granules], roles: Roles) -> list[str]:
    """Columns that may be index-like, but of whose values some went with rows that were dropped."""
    if roles.missing != "drop" and not any(report.n_without_decision for report in reports):
        return []
    in_all = set.intersection(*(set(report.profiles) for report in reports))
    return [name for name in roles.conditions if name in in_all and name not in roles.n_values]


def _n_granules(report: PartReport | Granules) -> int:
    return len(report) if isinstance(report, Granules) else report.n_rows


def _collected_parts(
    parts: RDD[PartGranules], reports: Sequence[PartReport | Granules], small: int
) -> list[Granules] | None:
    """The granules of all parts if they are small, in part from their reports; else None."""
    whole = [report for report in reports if isinstance(report, Granules)]
    if len(whole) == len(reports):
        return whole
    if sum(report.nbytes for report in reports) > small:
        return None
    with explained("read the table"):
        return parts.map(lambda part: part.load(remove=True)).collect()


def _collected_or_computed(
    granules: SparkGranules, *, small: int, by_columns: int, n_rows: int
) -> SparkGranules | Granules:
    """Collect granules if they are small once equal ones are merged; else compute them where they are."""
    try:
        if small and len(granules.conditions) < WIDE_CONDITIONS:
            local = collected(granules, small)
            if local is not None:
                granules.unpersist()
                return local
    except BaseException:
        granules.unpersist()
        raise
    return granules.computed(n_rows if n_rows <= by_columns else None)


def _in_one_coding(
    parts: RDD[PartGranules],
    reports: Sequence[PartReport],
    table: DecisionTable,
    roles: Roles,
    n_pieces: int,
    *,
    in_order: bool,
) -> SparkGranules:
    """Merge the dictionaries, code all parts alike, and bring equal granules together; nothing is computed yet."""
    code_of = [_merged_dictionary(of_column) for of_column in zip(*(report.values for report in reports), strict=True)]
    values = tuple(None if codes is None else list(codes) for codes in code_of)
    n_missing = _missing_in_all(reports, roles)
    _check_values(n_missing, values, roles, text=table.source.text)

    sent, recoded, coding, long_dictionaries = _recoded_parts(parts, code_of, n_pieces, roles)
    if in_order and not _overlap([report.keys for report in reports]):
        pieces = recoded.glom().map(lambda of_task: concat_pieces(of_task, coding))
    else:
        pieces = shuffle_by_conditions(recoded, coding, n_pieces)

    cuts = cuts_of(roles)
    for report in reports:
        cuts.update(report.time_cuts)
    n_values = {
        name: n - (name in n_missing)
        for name, n in zip(roles.conditions, coding.cardinalities, strict=True)
        if name not in cuts
    }

    def release() -> None:
        parts.unpersist()
        sent.destroy()

    return SparkGranules(
        conditions=roles.conditions,
        decision=roles.decision,
        names=table.names,
        pieces=pieces,
        coding=coding,
        n_missing=n_missing,
        hashed=add_fingerprints(report.fingerprint for report in reports),
        cuts=cuts,
        dictionaries=values[:-1],
        samples=_samples(values, next(report for report in reports if report.n_rows), roles),
        text=table.source.text,
        n_rows=sum(report.n_rows_read for report in reports),
        n_without_decision=sum(report.n_without_decision for report in reports),
        categorical_decision=table.has_categorical_decision,
        profiles=merged_profiles([report.profiles for report in reports], {**n_values, **roles.n_values}),
        long_dictionaries=long_dictionaries,
        release=release,
    )


def _missing_in_all(reports: Sequence[PartReport], roles: Roles) -> dict[str, int]:
    """How many objects have a missing value, by condition and decision, where there are any."""
    counts = Counter[str]()
    for report in reports:
        counts.update(report.n_missing)
    return {name: counts[name] for name in (*roles.conditions, *roles.decision) if name in counts}


def _samples(values: Sequence[Sequence[Any] | None], first: PartReport, roles: Roles) -> dict[str, Sequence[Any]]:
    """Values of conditions and decisions: all that the driver knows, else those that the first part reports."""
    samples_by_column: list[Sequence[Any]] = []
    for values_on_driver, (reported_values, _) in zip(values, first.values, strict=True):
        samples_by_column.append(reported_values if values_on_driver is None else values_on_driver)
    decisions = samples_by_column.pop()
    samples = dict(zip(roles.conditions, samples_by_column, strict=True))
    samples.update(zip(roles.decision, zip(*decisions, strict=True), strict=True))
    return samples


def _recoded_parts(
    parts: RDD[PartGranules], code_of: Sequence[CodeOf | None], n_pieces: int, roles: Roles
) -> tuple[Broadcast[Sequence[CodeOf | None]], RDD[Piece], Cardinalities, LongDictionaries | None]:
    """Code all parts alike: the codes as they are broadcast, the pieces that result, how they are coded, and by what.

    The last are the dictionaries that are not on the driver, if there are any.
    """
    sizes = {j: len(codes) for j, codes in enumerate(code_of) if codes is not None}
    long = [j for j, codes in enumerate(code_of) if codes is None]
    with_codes: RDD[tuple[list[PartGranules], list[tuple[int, CodeOf]]]]
    long_dictionaries = None
    if long:
        answers, sizes_of_long = _numbered_on_cluster(parts, long, n_pieces)
        sizes |= sizes_of_long
        names = (*roles.conditions, DECISION)
        long_dictionaries = LongDictionaries(answers, {j: names[j] for j in long})
        with_codes = parts.glom().zip(answers)
    else:
        with_codes = parts.glom().map(lambda of_task: (of_task, []))
    n_conditions = len(code_of) - 1
    coding = Cardinalities(tuple(sizes[j] for j in range(n_conditions)), n_decisions=sizes[n_conditions])
    sent = parts.context.broadcast(code_of)
    pieces = with_codes.flatMap(partial(_recoded, code_of=sent, coding=coding))
    return sent, pieces, coding, long_dictionaries


def collected(granules: SparkGranules, small: int) -> Granules | None:
    """Collect the pieces if they are small once equal granules are merged; else leave them where they are."""
    decisions = tuple(list(granules.samples[name]) for name in granules.decision)
    if any(values is None for values in granules.dictionaries) or len(decisions[0]) < granules.n_decisions:
        return None
    pieces = granules.pieces.persist(StorageLevel.MEMORY_AND_DISK)
    share = small // pieces.getNumPartitions()
    with explained("granulate the table"):
        pieces_or_none = pieces.map(lambda piece: piece if piece.nbytes <= share else None).collect()
    small_pieces = [piece for piece in pieces_or_none if piece is not None]
    if len(small_pieces) < len(pieces_or_none):
        return None
    whole = concat_pieces(small_pieces, granules.coding)
    return Granules(
        conditions=granules.conditions,
        columns=whole.columns(granules.coding),
        dictionaries=tuple(values or () for values in granules.dictionaries),
        decision=granules.decision,
        decision_codes=whole.decision_codes,
        decision_values=decisions,
        counts=whole.counts,
        n_objects=int(whole.counts.sum()),
        names=granules.names,
        cuts=granules.cuts,
        text=granules.text,
        n_rows=granules.n_rows,
        profiles=granules.profiles,
        n_without_decision=granules.n_without_decision,
        categorical_decision=granules.categorical_decision,
    )


def _check_values(
    n_missing: Mapping[str, int], values: Sequence[Sequence[Any] | None], roles: Roles, *, text: bool
) -> None:
    """Refuse missing values where they are an error, and warn of numbers spelled in several ways."""
    policies = dict(zip((*roles.conditions, *roles.decision), roles.policies(), strict=True))
    refused = {name: n_objects for name, n_objects in n_missing.items() if policies[name] == "error"}
    if refused:
        raise missing_values(refused, "missing" if roles.missing == "error" else "missing_decision")
    if text:
        spellings: dict[str, Sequence[Any]] = {}
        numeric_names = {*roles.numeric, *cuts_of(roles)}
        for name, of_column in zip(roles.conditions, values, strict=False):
            if of_column is not None and name not in numeric_names:
                spellings[name] = of_column
        warn_of_spellings(spellings)


@spark_call
def ship(granules: Granules, context: SparkContext, partitions: int | None) -> SparkGranules:
    """Ship granules from this machine to the cluster, for the rows layout."""
    cores = context.defaultParallelism
    pieces_per_core = -(-max(granules.nbytes, 1) // (_MAX_PIECE_BYTES * cores))
    n = int(partitions or cores * pieces_per_core)
    coding = Cardinalities(granules.cardinalities, granules.n_decisions)
    whole = pack_codes(granules.columns, granules.decision_codes, granules.counts, coding)
    records = list(split_by_hash(whole, coding, n))
    # shuffled, although each bucket is whole already: else every later task would carry its share of the data
    pieces = concat_buckets(context.parallelize(records, max(1, len(records))), coding, n)
    return SparkGranules(
        conditions=granules.conditions,
        decision=granules.decision,
        names=granules.names,
        pieces=pieces,
        coding=coding,
        n_missing=granules.n_missing,
        dictionaries=tuple(granules.dictionaries),
    ).computed()


# -- tasks -------------------------------------------------------------------------------------------------


def _recoded(
    parts_and_answers: tuple[list[PartGranules], list[tuple[int, CodeOf]]],
    code_of: Broadcast[Sequence[CodeOf | None]],
    coding: Cardinalities,
) -> Iterator[Piece]:
    """Code the granules of parts alike; the answers are codes of values that are numbered on the cluster."""
    parts, answers = parts_and_answers
    complete = [{} if codes is None else codes for codes in code_of.value]
    for j, codes_of_some in answers:
        complete[j].update(codes_of_some)
    for part in parts:
        granules = part.load(remove=True)
        if not len(granules):
            continue
        columns = (*granules.columns, granules.decision_codes)
        recoded: list[Codes] = []
        for codes, values, codes_of_values in zip(columns, dictionaries_of(granules), complete, strict=True):
            recoded.append(_recode(codes, values, codes_of_values))
        decision_codes = recoded.pop()
        yield pack_codes(recoded, decision_codes, granules.counts, coding)


def _recode(codes: Codes, values: Sequence[Any], code_of: CodeOf) -> Codes:
    new_codes = np.fromiter((code_of[value] for value in values), np.uint32, len(values))
    return smallest_codes(new_codes, len(code_of))[codes]


def _overlap(keys: Sequence[Hashes | None]) -> bool:
    """Whether rows of different parts may have equal conditions, judging by their hashes."""
    distinct_keys = [np.unique(part) for part in keys if part is not None]
    if len(distinct_keys) < len(keys):
        return True
    return len(np.unique(np.concatenate(distinct_keys))) < sum(map(len, distinct_keys))


# -- dictionaries ------------------------------------------------------------------------------------------


def _merged_dictionary(parts: Iterable[tuple[Sequence[Any], bool]]) -> CodeOf | None:
    """Merge the dictionaries of a column; None if the result is too long for the driver."""
    code_of: CodeOf = {}
    for values, are_all in parts:
        if not are_all or len(code_of) > MAX_VALUES_ON_DRIVER:
            return None
        for value in values:
            code_of.setdefault(value, len(code_of))
    return code_of


class _Question(NamedTuple):
    """Values of a column whose codes a part needs."""

    partition: int
    column: int
    values: list[Any]


def _numbered_on_cluster(
    parts: RDD[PartGranules], long: list[int], n: int
) -> tuple[RDD[list[tuple[int, CodeOf]]], dict[int, int]]:
    """Number the values of long dictionaries: the codes each partition needs, and the number of values by column."""
    questions = parts.mapPartitionsWithIndex(partial(_ask, long=long, n=n))
    shares = questions.partitionBy(n, int).mapPartitions(_number_share)
    with explained("number the values"):
        sizes = shares.map(lambda share: {j: len(numbers) for j, numbers in share[1].items()}).collect()
    # share b is numbered from where share b - 1 ends
    offsets = {j: [0, *accumulate(size.get(j, 0) for size in sizes)] for j in long}
    answers = shares.mapPartitionsWithIndex(partial(_answer, offsets=offsets))
    n_values = {j: offsets[j][-1] for j in long}
    return answers.partitionBy(parts.getNumPartitions(), int).values().glom(), n_values


def _ask(partition: int, parts: Iterable[PartGranules], long: list[int], n: int) -> Iterator[tuple[int, _Question]]:
    """Send each value of a long dictionary to the task that numbers it."""
    for part in parts:
        dictionaries = dictionaries_of(part.load())
        for j in long:
            values = dictionaries[j]
            hash_of: Hashes = np.fromiter((crc32(spell(value)) for value in values), np.uint64, len(values))
            for bucket, rows in bucket_rows(hash_of, n):
                yield bucket, _Question(partition, j, [values[i] for i in rows.tolist()])


def _number_share(records: Iterable[tuple[int, _Question]]) -> Iterator[tuple[list[_Question], dict[int, CodeOf]]]:
    """The questions put to a task, and the numbers it gives to its values, by column."""
    questions = [question for _, question in records]
    values_of: dict[int, set[Any]] = {}
    for question in questions:
        values_of.setdefault(question.column, set()).update(question.values)
    # sorted, so that a share that is lost and recomputed gets the same numbers
    numbers = {
        j: {value: number for number, value in enumerate(sorted(values, key=spell))} for j, values in values_of.items()
    }
    yield questions, numbers


def _answer(
    bucket: int, shares: Iterable[tuple[list[_Question], dict[int, CodeOf]]], offsets: dict[int, list[int]]
) -> Iterator[tuple[int, tuple[int, CodeOf]]]:
    """Answer each question with the codes of its values."""
    for questions, numbers in shares:
        for partition, j, values in questions:
            yield partition, (j, {value: offsets[j][bucket] + numbers[j][value] for value in values})
