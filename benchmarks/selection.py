"""Do the chosen columns hold up on new rows? Pure noise, planted decisions, and the paper's tables with junk added.

    python benchmarks/selection.py                  # all rows (make bench-selection); QUICK=1: fewer tables
    python benchmarks/selection.py noise planted    # some rows

Figures go to .bench/selection.json. Seeds are fixed: table number i of a regime is the same for everybody.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from bars import best, data_folder, report, run, timed_steps

import plar
from plar import datasets
from plar.chance.p_value import adjusted_p_value
from plar.engines import LocalEngine
from plar.measures import SCE

QUICK = bool(os.environ.get("QUICK"))
TABLES = 100 if QUICK else 1000
ALPHA = 0.05
Regime = Callable[[np.random.Generator], tuple[Any, Any, dict[str, Any]]]
#: whether a table, its target, and options select something
Selects = Callable[[Any, Any, dict[str, Any]], bool]


def _values(pick: np.random.Generator, n: int, k: int, values: int, classes: int) -> tuple[Any, Any]:
    return pick.integers(0, values, (k, n)).astype(np.uint8).T, pick.integers(0, classes, n)


def few_values(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return *_values(pick, 200, 20, 3, 2), {}


def many_values(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return *_values(pick, 300, 20, 60, 3), {}


def ids(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    # nearly one value a row
    x = np.stack([pick.permutation(200) // pick.integers(1, 3) for _ in range(20)], axis=1)
    return x, pick.integers(0, 2, 200), {}


def rare_decision(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    x, _ = _values(pick, 500, 20, 4, 2)
    return x, (pick.permutation(500) < 10).astype(int), {}


def thirty_decisions(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return *_values(pick, 400, 20, 4, 30), {}


def thirty_strata(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    # chance is tested within the classes of a column that goes with the decision
    x, _ = _values(pick, 600, 20, 3, 2)
    strata = pick.integers(0, 30, 600)
    y = (pick.random(600) < np.linspace(0.1, 0.9, 30)[strata]).astype(int)
    return np.column_stack([strata, x]), y, {"include": [0]}


def few_rows(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    n = int(pick.integers(8, 26))
    return *_values(pick, n, 20, int(pick.integers(2, 5)), 2), {}


def _rare(pick: np.random.Generator, n: int, k: int, ones: int) -> tuple[Any, Any, dict[str, Any]]:
    x = np.zeros((k, n), np.uint8)
    x[np.arange(k)[:, None], np.argpartition(pick.random((k, n), np.float32), ones, axis=1)[:, :ones]] = 1
    return x.T, (pick.permutation(n) < ones).astype(int), {}


def rare_of_500(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return _rare(pick, 1000, 500, 20)


def rare_of_5000(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return _rare(pick, 2000, 5000, 20)


REGIMES: tuple[Regime, ...] = (
    few_values, many_values, ids, rare_decision, thirty_decisions, thirty_strata, few_rows, rare_of_500, rare_of_5000
)  # fmt: skip


def normal_numbers(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    return pick.normal(size=(300, 20)), pick.normal(size=300), {"target_type": "numbers"}


def tied_numbers(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    # as incomes or rainfall: most rows have none, and some columns have rare values
    y = np.where(pick.random(300) < 0.8, 0.0, pick.exponential(size=300))
    x = np.where(pick.random((300, 20)) < np.linspace(0, 0.97, 20), 0.0, pick.normal(size=(300, 20)))
    return x, y, {"target_type": "numbers"}


def rare_numbers(pick: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    x, ones, _ = _rare(pick, 1000, 500, 20)
    return x, ones * pick.exponential(size=1000), {"target_type": "numbers"}


NUMERIC_REGIMES: tuple[Regime, ...] = (normal_numbers, tied_numbers, rare_numbers)


def noise() -> None:
    """Tables of pure noise: at most 66 of 1,000 may select an attribute."""
    for regime, selected in _noisy(REGIMES, _reduces).items():
        report(f"noise, {regime}: tables that select something : tables", selected, TABLES, 0.066, "")


def noise_classes() -> None:
    """The same for `select`: at most 66 in every regime, in one of them up to 75."""
    _report_select("select, noise", _noisy(REGIMES, _selects))


def noise_numbers() -> None:
    """The same for targets of numbers."""
    _report_select("select, numbers, noise", _noisy(NUMERIC_REGIMES, _selects))


def _report_select(what: str, selected_of: dict[str, int]) -> None:
    worst = max(selected_of, key=selected_of.__getitem__)
    for regime, selected in selected_of.items():
        bar = 0.075 if regime == worst else 0.066
        report(f"{what}, {regime}: tables that select something : tables", selected, TABLES, bar, "")


def _noisy(regimes: Sequence[Regime], selects: Selects) -> dict[str, int]:
    """How many tables of each regime select something."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        each = [[pool.submit(_selecting, regime, selects, part) for part in range(10)] for regime in regimes]
        return {
            regime.__name__.replace("_", " "): sum(part.result() for part in parts)
            for regime, parts in zip(regimes, each, strict=True)
        }


