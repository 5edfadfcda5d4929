"""What the certificate of a reduct says: which attributes are redundant, and what is left without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plar.engines.base import Evaluation


def redundant_among(evaluation: Evaluation, chosen: Sequence[int], place_of: Mapping[int, int]) -> list[int]:
    """Attributes that are individually removable; `place_of`: where the evaluation has them."""
    without = evaluation.leave_one_out([place_of[a] for a in chosen])
    return [a for a, rest in zip(chosen, without, strict=True) if rest.equal]


def without_redundant(
    evaluation: Evaluation, chosen: Sequence[int], place_of: Mapping[int, int], keep: Collection[int]
) -> tuple[list[int], list[int]]:
    """Remove redundant attributes one by one, the last first; what is left, and what is redundant in it, but kept."""
    left = list(chosen)
    redundant = redundant_among(evaluation, left, place_of)
    while removable := [a for a in redundant if a not in keep]:
        left.remove(removable[-1])
        redundant = redundant_among(evaluation, left, place_of)
    return left, redundant
