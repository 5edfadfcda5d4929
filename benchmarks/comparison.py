"""How well the chosen columns predict, beside other selectors, with and without junk columns.

    python benchmarks/comparison.py    # QUICK=1: two tables, one fold, written nowhere

Every selector sees only the training rows of a fold; a forest on the columns it chose is scored on the other rows: by
accuracy, or by R² if the target is numbers. Figures go to benchmarks/results/selection.json, and from there into
README.md, docs/index.md, docs/howto/prediction.md and docs/pictures/selection.svg.
"""

from __future__ import annotations

import csv
import json
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from bars import ROOT
from methods import PEERS, methods_for

import plar
from plar import datasets

QUICK = bool(os.environ.get("QUICK"))
FOLDS = 5
JSON = ROOT / "benchmarks" / "results" / "selection.json"
#: the pages, and whether they show every table or only the means
PAGES = {"README.md": False, "docs/index.md": False, "docs/howto/prediction.md": True}
BEGIN = "<!-- made by make bench-selection -->\n"
END = "<!-- end -->"

#: of scikit-learn, numbers; of the paper, mostly categories
CLASSES = ("breast_cancer", "wine", "digits")
PAPERS = ("dermatology", "mushroom", "kr-vs-kp")
#: with a target of numbers: of scikit-learn, of the package ISLP, and a formula of five columns among ten
NUMBERS = ("diabetes", "college", "friedman")
MOST_ROWS = 600
N_JUNK = 6


class Table(NamedTuple):
    """A table to select from."""

    rows: Any
    target: Any
    #: whether the target is numbers
    is_numeric: bool
    #: how the plain reduct cuts numbers
    bins: str


@dataclass(frozen=True)
class Score:
    """What one method does on one table: means over the folds."""

    table: str
    target: str
    junk: bool
    method: str
    #: accuracy, or R²
    score: float
    columns: float
    #: junk columns among them
    junk_columns: float
    seconds: float


def load(name: str, most_rows: int = MOST_ROWS, n_folds: int = FOLDS) -> Table:
    """At most so many rows of a table, in an order of their own, without classes of fewer rows than there are folds."""
    if name in NUMBERS:
        x, y = _with_numeric_target(name)
        table = Table(x, y, is_numeric=True, bins="quantile:4")
    elif name in CLASSES:
        import sklearn.datasets

        x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        table = Table(x, y, is_numeric=False, bins="mdlp")
    else:
        granules = plar.granulate(datasets.load(name))
        x = np.repeat(np.column_stack(granules.columns).astype(np.int64), granules.counts, axis=0)
        y = np.repeat(granules.decision_codes, granules.counts)
        table = Table(x, y, is_numeric=False, bins="quantile:4")
    chosen = np.random.default_rng(7).permutation(len(table.target))[:most_rows]
    if not table.is_numeric:
        values, counts = np.unique(table.target[chosen], return_counts=True)
        chosen = chosen[np.isin(table.target[chosen], values[counts >= n_folds])]
    return table._replace(rows=table.rows[chosen], target=table.target[chosen])


def _with_numeric_target(name: str) -> tuple[Any, Any]:
    import sklearn.datasets

    if name == "diabetes":
        x, y = sklearn.datasets.load_diabetes(return_X_y=True)
    elif name == "friedman":
        x, y = sklearn.datasets.make_friedman1(MOST_ROWS, n_features=10, noise=1.0, random_state=0)
    else:  # colleges of the USA: who graduates?
        with (PEERS / "ISLP" / "data" / "College.csv").open(newline="") as file:
            colleges = list(csv.DictReader(file))
        y = np.array([float(college.pop("Grad.Rate")) for college in colleges])
        x = np.array([[_number(value) for value in college.values()] for college in colleges])
    return x, y


def _number(text: str) -> float:
    return {"Yes": 1.0, "No": 0.0}[text] if text in ("Yes", "No") else float(text)


def with_junk(x: Any) -> Any:
    """Add an id, and five columns of noise."""
    pick = np.random.default_rng(8)
    noise = [pick.integers(0, values, len(x)) for values in (2, 3, 5, 10, 50)]
    return np.column_stack([x, np.arange(len(x)), *noise])


def scores_of_fold(name: str, junk: bool, fold: int) -> list[Score]:
    """What every method does in one fold of one table."""
    from sklearn.model_selection import KFold, StratifiedKFold

    warnings.simplefilter("ignore")
    table = load(name)
    x = with_junk(table.rows) if junk else table.rows
    y = table.target
    kind = KFold if table.is_numeric else StratifiedKFold
    train, test = list(kind(FOLDS, shuffle=True, random_state=0).split(x, y))[fold]
    scores: list[Score] = []
    n_selected = 1
    for method, (_, select, is_given_number) in methods_for(table.is_numeric, table.bins).items():
        if method in ("select", "alpha", "relevant", "reduct"):
            select(x[train], y[train], n_selected)  # compiles
        began = time.perf_counter()
        chosen = select(x[train], y[train], n_selected)
        seconds = time.perf_counter() - began
        if method == "select":
            n_selected = max(len(chosen), 1)
        assert not is_given_number or len(chosen) <= n_selected, method
        scores.append(
            Score(
                table=name,
                target="numbers" if table.is_numeric else "classes",
                junk=junk,
                method=method,
                score=_forest_score(table.is_numeric, x[train][:, chosen], y[train], x[test][:, chosen], y[test]),
                columns=len(chosen),
                junk_columns=sum(place >= x.shape[1] - N_JUNK for place in chosen) if junk else 0,
                seconds=seconds,
            )
        )
    return scores