def _selecting(regime: Regime, selects: Selects, part: int) -> int:
    """How many tables of a tenth of a regime select something."""
    number = (*REGIMES, *NUMERIC_REGIMES).index(regime)
    return sum(selects(*regime(np.random.default_rng([number, i]))) for i in range(part, TABLES, 10))


def _reduces(x: Any, y: Any, options: dict[str, Any]) -> bool:
    reduct = plar.reduce(x, y=y, alpha=ALPHA, max_attributes=1 + len(options), n_jobs=1, **options)
    return len(reduct.steps) > 0


def _selects(x: Any, y: Any, options: dict[str, Any]) -> bool:
    # every column is a candidate, and the values of whole numbers are compared as they are
    bins = "auto" if x.dtype.kind == "f" else None
    every_column = [f"x{j}" for j in range(x.shape[1])]
    selection = plar.select(x, y=y, alpha=ALPHA, bins=bins, keep=every_column, n_jobs=1, **options)
    return len(selection.steps) > 0


def planted() -> None:
    """Nine of 500 bits decide, with 3 % noise; one more column is an id."""
    pick = np.random.default_rng(9)
    bits = pick.integers(0, 2, (6000, 500)).astype(np.uint8)
    used = np.sort(pick.choice(500, 9, replace=False))
    b = bits[:, used].astype(bool)
    rules = {
        "majority": b.sum(axis=1) >= 5,
        "disjunction": b[:, :3].all(axis=1) | b[:, 3:6].all(axis=1) | b[:, 6:].all(axis=1),
    }
    for name, clean in rules.items():
        y = clean ^ (pick.random(6000) < 0.03)
        table = {**{f"b{j}": bits[:3000, j] for j in range(500)}, "id": np.arange(3000)}
        selection = plar.select(table, y=y[:3000], alpha=ALPHA)
        n_right = len({f"b{j}" for j in used} & set(selection.columns))
        report(f"select, planted {name}: nine bits : of these selected", 9, n_right, 1, "")
        report(f"select, planted {name}: other columns : one", len(selection.columns) - n_right, 1, 1, "")
        reduct = plar.reduce(table, y=y[:3000], alpha=ALPHA)
        assert "id" not in reduct.attributes
        chosen = [int(a[1:]) for a in reduct.attributes]
        right = len(set(chosen) & set(used.tolist()))
        accuracy = _forest(bits[:3000][:, chosen], y[:3000], bits[3000:][:, chosen], clean[3000:])
        report(f"planted {name}: 7 bits of nine : found", 7, right, 1, "")
        report(f"planted {name}: other columns : one", len(chosen) - right, 1, 1, "")
        report(f"planted {name}: accuracy 0.9 : of a forest on new rows", 0.9, accuracy, 1, "")


