"""How well the chosen columns predict, beside scikit-learn's selectors and Boruta, with and without junk columns.

    python benchmarks/comparison.py    # QUICK=1: two tables, one fold, written nowhere

Every selector sees only the training rows of a fold; a forest on the columns it chose is scored on the other rows.
Figures go to benchmarks/results/selection.json, and from there into README.md, docs/index.md, docs/howto/prediction.md
and docs/pictures/selection.svg.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from bars import HERE, ROOT

import plar
from plar import datasets

QUICK = bool(os.environ.get("QUICK"))
FOLDS = 3
JSON = ROOT / "benchmarks" / "results" / "selection.json"
PAGES = {"README.md": ("breast_cancer",), "docs/index.md": ("breast_cancer",), "docs/howto/prediction.md": ()}
BEGIN, END = "<!-- made by make bench-selection -->\n", "<!-- end -->"
#: tables of everybody, whose numbers plar cuts into bins (mdlp, four where chance is tested), then the paper's; and how
#: many rows are taken
TABLES = ("breast_cancer", "wine", "digits")
PAPERS = ("dermatology", "mushroom", "kr-vs-kp")
MOST_ROWS = 600
METHODS = {
    "all": "all columns",
    "reduct": "plar `ReductSelector()`",
    "alpha": "plar `ReductSelector(alpha=0.05)`",
    "relevant": "plar `RelevantSelector()`",
    "mutual_info": "`SelectKBest(mutual_info)`, as many columns as `alpha`",
    "sequential": "`SequentialFeatureSelector(tree)`, as many columns as `alpha`",
    "boruta": "Boruta",
}


def load(name: str) -> tuple[Any, Any, str | None]:
    """Rows, decisions, and how plar should cut the numbers."""
    if name in TABLES:
        import sklearn.datasets

        x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        bins = "quantile:4"
    else:
        granules = plar.granulate(datasets.load(name))
        x = np.repeat(np.column_stack(granules.columns).astype(np.int64), granules.counts, axis=0)
        y, bins = np.repeat(granules.decision_codes, granules.counts), None
    rows = np.random.default_rng(7).permutation(len(y))[:MOST_ROWS]
    x, y = x[rows], y[rows]
    known = np.isin(y, [value for value, n in zip(*np.unique(y, return_counts=True), strict=True) if n >= FOLDS])
    return x[known], y[known], bins


def with_junk(x: Any) -> Any:
    """Add an id, and five columns of noise."""
    pick = np.random.default_rng(8)
    noise = [pick.integers(0, values, len(x)) for values in (2, 3, 5, 10, 50)]
    return np.column_stack([x, np.arange(len(x)), *noise])


def selectors(bins: str | None) -> Iterator[tuple[str, Callable[[Any, Any, int], Any]]]:
    """Every method as a function of rows, decisions and the number of columns that alpha chose; returns the choice."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import SelectKBest, SequentialFeatureSelector, mutual_info_classif
    from sklearn.tree import DecisionTreeClassifier

    from plar.sklearn import ReductSelector, RelevantSelector

    yield "all", lambda x, y, k: np.ones(x.shape[1], bool)
    yield "alpha", lambda x, y, k: ReductSelector(alpha=0.05, bins=bins).fit(x, y).get_support()
    yield "reduct", lambda x, y, k: ReductSelector(bins=bins and "mdlp").fit(x, y).get_support()
    yield "relevant", lambda x, y, k: RelevantSelector(bins=bins).fit(x, y).get_support()
    information = partial(mutual_info_classif, discrete_features=bins is None, random_state=0)
    yield "mutual_info", lambda x, y, k: SelectKBest(information, k=k).fit(x, y).get_support()
    tree = DecisionTreeClassifier(random_state=0)
    sequential = partial(SequentialFeatureSelector, tree, cv=3)
    yield "sequential", lambda x, y, k: sequential(n_features_to_select=k).fit(x, y).get_support()
    if (HERE / "boruta").exists():
        sys.path.append(str(HERE / "boruta"))
        forest = RandomForestClassifier(max_depth=5, random_state=0)
        boruta = import_module("boruta").BorutaPy(forest, n_estimators="auto", random_state=0, early_stopping=True)
        yield "boruta", lambda x, y, k: boruta.fit(x, y).support_


