"""What rules are worth: accuracy and size beside trees and RIPPER, noise, a published rule set, and speed.

    python benchmarks/rules.py                  # all rows (make bench-rules); QUICK=1: fewer tables, written nowhere
    python benchmarks/rules.py noise kdd99      # some rows

Figures go to .bench/rules.json; those of the comparison also to benchmarks/results/rules.json, and from there into
docs/howto/rules.md.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
from bars import AS_INSTALLED, HERE, ROOT, Skip, data_folder, in_turn, report, run
from numpy.typing import NDArray
from rule_peers import HEADS, METHODS, WORDS, Table

import plar
from plar import datasets

QUICK = bool(os.environ.get("QUICK"))
JSON = ROOT / "benchmarks" / "results" / "rules.json"
PAGE = ROOT / "docs" / "howto" / "rules.md"
BEGIN = "<!-- made by make bench-rules -->\n"
END = "<!-- end -->"

#: of scikit-learn; of the paper
NINE = (
    "breast_cancer", "wine", "digits", "dermatology", "mushroom", "kr-vs-kp", "backup-large", "letter", "ticdata2000"
)  # fmt: skip
OTHERS = ("iris",)
FOLDS = 3
MOST_ROWS = 300 if QUICK else 1500
NOISE_TABLES = 50 if QUICK else 500


# -- accuracy and size -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """What one method does on one table: means over the folds."""

    table: str
    method: str
    accuracy: float
    #: rules, or leaves
    rules: float
    #: per rule, or the mean depth of the leaves
    conditions: float
    seconds: float


def load(name: str) -> Table:
    """At most so many rows of a table, in an order of their own, without classes of fewer rows than there are folds."""
    table = _of_sklearn(name) if name in ("breast_cancer", "wine", "digits", "iris") else _of_paper(name)
    table = table.rows(np.random.default_rng(7).permutation(len(table.target))[:MOST_ROWS])
    classes, sizes = np.unique(table.target, return_counts=True)
    return table.rows(np.flatnonzero(np.isin(table.target, classes[sizes >= FOLDS])))


def _of_sklearn(name: str) -> Table:
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    target = np.array([str(data.target_names[code]) for code in data.target])
    return Table({f"x{j}": column.astype(float) for j, column in enumerate(data.data.T)}, target)


def _of_paper(name: str) -> Table:
    granules = plar.granulate(datasets.load(name, data_folder()))
    repeats = granules.counts
    columns = {
        column: np.repeat(_as_column(values)[codes], repeats)
        for column, values, codes in zip(granules.conditions, granules.dictionaries, granules.columns, strict=True)
    }
    classes = np.array([str(value) for value in granules.decision_values[0]])
    return Table(columns, np.repeat(classes[granules.decision_codes], repeats))


def _as_column(texts: Sequence[Any]) -> NDArray[Any]:
    """The values of a column of a text file: numbers, if they are nothing else."""
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        column = np.empty(len(texts), object)
        column[:] = texts
        return column


def scores_of(name: str, method: str) -> Score | None:
    """What a method does on a table; None if it cannot."""
    from sklearn.model_selection import StratifiedKFold

    table = load(name)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(table.target)), table.target)
    scores: list[tuple[float, float, float, float]] = []
    for number, (train, test) in enumerate(folds):
        learn = METHODS[method]
        try:
            if number == 0 and method in ("tested", "certain"):
                learn(table.rows(train), table.rows(test))  # compiles
            began = time.perf_counter()
            learned = learn(table.rows(train), table.rows(test))
        except Skip:
            return None
        seconds = time.perf_counter() - began
        accuracy = float(np.mean(np.asarray(learned.predictions) == table.target[test]))
        scores.append((accuracy, learned.n_rules, learned.n_conditions, seconds))
    accuracy, n_rules, n_conditions, seconds = map(fmean, zip(*scores, strict=True))
    return Score(
        table=name,
        method=method,
        accuracy=round(accuracy, 4),
        rules=round(n_rules, 1),
        conditions=round(n_conditions, 1),
        seconds=float(f"{seconds:.2g}"),
    )


def accuracy() -> None:
    """Accuracy, number of rules and seconds on nine tables and one more, beside trees and RIPPER."""
    data_folder()
    names = NINE[:3] if QUICK else (*NINE, *OTHERS)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = [pool.submit(scores_of, name, method) for name in names for method in METHODS]
        scores = [score for future in waiting if (score := future.result()) is not None]
    for name in names:
        words = [f"{s.method} {s.accuracy:.3f} ({s.rules:g} × {s.conditions:g})" for s in scores if s.table == name]
        print(f"      {name}: {', '.join(words)}", flush=True)
    of_nine = {method: _mean([s for s in scores if s.method == method and s.table in NINE]) for method in METHODS}
    ours = of_nine["tested"]
    tree = of_nine["tree"]
    report("nine tables, accuracy of scikit-learn's tree : of tested rules", tree.accuracy, ours.accuracy, 1, "")
    report("nine tables, accuracy 0.895 : of tested rules", 0.895, ours.accuracy, 1, "")
    report("nine tables, tested rules : leaves of the tree", ours.rules, tree.rules, 1, "")
    if not QUICK:
        JSON.write_text(json.dumps([asdict(score) for score in scores], indent=1) + "\n")
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), scores), encoding="utf-8")


def _mean(scores: Sequence[Score]) -> Score:
    """One score of several of one method."""
    return Score(
        table=f"{len(scores)} tables",
        method=scores[0].method,
        accuracy=fmean(score.accuracy for score in scores),
        rules=fmean(score.rules for score in scores),
        conditions=fmean(score.conditions for score in scores),
        seconds=fmean(score.seconds for score in scores),
    )


def measured() -> list[Score]:
    """The figures of the last run that was written."""
    return [Score(**score) for score in json.loads(JSON.read_text())]


def page_part(scores: Sequence[Score]) -> str:
    """The figures as Markdown: means over the nine tables, then each table."""
    lines = [
        "| mean of nine tables | accuracy | rules or leaves | conditions each | seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    by_method = {method: [s for s in scores if s.method == method] for method in METHODS}
    for method, of_method in by_method.items():
        of_nine = [score for score in of_method if score.table in NINE]
        if len(of_nine) == len(NINE):
            mean = _mean(of_nine)
            lines.append(
                f"| {WORDS[method]} | {mean.accuracy:.3f} | {mean.rules:.0f} | {mean.conditions:.1f} "
                f"| {mean.seconds:.2g} |"
            )
    heads = " | ".join(HEADS[method] for method in METHODS)
    lines += ["", f"| accuracy (rules or leaves) | {heads} |", "|---|" + "---:|" * len(METHODS)]
    for name in dict.fromkeys(score.table for score in scores):
        cells = []
        for of_method in by_method.values():
            cells += [f"{s.accuracy:.3f} ({s.rules:.0f})" for s in of_method if s.table == name] or ["–"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def written(page: str, scores: Sequence[Score]) -> str:
    """A page with the tables in their place."""
    head, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{head}{BEGIN}\n{page_part(scores)}\n{END}{after}"


# -- noise and a published rule set ----------------------------------------------------------------------------


def noise() -> None:
    """Tables of pure noise: a rule at all in at most 5 % of them, plus two standard errors."""
    bar = 0.05 + 2 * (0.05 * 0.95 / NOISE_TABLES) ** 0.5
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for kind in ("text", "numbers"):
            for n_decisions in (2, 3, 5, 10):
                has_rules = pool.map(_noise_has_rules, *zip(*_noise_tables(kind, n_decisions), strict=True))
                what = f"noise, {kind}, {n_decisions} decisions: tables with a rule : tables"
                report(what, sum(has_rules), NOISE_TABLES, bar, "")


def _noise_tables(kind: str, n_decisions: int) -> Iterator[tuple[str, int, int]]:
    for number in range(NOISE_TABLES):
        yield kind, n_decisions, number


def _noise_has_rules(kind: str, n_decisions: int, number: int) -> bool:
    pick = np.random.default_rng([n_decisions, number, len(kind)])
    n_rows = int(pick.integers(50, 500))
    columns: dict[str, Any] = {}
    for j in range(20):
        if kind == "numbers":
            columns[f"x{j}"] = pick.normal(size=n_rows)
        else:
            columns[f"x{j}"] = [f"v{code}" for code in pick.integers(0, pick.integers(2, 8), n_rows)]
    decisions = [f"d{code}" for code in pick.integers(0, n_decisions, n_rows)]
    return len(plar.rules(columns, y=decisions, n_jobs=1)) > 0


#: cases of flu, and the possible rules that LEM2 finds: tables 8.3 and 8.5 of J. Grzymala-Busse, "A Comparison of
#: Rule Induction Using Feature Selection and the LEM2 Algorithm", in "Feature Selection for Data and Pattern
#: Recognition", Springer 2015
FLU = {
    "Temperature": ["high", "very_high", "very_high", "normal", "high", "normal", "high"],
    "Headache": ["yes", "no", "yes", "no", "no", "yes", "yes"],
    "Nausea": ["no", "no", "no", "no", "yes", "yes", "no"],
    "Flu": ["yes", "yes", "no", "no", "maybe", "maybe", "no"],
}
PUBLISHED = {
    "if Nausea = no and Temperature = high then yes",
    "if Temperature = very_high and Headache = no then yes",
    "if Nausea = no and Headache = yes then no",
    "if Temperature = normal and Headache = no then no",
    "if Nausea = yes then maybe",
}


def published() -> None:
    """The possible rules of LEM2 as published, one by one."""
    rules = plar.rules(FLU, "Flu", kind="possible")
    n_same = len(PUBLISHED & set(map(str, rules)))
    report("LEM2 as published: rules : rules that are the same", len(rules), n_same, 1, "")


# -- speed -----------------------------------------------------------------------------------------------------

FIT_TREE = """
import sys, time, numpy as np
from sklearn.tree import DecisionTreeClassifier
table = np.load(sys.argv[1])
seconds = []
for _ in range(2):
    began = time.perf_counter()
    DecisionTreeClassifier(random_state=0).fit(table["codes"], table["decisions"])
    seconds.append(time.perf_counter() - began)
