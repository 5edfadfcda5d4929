"""What the definitions say, computed the slow way: plain Python, exact numbers, nothing from plar.

Everything here is taken from the definitions of the paper (Θ as sums over the classes of U/B) and from the
documented rules of the search, with dictionaries, `fractions` and `decimal`. It shares no code, no numeric
library and no idea of labels with the package under test.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

MEASURES = ("PR", "SCE", "LCE", "CCE")
#: texts that mean missing unless na=() is given, as the documents list them
MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A decision table: one tuple of values, one decision and one multiplicity per row."""

    conditions: tuple[str, ...]
    rows: tuple[tuple[Hashable, ...], ...]
    decisions: tuple[Hashable, ...]
    weights: tuple[int, ...]

    @property
    def n_objects(self) -> int:
        return sum(self.weights)


@dataclass(frozen=True)
class Custom:
    """A user's measure: θ of a class's decision counts, and what the sum is divided by."""

    theta: Callable[[Counts], int]
    normaliser: Callable[[int], int]


Measure = str | Custom


def table(columns: Mapping[str, Sequence[Hashable]], decision: str, weights: str | None = None) -> Table:
    """Make a table from columns; rows of weight 0 are not in it."""
    names = tuple(name for name in columns if name not in (decision, weights))
    n = len(columns[decision])
    multiplicities = [int(str(w)) for w in columns[weights]] if weights is not None else [1] * n
    kept = [i for i in range(n) if multiplicities[i]]
    return Table(
        conditions=names,
        rows=tuple(tuple(columns[name][i] for name in names) for i in kept),
        decisions=tuple(columns[decision][i] for i in kept),
        weights=tuple(multiplicities[i] for i in kept),
    )


# ------------------------------------------------------------------------------------------ partitions and Θ


def partition(table: Table, attributes: Iterable[str]) -> dict[tuple[Hashable, ...], Counter[Hashable]]:
    """U/B, each class with its decision counts."""
    places = [table.conditions.index(a) for a in attributes]
    classes: dict[tuple[Hashable, ...], Counter[Hashable]] = {}
    for row, decision, weight in zip(table.rows, table.decisions, table.weights, strict=True):
        classes.setdefault(tuple(row[j] for j in places), Counter())[decision] += weight
    return classes


def class_counts(table: Table, attributes: Iterable[str]) -> list[Counts]:
    """The decision counts of the classes of U/B."""
    return [tuple(c.values()) for c in partition(table, attributes).values()]


def theta_exact(table: Table, attributes: Iterable[str], measure: str) -> Fraction:
    """Θ(D|B) of PR, LCE or CCE, as section 2 of the paper defines it."""
    U = table.n_objects
    total = Fraction(0)
    for counts in class_counts(table, attributes):
        E = sum(counts)
        if measure == "PR":
            total -= Fraction(E if len(counts) == 1 else 0, U)
        elif measure == "LCE":
            total += sum((Fraction(D, U) * Fraction(E - D, U) for D in counts), Fraction(0))
        elif measure == "CCE":
            if U > 1:
                pairs = math.comb(U, 2)
                total += Fraction(E, U) * Fraction(math.comb(E, 2), pairs)
                total -= sum((Fraction(D, U) * Fraction(math.comb(D, 2), pairs) for D in counts), Fraction(0))
        else:
            raise ValueError(f"no exact fraction for {measure!r}")
    return total


def theta_float(table: Table, attributes: Iterable[str], measure: str) -> float:
    """Θ(D|B) as a float, correct to the last few bits."""
    attributes = tuple(attributes)
    if measure != "SCE":
        return float(theta_exact(table, attributes, measure))
    terms = [
        D * math.log(E / D) if D < E else 0.0
        for counts in class_counts(table, attributes)
        for E in [sum(counts)]
        for D in counts
    ]
    return math.fsum(terms) / table.n_objects


@cache
def fixed_log(n: int) -> int:
    """L(n) = round(2^32 · ln n); 60 digits leave no doubt about the rounding."""
    with decimal.localcontext() as context:
        context.prec = 60
        return int((decimal.Decimal(n).ln() * 2**32).to_integral_value(decimal.ROUND_HALF_EVEN))


