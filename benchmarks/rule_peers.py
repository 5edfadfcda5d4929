"""The methods that `rules.py` sets beside each other: each learns from training rows and predicts others."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from bars import HERE, Skip, weka_jar
from numpy.typing import NDArray

import plar

#: where `make bench-rules` puts wittgenstein
PEERS = HERE / "rule_peers"


@dataclass(frozen=True)
class Table:
    """A table to learn from.

    Parameters
    ----------
    columns : mapping of str to array
        Floats, with NaN where they are missing, or objects: text, and None where it is missing.
    target : (n,) array of text
    """

    columns: dict[str, NDArray[Any]]
    target: NDArray[Any]

    def rows(self, chosen: NDArray[np.intp]) -> Table:
        """Some of the rows."""
        return Table({name: column[chosen] for name, column in self.columns.items()}, self.target[chosen])

    @property
    def n_classes(self) -> int:
        """How many different classes there are."""
        return len(np.unique(self.target))

    def as_numbers(self, like: Table) -> NDArray[np.float64]:
        """A matrix for scikit-learn: texts by their places among those of another table, -1 if they are not there."""
        matrix = []
        for name, column in self.columns.items():
            if column.dtype.kind == "f":
                matrix.append(column)
                continue
            values = sorted({str(value) for value in like.columns[name]})
            place_of = {value: place for place, value in enumerate(values)}
            matrix.append(np.array([place_of.get(str(value), -1) for value in column], float))
        return np.column_stack(matrix)


class Learned(NamedTuple):
    """What a method made of the training rows."""

    predictions: Sequence[Any]
    #: rules, or leaves of a tree
    n_rules: int
    #: conditions per rule, or the mean depth of the leaves
    n_conditions: float


#: learns from the first table, predicts the second
Method = Callable[[Table, Table], Learned]


def tested_rules(train: Table, test: Table) -> Learned:
    rules = plar.rules(train.columns, y=train.target, attributes=list(train.columns))
    return Learned(rules.predict(test.columns), len(rules), _mean_length(rules))


def certain_rules(train: Table, test: Table) -> Learned:
    rules = plar.rules(train.columns, y=train.target, kind="certain")
    return Learned(rules.predict(test.columns), len(rules), _mean_length(rules))


def _mean_length(rules: plar.Rules) -> float:
    return fmean([len(rule.conditions) for rule in rules] or [0])


def tree(train: Table, test: Table) -> Learned:
    from sklearn.tree import DecisionTreeClassifier

    return _of_tree(DecisionTreeClassifier(random_state=0), train, test)


def pruned_tree(train: Table, test: Table) -> Learned:
    """A tree whose pruning is chosen by five-fold cross-validation within the training rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    x = train.as_numbers(train)
    path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(x, train.target)
    alphas = np.unique(np.maximum(path.ccp_alphas, 0))
    alphas = alphas[np.linspace(0, len(alphas) - 1, min(len(alphas), 30)).astype(int)]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"ccp_alpha": alphas}, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that have fewer rows than there are folds
        search.fit(x, train.target)
    return _of_tree(search.best_estimator_, train, test)


def _of_tree(model: Any, train: Table, test: Table) -> Learned:
    model.fit(train.as_numbers(train), train.target)
    depths = _depths_of_leaves(model.tree_)
    return Learned(model.predict(test.as_numbers(train)), len(depths), fmean(depths))


def _depths_of_leaves(tree: Any) -> list[int]:
    depths: list[int] = []
    unseen = [(0, 0)]
    while unseen:
        node, depth = unseen.pop()
        left = tree.children_left[node]
        if left < 0:
            depths.append(depth)
        else:
            unseen += [(left, depth + 1), (tree.children_right[node], depth + 1)]
    return depths