def fold(name: str, junk: bool, number: int) -> dict[str, tuple[float, int, float]]:
    """Accuracy, columns and seconds of every method, for one fold of one table."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold

    warnings.simplefilter("ignore")
    x, y, bins = load(name)
    x = with_junk(x) if junk else x
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y))[number]
    scores = {}
    k = 1
    for method, select in selectors(bins):
        if method in ("alpha", "reduct", "relevant"):
            select(x[train], y[train], k)  # compiles
        began = time.perf_counter()
        chosen = select(x[train], y[train], k)
        seconds, n = time.perf_counter() - began, int(chosen.sum())
        if method == "alpha":
            k = max(n, 1)
        places = chosen if n else np.arange(x.shape[1]) == 0
        forest = RandomForestClassifier(100, random_state=0).fit(x[train][:, places], y[train])
        scores[method] = float(forest.score(x[test][:, places], y[test])), n, seconds
    return scores


def compare() -> list[dict[str, Any]]:
    """Mean accuracy, columns and seconds of every method on every table."""
    names = TABLES[:2] if QUICK else (*TABLES, *(PAPERS if os.environ.get("PLAR_DATA") else ()))
    cases = [(name, junk) for name in names for junk in (False, True)]
    numbers = range(1 if QUICK else FOLDS)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        asked = {case: [pool.submit(fold, *case, number) for number in numbers] for case in cases}
        rows = []
        for (name, junk), waiting in asked.items():
            folds = [one.result() for one in waiting]
            methods = [method for method in METHODS if method in folds[0]]
            for method in methods:
                accuracy, columns, seconds = np.mean([one[method] for one in folds], axis=0).tolist()
                rows.append({"table": name, "junk": junk, "method": method, "accuracy": round(accuracy, 4),
                             "columns": round(columns, 2), "seconds": float(f"{seconds:.2g}")})  # fmt: skip
            print(f"      {name}{' with junk' if junk else ''}: "
                  + ", ".join(f"{r['method']} {r['accuracy']:.3f} ({r['columns']:g})" for r in rows[-len(methods) :]),
                  flush=True)  # fmt: skip
    return rows


def table_of(rows: list[dict[str, Any]], tables: tuple[str, ...] = ()) -> str:
    """The rows as Markdown tables, a line for each method; of all tables, or of some."""
    shown = [name for name in dict.fromkeys(row["table"] for row in rows) if not tables or name in tables]
    lines = []
    for name in shown:
        own = {(row["junk"], row["method"]): row for row in rows if row["table"] == name}
        lines += [f"| **{name}** | columns | accuracy | seconds | columns, junk added | accuracy, junk added |",
                  "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
        for method, words in METHODS.items():
            if (False, method) in own:
                plain, junk = own[False, method], own[True, method]
                seconds = "" if method == "all" else f"{plain['seconds']:.2g}"
                lines.append(
                    f"| {words} | {plain['columns']:.0f} | {plain['accuracy']:.3f} | {seconds} "
                    f"| {junk['columns']:.0f} | {junk['accuracy']:.3f} |"
                )
        lines.append("")
    return "\n".join(lines)


def written(page: str, rows: list[dict[str, Any]], tables: tuple[str, ...]) -> str:
    """A page with the table in its place."""
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n{table_of(rows, tables)}\n{END}{rest.split(END, 1)[1]}"


def main() -> None:
    """Compare, and write the figures where they are shown."""
    began = time.perf_counter()
    rows = compare()
    print(f"      compared in {time.perf_counter() - began:.0f} s", flush=True)
    if QUICK or not os.environ.get("PLAR_DATA") or len({row["method"] for row in rows}) < len(METHODS):
        return
    JSON.write_text(json.dumps(rows, indent=1) + "\n")
    for name, tables in PAGES.items():
        page = ROOT / name
        page.write_text(written(page.read_text(encoding="utf-8"), rows, tables), encoding="utf-8")


if __name__ == "__main__":
    main()
