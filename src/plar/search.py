"""The search: core, greedy steps, certificate. The only search loop in the product; engines supply Θ.

References
----------
PLAR, section 4: core by inner significance, then add the attribute of least Θ until the stop rule holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from time import perf_counter
from typing import Any, TypeAlias

from plar.engines.base import Engine, Evaluation, Held, Inner
from plar.errors import TableError
from plar.measures import Measure
from plar.reduct import Certificate, Reduct, Step

__all__ = ["OnStep", "Options", "Progress", "core_of", "find_reduct"]

#: called with the phase, how much of it is done, and out of how much
Progress: TypeAlias = Callable[[str, int, int], None]
OnStep: TypeAlias = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks of the search; see `plar.reduce`."""

    include: tuple[Any, ...] = ()
    epsilon: float = 0.0
    tolerance: float = 0.0
    max_attributes: int | None = None
    minimal: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "tolerance"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < math.inf:
                raise TableError(f"The {name!r} parameter must be a number of 0 or more. Got {value!r} instead.")
        limit = self.max_attributes
        if limit is None:
            return
        if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < 1:
            raise TableError(f"The 'max_attributes' parameter must be None or 1 and more. Got {limit!r} instead.")
        if limit < len(set(self.include)):
            raise TableError(
                f"The 'max_attributes' parameter is {limit}, but 'include' alone has {len(set(self.include))} "
                "attributes. Raise the one or shorten the other."
            )


def find_reduct(
    granules: Held,
    measure: Measure,
    engine: Engine,
    options: Options,
    *,
    seconds: dict[str, float] | None = None,
    source: str | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    on_step: OnStep | None = None,
) -> Reduct:
    """Find core and reduct of a granulated table; `source` and `settings` go into the result as they are."""
    tell = progress or (lambda phase, done, total: None)
    clock = _Clock(seconds or {})
    names = granules.conditions
    include = sorted(set(granules.positions(options.include)))

    tell("core", 0, len(names))
    evaluation = engine.open(granules, measure)
    consistent = evaluation.consistent
    inner = evaluation.without_each()
    core = core_of(inner, evaluation.theta_all, measure, granules.n_objects, options.epsilon)
    clock.lap("core")

    chosen = _start(core, include, inner, options.max_attributes)
    if chosen:
        evaluation.select(*chosen)
    limit = min(options.max_attributes or len(names), len(names))
    tell("search", 0, evaluation.active)
    theta_all = evaluation.value_all
    steps: list[Step] = []
    while not _done(evaluation, measure, granules.n_objects, options.tolerance) and len(chosen) < limit:
        attribute, step = _step(granules, measure, evaluation, chosen, theta_all)
        chosen.append(attribute)
        steps.append(step)
        tell("search", len(steps), evaluation.active)
        if on_step:
            on_step(step)
    complete = _done(evaluation, measure, granules.n_objects, options.tolerance)
    clock.lap("search")

    tell("certificate", 0, len(chosen))
    preserved = evaluation.active == 0
    places = {a: a for a in chosen}
    theta = theta_all
    if not preserved:
        # what could go is then judged by what R itself tells
        coarse = granules.coarsen([names[a] for a in chosen])
        evaluation, places = engine.open(coarse, measure), {a: i for i, a in enumerate(chosen)}
        theta = evaluation.value_all
    redundant = _redundant(evaluation, chosen, places)
    while options.minimal and (removable := [a for a in redundant if a not in include]):
        chosen.remove(removable[-1])
        redundant = _redundant(evaluation, chosen, places)
    equal = granules.equal_columns(_suspects(granules, steps))
    clock.lap("certificate")
    return Reduct(
        attributes=tuple(names[a] for a in chosen),
        core=tuple(names[a] for a in core),
        conditions=names,
        decision=granules.decision,
        measure=measure.name,
        engine=engine.name,
        theta=theta,
        theta_all=theta_all,
        complete=complete,
        consistent=consistent,
        steps=tuple(steps),
        certificate=Certificate(preserved, tuple(names[a] for a in redundant), not redundant),
        n_objects=granules.n_objects,
        n_granules=len(granules),
        n_classes=granules.n_classes,
        cardinalities=dict(zip(names, granules.cardinalities, strict=True)),
        missing=granules.n_missing,
        equivalent=tuple(tuple(names[a] for a in group) for group in equal),
        source=source,
        settings=settings or {},
        seconds=clock.seconds,
    )


