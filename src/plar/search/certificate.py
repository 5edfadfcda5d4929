"""The certificate of a set of attributes R: whether it preserves Θ, and which of its attributes are redundant.

Computed by the engine. What others can check without the search is a proof (`plar.results.proof`), which only the
search for the smallest reduct writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from plar.engines.base import Evaluation


class Certified(NamedTuple):
    """What is proven about R."""

    #: R, without the attributes that were removed
    chosen: list[int]
    #: Θ(D|R) = Θ(D|C)
    preserved: bool
    #: attributes of R that are individually removable
    redundant: list[int]
    #: the evaluation that says so, if one was opened for R alone
    of_chosen: Evaluation | None


def certify(
    chosen: list[int],
    evaluation: Evaluation | None,
    open_on: Callable[[Sequence[int]], Evaluation],
    *,
    preserved: bool,
    all_needed: bool,
    minimal: bool,
    keep: Collection[int],
) -> Certified:
    """Say what is proven about R.

    Parameters
    ----------
    chosen : list of int
        R, as positions among the conditions.
    evaluation : Evaluation or None
        Of all conditions; None if its state is unknown.
    open_on : function
        Opens an evaluation of the table with some conditions only.
    preserved : bool
        Whether R preserves Θ(D|C). If not, an attribute is redundant if Θ(D|R) is the same without it.
    all_needed : bool
        Whether no set that preserves Θ(D|C) can do without any attribute of R.
    minimal : bool
        Whether to remove redundant attributes, except those to keep.
    """
    place_of = {a: a for a in chosen}
    of_chosen: Evaluation | None = None
    if not preserved or evaluation is None:
        of_chosen = open_on(chosen)
        evaluation = of_chosen
        place_of = {a: i for i, a in enumerate(chosen)}
    if not chosen or (preserved and all_needed):
        return Certified(chosen, preserved, [], of_chosen)
    redundant = redundant_among(evaluation, chosen, place_of)
    if minimal:
        chosen, redundant = without_redundant(evaluation, chosen, redundant, place_of, keep)
    return Certified(chosen, preserved, redundant, of_chosen)


def redundant_among(evaluation: Evaluation, chosen: Sequence[int], place_of: Mapping[int, int]) -> list[int]:
    """Attributes that are individually removable; `place_of`: where the evaluation has them."""
    effects = evaluation.leave_one_out([place_of[a] for a in chosen])
    return [a for a, effect in zip(chosen, effects, strict=True) if effect.equal]


def without_redundant(
    evaluation: Evaluation,
    chosen: Sequence[int],
    redundant: list[int],
    place_of: Mapping[int, int],
    keep: Collection[int],
) -> tuple[list[int], list[int]]:
    """Remove redundant attributes one by one, the last first; what is left, and what is redundant in it, but kept."""
    left = list(chosen)
    while removable := [a for a in redundant if a not in keep]:
        left.remove(removable[-1])
        redundant = redundant_among(evaluation, left, place_of)
    return left, redundant