def theta_of_counts(counts: Counts, measure: Measure) -> int:
    """θ(E) in the integer units of the ranking."""
    if isinstance(measure, Custom):
        return measure.theta(counts)
    E = sum(counts)
    if measure == "PR":
        return -E if len(counts) == 1 else 0
    if measure == "SCE":
        return sum(D * (fixed_log(E) - fixed_log(D)) for D in counts)
    if measure == "LCE":
        return sum(D * (E - D) for D in counts)
    if measure == "CCE":
        return E * E * (E - 1) - sum(D * D * (D - 1) for D in counts)
    raise ValueError(measure)


def theta_int(table: Table, attributes: Iterable[str], measure: Measure) -> int:
    """Θ(D|B) in the integer units of the ranking: the plain sum over the classes of U/B."""
    return sum(theta_of_counts(counts, measure) for counts in class_counts(table, attributes))


def normaliser(table: Table, measure: Measure) -> int:
    """What an integer Θ is divided by."""
    U = table.n_objects
    if isinstance(measure, Custom):
        return measure.normaliser(U)
    if measure == "CCE":
        return U * U * (U - 1) or 1
    return {"PR": U, "SCE": 2**32 * U, "LCE": U * U}[measure]


def tie_bound(table: Table, measure: Measure) -> int:
    """How far above the smallest Θ a candidate still ties."""
    return 2 * table.n_objects if measure == "SCE" else 0


# ------------------------------------------------------------------------------------------------- equality


def sce_equal_by_products(table: Table, coarse: Iterable[str], fine: Iterable[str]) -> bool:
    """Θ_SCE(D|B) = Θ_SCE(D|A), by comparing Π|E|^|E| / Π|D|^|D| of both as whole numbers.

    exp(|U|·Θ) is that quotient, so equal quotients are equal entropies. For small weights only.
    """

    def quotient(attributes: Iterable[str]) -> tuple[int, int]:
        above = below = 1
        for counts in class_counts(table, attributes):
            above *= sum(counts) ** sum(counts)
            below *= math.prod(D**D for D in counts)
        return above, below

    (a, b), (c, d) = quotient(coarse), quotient(fine)
    return a * d == c * b


def sce_equal_by_proportion(table: Table, coarse: Sequence[str], fine: Sequence[str]) -> bool:
    """Θ_SCE(D|B) = Θ_SCE(D|A) for B ⊆ A, by the equality case of the log-sum inequality.

    Merging classes never lowers the entropy, and leaves it exactly when all merged classes have proportional
    decision counts, that is when each is proportional to their sum.
    """
    merged = partition(table, coarse)
    places = [tuple(fine).index(a) for a in coarse]
    for key, counts in partition(table, fine).items():
        whole = merged[tuple(key[j] for j in places)]
        E, G = sum(counts.values()), sum(whole.values())
        if any(counts[d] * G != g * E for d, g in whole.items()):
            return False
    return True


def equal(table: Table, coarse: Sequence[str], fine: Sequence[str], measure: Measure) -> bool:
    """Θ(D|B) = Θ(D|A) for B ⊆ A, decided exactly."""
    if measure == "SCE":
        return sce_equal_by_proportion(table, coarse, fine)
    return theta_int(table, coarse, measure) == theta_int(table, fine, measure)


# --------------------------------------------------------------------------------------------------- search


@dataclass
class Step:
    """One greedy step: what was taken, Θ and the active objects after it, who tied, Θ(D|R∪{a}) of each."""

    attribute: str
    theta: int
    ties: tuple[str, ...]
    candidates: dict[str, int]
    active: int


@dataclass
class Outcome:
    """Everything that a search reports, Θ in integer units."""

    core: tuple[str, ...]
    attributes: tuple[str, ...]
    theta: int
    theta_all: int
    theta_start: int
    complete: bool
    consistent: bool
    preserved: bool
    redundant: tuple[str, ...]
    minimal: bool
    steps: list[Step] = field(default_factory=list)


def inner(table: Table, attributes: Sequence[str], measure: Measure) -> dict[str, int]:
    """Θ(D|B∖{a}) − Θ(D|B) of every a in B; 0 where they are equal by the exact test."""
    whole = theta_int(table, attributes, measure)
    losses = {}
    for a in attributes:
        rest = [b for b in attributes if b != a]
        same = equal(table, rest, attributes, measure)
        losses[a] = 0 if same else theta_int(table, rest, measure) - whole
    return losses