def core_of(inner: Sequence[Inner], theta_all: int, measure: Measure, n_objects: int, epsilon: float) -> list[int]:
    """Attributes whose inner significance exceeds ε; for ε = 0 whoever is not exactly equal."""
    if epsilon == 0:
        return [a for a, found in enumerate(inner) if not found.equal]
    divisor = Fraction(measure.normaliser(n_objects) or 1)
    return [
        a
        for a, found in enumerate(inner)
        if not found.equal and (found.theta - theta_all) / divisor > Fraction(float(epsilon))
    ]


def _start(core: list[int], include: list[int], inner: Sequence[Inner], limit: int | None) -> list[int]:
    """R before the first step: the core, then `include`; under a limit the core's most significant part."""
    room = math.inf if limit is None else limit - len(include)
    held = [a for a in core if a not in include]
    if len(held) > room:
        best = sorted(held, key=lambda a: (-inner[a].theta, a))[: int(room)]
        held = sorted(best)
    start = sorted({*held, *(a for a in include if a in core)})
    return [*start, *(a for a in include if a not in core)]


def _step(
    granules: Held, measure: Measure, evaluation: Evaluation, chosen: Sequence[int], theta_all: float
) -> tuple[int, Step]:
    began = perf_counter()
    names, n = granules.conditions, granules.n_objects
    taken = set(chosen)
    candidates = [a for a in range(len(names)) if a not in taken]
    before = evaluation.theta
    thetas = evaluation.with_each(candidates)
    bound = min(thetas) + measure.tie_bound(n)
    ties = [a for a, theta in zip(candidates, thetas, strict=True) if theta <= bound]
    gains = measure.significances([before - theta for theta in thetas], n)
    after = evaluation.select(ties[0])
    active = evaluation.active
    return ties[0], Step(
        attribute=names[ties[0]],
        theta=measure.value(after, n) if active else theta_all,
        significance=measure.significance(before - after, n),
        ties=tuple(names[a] for a in ties),
        candidates=dict(zip([names[a] for a in candidates], gains, strict=True)),
        active=active,
        seconds=perf_counter() - began,
    )


def _done(evaluation: Evaluation, measure: Measure, n_objects: int, tolerance: float) -> bool:
    """The stop rule: Θ(D|R) = Θ(D|C), by labels; or within the tolerance."""
    if evaluation.active == 0:
        return True
    if tolerance == 0:
        return False
    gap = Fraction(evaluation.theta - evaluation.theta_all) / Fraction(measure.normaliser(n_objects) or 1)
    return gap <= Fraction(float(tolerance))


def _redundant(evaluation: Evaluation, chosen: Sequence[int], places: Mapping[int, int]) -> list[int]:
    """Which of the attributes could go alone."""
    inner = evaluation.without_each([places[a] for a in chosen])
    return [a for a, found in zip(chosen, inner, strict=True) if found.equal]


def _suspects(granules: Held, steps: Sequence[Step]) -> list[list[int]]:
    """Groups of conditions of which some may be equal: as many values, and as significant at first."""
    # what the first step did not offer was in R already, and whoever equals it adds nothing then
    first = steps[0].candidates if steps else {}
    groups: dict[tuple[int, float], list[int]] = {}
    for a, (name, n_values) in enumerate(zip(granules.conditions, granules.cardinalities, strict=True)):
        groups.setdefault((n_values, first.get(name, 0.0)), []).append(a)
    return [group for group in groups.values() if len(group) > 1]


class _Clock:
    """Seconds by phase."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self._last = perf_counter()

    def lap(self, phase: str) -> None:
        now = perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now