def friedman() -> None:
    """Friedman's first function of five columns, with 35 more: at least four of the five, at most one other."""
    from sklearn.datasets import make_friedman1

    for seed in range(5):
        x, y = make_friedman1(1000, 40, noise=1.0, random_state=seed)
        columns = plar.select(x, y=y, alpha=ALPHA).columns
        n_right = len({f"x{j}" for j in range(5)} & set(columns))
        report(f"select, Friedman 1, seed {seed}: four columns : of five selected", 4, n_right, 1, "")
        report(f"select, Friedman 1, seed {seed}: other columns : one", len(columns) - n_right, 1, 1, "")


def _forest(x: Any, y: Any, new: Any, truth: Any) -> float:
    from sklearn.ensemble import RandomForestClassifier

    if not x.shape[1]:  # the most frequent decision
        values, counts = np.unique(y, return_counts=True)
        return float((truth == values[counts.argmax()]).mean())
    return float(RandomForestClassifier(100, random_state=0, n_jobs=-1).fit(x, y).score(new, truth))


#: of scikit-learn, numbers; of the paper, mostly categories
NINE = (
    "breast_cancer", "wine", "digits", "dermatology", "mushroom", "kr-vs-kp", "backup-large", "letter", "ticdata2000"
)  # fmt: skip


def junk() -> None:
    """The paper's tables with an id and five columns of noise added: accuracy of a forest on the chosen columns."""
    from sklearn.model_selection import StratifiedKFold

    data_folder()
    lost: dict[str, list[float]] = {"alpha": [], "relevant": []}
    for name in (name for name in datasets.names() if name != "kdd99"):
        granules = plar.granulate(datasets.load(name))
        codes = np.repeat(np.column_stack(granules.columns).astype(np.int64), granules.counts, axis=0)
        y = np.repeat(granules.decision_codes, granules.counts)
        pick = np.random.default_rng(7)
        rows = pick.permutation(len(y))[: 2000 if QUICK else 20_000]
        codes, y = codes[rows], y[rows]
        noise = np.stack([pick.integers(0, v, len(y)) for v in (2, 3, 5, 10, 50)], axis=1)
        x = np.column_stack([codes, np.arange(len(y)), noise])
        k = codes.shape[1]
        known = np.isin(y, np.flatnonzero(np.bincount(y) >= 3))
        x, y = x[known], y[known]
        scores: dict[str, list[float]] = {"all": [], "plain": [], "alpha": [], "relevant": []}
        sizes: dict[str, list[int]] = {"alpha": [], "relevant": []}
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
            chosen = {
                "all": list(range(x.shape[1])),
                "plain": _places(plar.reduce(x[train], y=y[train])),
                "alpha": _places(plar.reduce(x[train], y=y[train], alpha=ALPHA)),
                "relevant": _places(plar.relevant(x[train], y=y[train], alpha=ALPHA)),
            }
            for how, places in chosen.items():
                scores[how].append(_forest(x[train][:, places], y[train], x[test][:, places], y[test]))
            for how, counts in sizes.items():
                counts.append(len(chosen[how]))
                assert k not in chosen[how], f"{name}: the id was chosen by {how}"
        means = {how: float(np.mean(some)) for how, some in scores.items()}
        for how in lost:
            lost[how].append(means["all"] - means[how])
        print(f"      {name}: all {means['all']:.3f}, plain {means['plain']:.3f}, alpha {means['alpha']:.3f} "
              f"({np.mean(sizes['alpha']):.1f} columns), relevant {means['relevant']:.3f} "
              f"({np.mean(sizes['relevant']):.1f})", flush=True)  # fmt: skip
    for how, bar in (("alpha", 0.045), ("relevant", 0.015)):
        report(f"nine tables with junk, accuracy lost by {how} : allowed", float(np.mean(lost[how])), bar, 1, "")