def core(table: Table, measure: Measure, epsilon: float = 0.0) -> tuple[str, ...]:
    """The attributes whose inner significance in C exceeds ε."""
    C = table.conditions
    if epsilon == 0:
        return tuple(a for a in C if not equal(table, [b for b in C if b != a], C, measure))
    norm, bound = normaliser(table, measure), Fraction(epsilon)
    return tuple(a for a, s in inner(table, C, measure).items() if Fraction(s, norm) > bound)


def start(
    table: Table, core: Sequence[str], include: Sequence[str], measure: Measure, max_attributes: int | None
) -> list[str]:
    """R before the first greedy step: core, then `include`, each in the order of the conditions."""
    C = table.conditions
    room = len(C) if max_attributes is None else max_attributes
    if len({*core, *include}) > room:
        significance = inner(table, C, measure)
        ranked = sorted((a for a in core if a not in include), key=lambda a: (-significance[a], C.index(a)))
        kept = {*include, *ranked[: max(room - len(set(include)), 0)]}
        core = [a for a in core if a in kept]
    return [*core, *(a for a in C if a in include and a not in core)]


def active(table: Table, attributes: Sequence[str], measure: Measure) -> int:
    """How many objects lie in classes of U/R that the rest of C would still change."""
    places = [table.conditions.index(a) for a in attributes]
    members: dict[tuple[Hashable, ...], list[int]] = {}
    for i, row in enumerate(table.rows):
        members.setdefault(tuple(row[j] for j in places), []).append(i)
    left = 0
    for rows in members.values():
        part = Table(
            table.conditions,
            tuple(table.rows[i] for i in rows),
            tuple(table.decisions[i] for i in rows),
            tuple(table.weights[i] for i in rows),
        )
        if not equal(part, (), table.conditions, measure):
            left += part.n_objects
    return left


def search(
    table: Table,
    measure: Measure,
    *,
    include: Sequence[str] = (),
    epsilon: float = 0.0,
    tolerance: float = 0.0,
    max_attributes: int | None = None,
    minimal: bool = False,
) -> Outcome:
    """Core, greedy search and certificate, rule by rule."""
    C = table.conditions
    norm, bound = normaliser(table, measure), tie_bound(table, measure)
    theta_all = theta_int(table, C, measure)

    def stop(R: Sequence[str]) -> bool:
        gap = Fraction(theta_int(table, R, measure) - theta_all, norm)
        return equal(table, R, C, measure) or (tolerance > 0 and gap <= Fraction(tolerance))

    essential = core(table, measure, epsilon)
    R = start(table, essential, include, measure, max_attributes)
    theta_start = theta_int(table, R, measure)
    steps = []
    while not stop(R) and len(R) < len(C) and (max_attributes is None or len(R) < max_attributes):
        candidates = {a: theta_int(table, [*R, a], measure) for a in C if a not in R}
        least = min(candidates.values())
        ties = tuple(a for a, value in candidates.items() if value - least <= bound)
        R.append(ties[0])
        steps.append(Step(ties[0], candidates[ties[0]], ties, candidates, active(table, R, measure)))
    complete = stop(R)
    if minimal:
        for a in reversed(R.copy()):
            rest = [b for b in R if b != a]
            if a not in include and equal(table, rest, R, measure):
                R = rest
    redundant = tuple(a for a in R if equal(table, [b for b in R if b != a], R, measure))
    return Outcome(
        core=essential,
        attributes=tuple(R),
        theta=theta_int(table, R, measure),
        theta_all=theta_all,
        theta_start=theta_start,
        complete=complete,
        consistent=all(len(counts) == 1 for counts in class_counts(table, C)),
        preserved=equal(table, R, C, measure),
        redundant=redundant,
        minimal=not redundant,
        steps=steps,
    )


def significance(table: Table, attributes: Sequence[str], measure: Measure) -> dict[str, int]:
    """Inner significance of the members of B, outer of the rest, in the order of the conditions."""
    members = inner(table, attributes, measure)
    whole = theta_int(table, attributes, measure)
    return {
        a: members[a] if a in members else whole - theta_int(table, [*attributes, a], measure) for a in table.conditions
    }