def _forest_score(is_numeric: bool, x: Any, y: Any, new: Any, truth: Any) -> float:
    """The score of a forest; without a column, of the most frequent class or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    model: Any
    if not x.shape[1]:
        model = DummyRegressor() if is_numeric else DummyClassifier()
        x = np.zeros((len(x), 1))
        new = np.zeros((len(new), 1))
    elif is_numeric:
        model = RandomForestRegressor(100, random_state=0)
    else:
        model = RandomForestClassifier(100, random_state=0)
    return float(model.fit(x, y).score(new, truth))


def compare() -> list[Score]:
    """The means over the folds, of every method on every table."""
    papers = PAPERS if os.environ.get("PLAR_DATA") else ()
    names = (CLASSES[1], NUMBERS[0]) if QUICK else (*CLASSES, *papers, *NUMBERS)
    folds = range(1 if QUICK else FOLDS)
    means: list[Score] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = {
            (name, junk): [pool.submit(scores_of_fold, name, junk, fold) for fold in folds]
            for name in names
            for junk in (False, True)
        }
        for (name, junk), futures in waiting.items():
            by_method = [_mean_score(of_method) for of_method in zip(*(f.result() for f in futures), strict=True)]
            means += by_method
            words = [f"{mean.method} {mean.score:.3f} ({mean.columns:g})" for mean in by_method]
            print(f"      {name}{' with junk' if junk else ''}: {', '.join(words)}", flush=True)
    return means


def _mean_score(scores: Sequence[Score]) -> Score:
    """One score of several of the same method and table, rounded as it is shown."""
    first = scores[0]
    return Score(
        table=first.table,
        target=first.target,
        junk=first.junk,
        method=first.method,
        score=round(fmean(score.score for score in scores), 4),
        columns=round(fmean(score.columns for score in scores), 2),
        junk_columns=round(fmean(score.junk_columns for score in scores), 2),
        seconds=float(f"{fmean(score.seconds for score in scores):.2g}"),
    )


# -- what the documentation shows ------------------------------------------------------------------------------


def measured() -> list[Score]:
    """The figures of the last run that was written."""
    return [Score(**score) for score in json.loads(JSON.read_text())]


def page_part(scores: Sequence[Score], every_table: bool) -> str:
    """The figures as Markdown: in one table the means with junk added; or all means, and each table."""
    if not every_table:
        return _markdown_with_junk(scores)
    parts = []
    for target in ("classes", "numbers"):
        of_target = [score for score in scores if score.target == target]
        parts.append(_markdown(f"{_n_tables(of_target)} tables, {target}", of_target))
    for name in dict.fromkeys(score.table for score in scores):
        parts.append(_markdown(name, [score for score in scores if score.table == name]))
    return "\n".join(parts)


def _n_tables(scores: Sequence[Score]) -> int:
    return len({score.table for score in scores})


def _markdown_with_junk(scores: Sequence[Score]) -> str:
    """A line for each method: means over the tables with a target of classes, then over those with numbers."""
    with_junk = [score for score in scores if score.junk]
    classes = [score for score in with_junk if score.target == "classes"]
    numbers = [score for score in with_junk if score.target == "numbers"]
    lines = [
        f"| six junk columns added | {_n_tables(classes)} tables, classes: columns | of them junk | accuracy "
        f"| {_n_tables(numbers)} tables, numbers: columns | of them junk | R² |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for method, (words, _, _) in methods_for(False, "auto").items():
        line = f"| {words} "
        for of_target in (classes, numbers):
            mean = _mean_score([score for score in of_target if score.method == method])
            line += f"| {mean.columns:.0f} | {mean.junk_columns:.1f} | {mean.score:.3f} "
        lines.append(line + "|")
    return "\n".join(lines) + "\n"


def _markdown(title: str, scores: Sequence[Score]) -> str:
    """A table with a line for each method: means over the tables that the scores are of."""
    is_numeric = scores[0].target == "numbers"
    measure = "R²" if is_numeric else "accuracy"
    lines = [
        f"| **{title}** | columns | {measure} | seconds | columns, junk added | of them junk | {measure}, junk added |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for method, (words, _, _) in methods_for(is_numeric, "auto").items():
        plain = _mean_score([score for score in scores if score.method == method and not score.junk])
        junk = _mean_score([score for score in scores if score.method == method and score.junk])
        seconds = "" if method == "all" else f"{plain.seconds:.2g}"
        lines.append(
            f"| {words} | {plain.columns:.0f} | {plain.score:.3f} | {seconds} "
            f"| {junk.columns:.0f} | {junk.junk_columns:.1f} | {junk.score:.3f} |"
        )
    return "\n".join(lines) + "\n"


def written(page: str, scores: Sequence[Score], every_table: bool) -> str:
    """A page with the tables in their place."""
    head, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{head}{BEGIN}\n{page_part(scores, every_table)}\n{END}{after}"


def write_pages(scores: Iterable[Score]) -> None:
    """Write the figures where they are shown."""
    scores = list(scores)
    for name, every_table in PAGES.items():
        page = ROOT / name
        page.write_text(written(page.read_text(encoding="utf-8"), scores, every_table), encoding="utf-8")


def main() -> None:
    """Compare, and write the figures."""
    began = time.perf_counter()
    scores = compare()
    print(f"      compared in {time.perf_counter() - began:.0f} s", flush=True)
    if QUICK or not os.environ.get("PLAR_DATA"):
        return
    JSON.write_text(json.dumps([asdict(score) for score in scores], indent=1) + "\n")
    write_pages(scores)


if __name__ == "__main__":
    main()