def select_junk() -> None:
    """Accuracy that `select` loses on nine tables with junk columns added, and how often it takes such a column."""
    from comparison import N_JUNK, load, with_junk
    from sklearn.model_selection import StratifiedKFold

    data_folder()
    n_folds = 3
    lost: list[float] = []
    shares: list[float] = []
    n_with_junk = 0
    for name in NINE:
        table = load(name, most_rows=600 if QUICK else 1500, n_folds=n_folds)
        x = with_junk(table.rows)
        y = table.target
        of_all: list[float] = []
        of_selected: list[float] = []
        sizes: list[int] = []
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(x, y):
            selected = [int(column.removeprefix("x")) for column in plar.select(x[train], y=y[train]).columns]
            of_all.append(_forest(x[train], y[train], x[test], y[test]))
            of_selected.append(_forest(x[train][:, selected], y[train], x[test][:, selected], y[test]))
            sizes.append(len(selected))
            n_with_junk += any(place >= x.shape[1] - N_JUNK for place in selected)
        print(f"      {name}: all {x.shape[1]} columns {np.mean(of_all):.3f}, "
              f"select {np.mean(sizes):.1f} columns {np.mean(of_selected):.3f}", flush=True)  # fmt: skip
        lost.append(float(np.mean(of_all) - np.mean(of_selected)))
        shares.append(float(np.mean(sizes) / x.shape[1]))
    report("select, nine tables with junk, accuracy lost : allowed", float(np.mean(lost)), 0.005, 1, "")
    report("select, nine tables with junk, share of the columns : half", float(np.mean(shares)), 0.5, 1, "")
    report("select, nine tables with junk, runs of 27 with junk selected : one", n_with_junk, 1, 1, "")


def _places(result: Any) -> list[int]:
    return sorted(int(a[1:]) for a in result.attributes)


def sdss() -> None:
    """What the test costs where a step is long: SDSS shape, ten planted attributes."""
    n, k = (32_000, 1200) if QUICK else (320_000, 5201)
    x, _ = datasets.random_table(n, k, values=8, classes=2, seed=3)
    used = np.arange(10) * (k // 10) + 3
    x[:, used] //= 4  # two values, so that a class of U/R still has rows when nine are chosen
    y = x[:, used].sum(axis=1) >= 5
    granules = plar.granulate(x, y=y.astype(np.uint8))
    del x
    names = {granules.conditions[a] for a in used}
    reduct = plar.reduce(granules, alpha=ALPHA, max_attributes=10)
    assert set(reduct.attributes) == names, reduct.attributes
    evaluation = LocalEngine().open(granules, SCE)
    times, chosen = timed_steps(evaluation, k, 10)
    assert {granules.conditions[a] for a in chosen} == names
    report("SDSS shape, ten planted attributes, alpha : plain steps to the same ten",
           sum(step.seconds for step in reduct.steps), sum(times), 2)  # fmt: skip
    evaluation, tested = LocalEngine().open(granules, SCE), 0.0
    adjusted_p_value(next(iter(evaluation.cross_tabs(chosen))), k)  # compiles
    for i, a in enumerate(chosen):
        began = time.perf_counter()
        adjusted_p_value(next(iter(evaluation.cross_tabs([a]))), k - i)
        tested += time.perf_counter() - began
        evaluation.select(a)
    report("SDSS shape, p-values of ten steps : the steps", tested, sum(times), 0.05)


def counts() -> None:
    """A hundred searches with other counts for the same granules, which are not read again."""
    granules = plar.granulate(datasets.load("kdd99", data_folder()))
    pick = np.random.default_rng(0)
    shares = granules.counts / granules.n_objects
    n, seconds, one = 10 if QUICK else 100, 0.0, 0.0
    granules.with_counts(np.arange(len(granules)) % 2)  # compiles
    for _ in range(n):
        drawn = pick.multinomial(granules.n_objects, shares)
        began = time.perf_counter()
        assert plar.reduce(granules.with_counts(drawn)).n_objects == granules.n_objects
        seconds += time.perf_counter() - began
        one += best(lambda: plar.reduce(granules), 1)  # in turn, so that a noisy machine disturbs both
    report(f"KDD99 10 %, {n} searches with other counts : {n} with its own", seconds, one, 1)


if __name__ == "__main__":
    run((noise, noise_classes, noise_numbers, planted, friedman, select_junk, junk, sdss, counts), "selection.json")