def ripper(train: Table, test: Table) -> Learned:
    """RIPPER of the package wittgenstein, which knows two classes."""
    if train.n_classes != 2:
        raise Skip("two classes only")
    if not PEERS.exists():
        raise Skip("make bench-rules fetches wittgenstein")
    sys.path.insert(0, str(PEERS))
    import pandas as pd

    wittgenstein = importlib.import_module("wittgenstein")
    classes, sizes = np.unique(train.target, return_counts=True)
    positive = classes[sizes.argmin()]
    model = wittgenstein.RIPPER(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pd.DataFrame({**train.columns, "class": train.target}), class_feat="class", pos_class=positive)
        is_positive = np.array(model.predict(pd.DataFrame(test.columns)), bool)
    predictions = np.where(is_positive, positive, classes[sizes.argmax()])
    rules = model.ruleset_.rules
    return Learned(predictions, len(rules) + 1, fmean([len(rule.conds) for rule in rules] or [0]))


def jrip(train: Table, test: Table) -> Learned:
    """JRip of WEKA, run as a program."""
    jar = weka_jar()
    values = _nominal_values(train, test)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "train.arff"), Path(folder, "test.arff")]
        for path, table in zip(paths, (train, test), strict=True):
            path.write_text(_as_arff(table, values))
        command = ["java", "-cp", jar, "weka.classifiers.rules.JRip", "-t", str(paths[0]), "-T", str(paths[1])]
        model = subprocess.run([*command, "-no-cv", "-v"], capture_output=True, text=True, check=True).stdout
        predicted = subprocess.run([*command, "-p", "0"], capture_output=True, text=True, check=True).stdout
    n_rules = int(re.search(r"Number of Rules : (\d+)", model)[1])  # type: ignore[index]
    conditions = [line.split("=>")[0].count("(") for line in model.splitlines() if "=>" in line]
    numbers = [int(number) for number in re.findall(r"^\s*\d+\s+\d+:\S+\s+(\d+):", predicted, re.MULTILINE)]
    classes = values["class"]
    assert len(numbers) == len(test.target)
    return Learned([classes[number - 1] for number in numbers], n_rules, fmean(conditions))


def _nominal_values(*tables: Table) -> dict[str, list[str]]:
    """The values of each column of text, and the classes."""
    values: dict[str, list[str]] = {"class": sorted({str(value) for table in tables for value in table.target})}
    for name, column in tables[0].columns.items():
        if column.dtype.kind != "f":
            texts = {str(value) for table in tables for value in table.columns[name] if value is not None}
            values[name] = sorted(texts)
    return values


def _as_arff(table: Table, values: dict[str, list[str]]) -> str:
    lines = ["@relation table"]
    for name in table.columns:
        kind = "{" + ",".join(_quoted(value) for value in values[name]) + "}" if name in values else "numeric"
        lines.append(f"@attribute {name} {kind}")
    lines += ["@attribute class {" + ",".join(map(_quoted, values["class"])) + "}", "@data"]
    for row in zip(*table.columns.values(), table.target, strict=True):
        lines.append(",".join(_cell(value) for value in row))
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "?"
    return _quoted(value) if isinstance(value, str) else repr(float(value))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "_") + "'"


#: by their names in the figures
METHODS: dict[str, Method] = {
    "tested": tested_rules,
    "certain": certain_rules,
    "tree": tree,
    "pruned": pruned_tree,
    "jrip": jrip,
    "ripper": ripper,
}
#: what the documentation calls them
WORDS = {
    "tested": "plar, tested rules",
    "certain": "plar, certain rules",
    "tree": "scikit-learn's tree",
    "pruned": "scikit-learn's tree, pruned by cross-validation",
    "jrip": "WEKA's JRip (RIPPER)",
    "ripper": "wittgenstein's RIPPER, two classes only",
}
#: the same at the head of a column
HEADS = {
    "tested": "tested rules",
    "certain": "certain rules",
    "tree": "tree",
    "pruned": "pruned tree",
    "jrip": "JRip",
    "ripper": "wittgenstein",
}