print(min(seconds))
"""
FIND_RULES = """
import resource, sys, time, plar
plar.rules({"a": [0, 1] * 20, "b": [i / 3 for i in range(40)], "d": ["n", "y"] * 20}, "d")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
rules = plar.rules(sys.argv[1], "target")
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert rules.complete and len(rules.decisions) == 5
print(seconds, len(rules), (peak - before) / 1024)
"""


def wide_csv() -> None:
    """100,000 rows of 50 columns from a CSV, five classes: codes of eight values, then numbers."""
    n = 10_000 if QUICK else 100_000
    for kind in ("codes", "numbers"):
        path = HERE / f"rules_{kind}_{n}.csv"
        codes_path = path.with_suffix(".npz")
        if not codes_path.exists():
            _write_wide(kind, n, path)
            granules = plar.granulate(path, "target", bins={f"c{j}": "auto:10" for j in range(50)})
            np.savez(codes_path, codes=np.column_stack(granules.columns), decisions=granules.decision_codes)
        ratios = []
        for _ in range(2):  # in turn, so that a noisy machine disturbs both
            tree = float(_printed(FIT_TREE, codes_path)[0])
            seconds, n_rules, megabytes = map(float, _printed(FIND_RULES, path))
            ratios.append((seconds / tree, seconds, tree))
        _, seconds, tree = min(ratios)
        what = f"{n:,} × 50 {kind} from a CSV, {n_rules:,.0f} rules (+{megabytes:.0f} MB) : scikit-learn's tree"
        report(what, seconds, tree, 20)


def _write_wide(kind: str, n: int, path: Any) -> None:
    pick = np.random.default_rng(1)
    x: NDArray[Any]
    if kind == "codes":
        x = pick.integers(0, 8, (n, 50))
        score = (x[:, 0] > 3) + 1 * (x[:, 1] > 4) + 2 * ((x[:, 2] == 1) & (x[:, 3] < 4)) + (x[:, 4] + x[:, 5] > 8)
        target = np.minimum(score, 4)
        is_noise = pick.random(n) < 0.1
        target[is_noise] = pick.integers(0, 5, is_noise.sum())
    else:
        x = pick.normal(size=(n, 50)).round(4)
        amount = x[:, 0] + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) - 0.5 * x[:, 4] + pick.normal(size=n) / 2
        target = np.digitize(amount, np.quantile(amount, [0.2, 0.4, 0.6, 0.8]))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"c{j}" for j in range(50)), "target"])
        writer.writerows([*row, f"class {code}"] for row, code in zip(x.tolist(), target.tolist(), strict=True))


def _printed(script: str, path: Any) -> list[str]:
    """What a script prints, run by itself."""
    command = [sys.executable, "-W", "ignore", "-c", script, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=AS_INSTALLED).stdout.split()


READ = "import polars, sys; print(polars.read_csv(sys.argv[1], has_header=False).shape)"
PREDICT = """
import sys, plar
predictions = plar.load(sys.argv[2]).predict(sys.argv[1])
assert len(predictions) == 494_021
"""


def kdd99() -> None:
    """Certain rules at deciles in less than a minute; prediction of all rows, beside polars reading them."""
    path = data_folder() / "kddcup.data_10_percent.gz"
    options: dict[str, Any] = {"header": False, "separator": ","}
    plar.rules({"a": [0, 1] * 20, "b": np.arange(40) / 3, "d": ["n", "y"] * 20}, "d", kind="certain")  # compiles
    began = time.perf_counter()
    rules = plar.rules(path, -1, kind="certain", **options)
    seconds = time.perf_counter() - began
    certificate = rules.certificate
    assert certificate is not None
    assert all(asdict(certificate).values()), certificate
    report(f"KDD99 10 % at deciles, {len(rules):,} certain rules with their certificate : a minute", seconds, 60, 1)
    saved = HERE / "kdd99_rules.json"
    plar.rules(path, -1, **options).save(saved)
    (ours, peak, _), (reference, _, _) = in_turn(
        (sys.executable, "-c", PREDICT, str(path), str(saved)), (sys.executable, "-c", READ, str(path))
    )
    report(
        f"KDD99 10 %, prediction of 494,021 rows, whole process ({peak:.0f} MB) : polars reads it", ours, reference, 2
    )


if __name__ == "__main__":
    run((published, accuracy, noise, kdd99, wide_csv), "rules.json")
