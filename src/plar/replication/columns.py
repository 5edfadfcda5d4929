"""Each column of a result on new rows: its p-value given the columns that it was tested with, and what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plar.chance.association import Association
from plar.chance.p_value import adjusted_p_value
from plar.engines.base import Evaluation, GranuleSet
from plar.engines.stratification import Stratification
from plar.measures import Measure
from plar.results.reduct import Reduct
from plar.results.selection import Selection, SelectionStep
from plar.search.selection import share_of


class ColumnTest(NamedTuple):
    """What is known of a column that is there."""

    given: tuple[str, ...]
    p_value: float
    gain: float


class Then(NamedTuple):
    """What the result says of one of its columns."""

    role: str
    #: the p-value that decided
    p_value: float | None = None
    gain: float | None = None


def then_of_reduct(reduct: Reduct) -> dict[str, Then]:
    """What a reduct says of its columns."""
    steps = {step.attribute: step for step in reduct.steps}
    included = reduct.settings.get("include") or ()
    begins_with_core = reduct.settings.get("start") != "empty"
    then: dict[str, Then] = {}
    for name in reduct.attributes:
        step = steps.get(name)
        if step is not None:
            then[name] = Then("selected", step.p_value, step.significance)
        elif name in included:
            then[name] = Then("included")
        else:
            then[name] = Then("core" if name in reduct.core and begins_with_core else "selected")
    return then


def then_of_selection(selection: Selection) -> dict[str, Then]:
    """What a selection says of its columns."""
    then = {name: Then("included") for name in selection.included}
    then |= {step.column: Then("selected", step.adjusted, step.share) for step in selection.steps}
    return then


def test_reduct(
    evaluation: Evaluation, granules: GranuleSet, measure: Measure, names: Sequence[str], alpha: float
) -> Iterator[tuple[str, ColumnTest]]:
    """Test each of some columns given those before it; afterwards the evaluation has selected them all."""
    for place, (name, a) in enumerate(zip(names, granules.positions(names), strict=True)):
        cross_tab = next(iter(evaluation.cross_tabs([a])))
        p_value = min(adjusted_p_value(cross_tab, 1, alpha), 1.0)
        before = evaluation.theta
        [gain] = measure.significances([before - evaluation.select(a)], granules.n_objects)
        yield name, ColumnTest(tuple(names[:place]), p_value, gain)


class SelectionTest:
    """The columns of a selection on new rows.

    Parameters
    ----------
    selection : Selection
    granules : GranuleSet
        Of the columns of the selection that are there.
    strata : Stratification
    alpha : float
    """

    def __init__(self, selection: Selection, granules: GranuleSet, strata: Stratification, alpha: float) -> None:
        self._selection = selection
        self._names = granules.conditions
        self._strata = strata
        self._alpha = alpha
        self._place = {name: a for a, name in enumerate(granules.conditions)}
        #: the sets beside which each column is compared
        self._sets_of = self._sets()
        #: by set: how the columns that are compared beside it go with the target, and what is left to say there
        self._measured: dict[tuple[int, ...], dict[int, Association]] = {}
        self._impurities: dict[tuple[int, ...], float] = {}

    def run(self) -> Iterator[tuple[str, ColumnTest]]:
        """Test each column given those recorded in its step, an included one given the included ones before it."""
        steps = {step.column: step for step in self._selection.steps}
        for place, name in enumerate(self._selection.columns):
            if name not in self._place:
                continue
            step = steps.get(name)
            within = self._positions(self._selection.columns[:place] if step is None else step.given)
            cross_tab = next(iter(self._strata.cross_tabs([self._place[name]], within)))
            p_value = min(adjusted_p_value(cross_tab, 1, self._alpha), 1.0)
            given = tuple(self._names[b] for b in within)
            yield name, ColumnTest(given, p_value, self._least_share(self._place[name]))

    def _sets(self) -> dict[int, list[tuple[int, ...]]]:
        included = self._selection.included
        sets = {name: [included[:place]] for place, name in enumerate(included)} | sets_compared(self._selection)
        return {a: list(map(self._positions, sets[name])) for name, a in self._place.items() if name in sets}

    def _positions(self, names: Sequence[str]) -> tuple[int, ...]:
        """Those of columns that are there."""
        return tuple(self._place[name] for name in names if name in self._place)

    def _least_share(self, a: int) -> float:
        """What a column says beyond chance, where that is least, as a share of what is left to say there."""
        excess_of = {given: self._associations(given)[a].excess for given in self._sets_of[a]}
        given = min(excess_of, key=excess_of.__getitem__)
        if given not in self._impurities:
            self._impurities[given] = self._strata.impurity(given)
        return share_of(excess_of[given], self._impurities[given])

    def _associations(self, given: tuple[int, ...]) -> dict[int, Association]:
        """How all columns that are compared beside a set go with the target there, measured in one pass."""
        if given not in self._measured:
            columns = [a for a, sets in self._sets_of.items() if given in sets]
            self._measured[given] = dict(zip(columns, self._strata.associations(columns, given), strict=True))
        return self._measured[given]


def sets_compared(selection: Selection) -> dict[str, list[tuple[str, ...]]]:
    """The sets of columns beside which each column was compared when it was selected.

    In the first part of the search this is the set of all columns before it, in the second part none and each of them.
    """
    sets: dict[str, list[tuple[str, ...]]] = {}
    n_candidates = len(selection.conditions) - len(selection.left_out) - len(selection.included)
    is_first_part = True
    for place, step in enumerate(selection.steps):
        before = selection.columns[: len(selection.included) + place]
        is_first_part = is_first_part and _is_given_all(selection, step, before, n_candidates - place)
        sets[step.column] = [before] if is_first_part else [(), *((name,) for name in before)]
    return sets


def _is_given_all(selection: Selection, step: SelectionStep, before: tuple[str, ...], n_candidates: int) -> bool:
    """Whether a step belongs to the first part, where a column is tested once, for all candidates that are left."""
    if selection.given == "all":
        return True
    if step.given != before:
        return False
    return len(before) != 1 or math.isclose(step.adjusted, n_candidates * step.p_value, rel_tol=1e-12)
