"""What JSON says of itself: the published schema, the dataclasses and what commands print are one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

import plar
from plar.results.approximations import Contradiction, DecisionApproximation
from plar.results.check import CheckedColumn, Mending, NeverSeen, Witness, from_dict
from plar.results.reduct import Certificate, Change, Step
from plar.results.rules import Condition, Rule, RuleCertificate
from plar.results.selection import Rejection, SelectionStep, TargetAtValue, TargetByValue
from support.shell import TABLE
from support.strategies import Sample, tables

SCHEMA: dict[str, Any] = json.loads(files("plar").joinpath("result.schema.json").read_text(encoding="utf-8"))
PARTS: dict[str, Any] = SCHEMA["$defs"]
VALIDATOR = Draft202012Validator(SCHEMA)


def printed(*words: str) -> Any:
    return json.loads(subprocess.check_output([sys.executable, "-m", "plar", *words], text=True))


def as_read(
    result: plar.Reduct | plar.Selection | plar.Relevant | plar.Reducts | plar.Rules | plar.Approximations | plar.Check,
) -> Any:
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (plar.Reduct, "reduct"),
        (Step, "step"),
        (Certificate, "certificate"),
        (Change, "change"),
        (plar.Selection, "selection"),
        (SelectionStep, "selection_step"),
        (Rejection, "rejection"),
        (TargetByValue, "target_by_value"),
        (TargetAtValue, "target_at_value"),
        (plar.Relevant, "relevant"),
        (plar.Rules, "rules"),
        (Rule, "rule"),
        (Condition, "condition"),
        (RuleCertificate, "rule_certificate"),
        (plar.Approximations, "approximations"),
        (DecisionApproximation, "decision_approximation"),
        (Contradiction, "contradiction"),
        (plar.Check, "check"),
        (CheckedColumn, "checked_column"),
        (Witness, "check_witness"),
        (Mending, "mending"),
        (NeverSeen, "never_seen"),
    ],
)
def test_it_has_the_fields_of_the_dataclasses_and_no_others(kind: Any, part: str) -> None:
    names = [field.name for field in fields(kind) if field.name not in ("equivalent", "proof")]
    with_kind = (plar.Selection, plar.Relevant, plar.Rules, plar.Approximations, plar.Check)
    if kind in with_kind:
        names.append("kind")
    results = (plar.Reduct, *with_kind)
    beside = ["checksum"] if kind in results else []  # in files only
    assert sorted(PARTS[part]["properties"]) == sorted(names + beside)
    assert sorted(PARTS[part]["required"]) == sorted(names)
    assert PARTS[part]["additionalProperties"] is False


def test_it_has_the_settings_that_a_result_has() -> None:
    reduct = plar.reduce(TABLE, "x_wins")
    assert list(PARTS["settings"]["properties"]) == list(reduct.settings)
    selection = plar.select(TABLE, "x_wins")
    assert list(PARTS["selection"]["properties"]["settings"]["properties"]) == list(selection.settings)
    rules = plar.rules(TABLE, "x_wins")
    assert list(PARTS["rules"]["properties"]["settings"]["properties"]) == list(rules.settings)
    approximations = plar.approximations(TABLE, "x_wins")
    assert list(PARTS["approximations"]["properties"]["settings"]["properties"]) == list(approximations.settings)
    check = plar.check(reduct, TABLE)
    assert list(PARTS["check"]["properties"]["settings"]["properties"]) == list(check.settings)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_every_reduct_fits(sample: Sample) -> None:
    for measure in ("PR", "SCE", "LCE", "CCE"):
        VALIDATOR.validate(as_read(plar.reduce(sample.columns, **sample.roles, measure=measure)))


@pytest.mark.filterwarnings("ignore:The target 'd' is the same in every row")
@given(tables())
@settings(max_examples=30, deadline=None)
def test_every_selection_fits(sample: Sample) -> None:
    roles = {"target": sample.roles["decision"], "weights": sample.roles["weights"]}
    for options in ({"alpha": 0.9}, {"include": sample.conditions[:1], "bins": None, "max_columns": 1}):
        VALIDATOR.validate(as_read(plar.select(sample.columns, **roles, **options)))


@pytest.mark.filterwarnings("ignore::plar.PlarWarning")
@given(tables())
@settings(max_examples=30, deadline=None)
def test_all_rules_fit(sample: Sample) -> None:
    for options in ({"alpha": 0.9}, {"kind": "certain"}, {"kind": "possible", "bins": None, "max_conditions": 1}):
        VALIDATOR.validate(as_read(plar.rules(sample.columns, **sample.roles, **options)))


@given(tables())
@settings(max_examples=30, deadline=None)
def test_all_approximations_fit(sample: Sample) -> None:
    asked: list[dict[str, Any]] = [{}, {"attributes": []}, {"missing": "drop", "attributes": sample.conditions[:1]}]
    for options in asked:
        VALIDATOR.validate(as_read(plar.approximations(sample.columns, **sample.roles, **options)))


@pytest.mark.filterwarnings("ignore:The target 'd' is the same in every row")
@given(tables(), tables())
@settings(max_examples=30, deadline=None)
def test_every_check_fits(old: Sample, new: Sample) -> None:
    roles = {"target": old.roles["decision"], "weights": old.roles["weights"]}
    results = (
        plar.reduce(old.columns, **old.roles),
        plar.reduce(old.columns, **old.roles, max_attributes=1, measure="PR"),
        plar.select(old.columns, **roles, alpha=0.9),
    )
    for result in results:
        for rows in (old.columns, new.columns):
            try:
                check = plar.check(result, rows, seen=old.columns)
            except plar.PlarError:  # the two have no column in common
                continue
            VALIDATOR.validate(as_read(check))
            assert from_dict(as_read(check)) == check


@given(tables())
@settings(max_examples=10, deadline=None)
def test_every_other_result_fits(sample: Sample) -> None:
    VALIDATOR.validate(as_read(plar.relevant(sample.columns, **sample.roles, alpha=0.5)))
    VALIDATOR.validate(as_read(plar.reducts(sample.columns, **sample.roles, limit=10)))


@pytest.mark.parametrize(
    "options",
    [
        {"include": [0], "max_attributes": 2},
        {"epsilon": 0.5, "tolerance": 0.1, "minimal": True},
        {"alpha": 0.05},
        {"alpha": 0.01, "start": "core"},
        {"start": "empty"},
        {"conditions": ["top_left", "top_right"], "na": ["b"], "missing": "drop"},
    ],
)
def test_options_fit(options: dict[str, Any]) -> None:
    VALIDATOR.validate(as_read(plar.reduce(TABLE, "x_wins", **options)))


@pytest.mark.parametrize(
    "bins", ["auto", "mdlp", "width:2", {"a": "quantile:2", "b": [0.5, 1.5]}, {"a": "auto", "b": "mdlp"}]
)
def test_bins_fit(bins: Any) -> None:
    numbers = np.random.default_rng(3).normal(size=(60, 2))
    data = {"a": numbers[:, 0], "b": numbers[:, 1], "d": (numbers.sum(axis=1) > 0).astype(int)}
    VALIDATOR.validate(as_read(plar.reduce(data, "d", bins=bins)))


@pytest.mark.filterwarnings("ignore:The decision is missing in some rows")
def test_rules_about_every_kind_of_value_fit() -> None:
    days = np.arange("2024-01-01", "2024-04-10", dtype="M8[D]")
    columns = {"day": days, "flag": [True, False] * 50, "text": ["a", None] * 50, "number": np.arange(100) / 7}
    for decision in ([0, 1] * 50, [True, False] * 50, [0.5] * 40 + [None] * 60, ["x"] * 40 + ["y"] * 60):
        for kind in ("tested", "certain"):
            rules = plar.rules({**columns, "d": decision}, "d", kind=kind, missing_decision="value")
            assert len(rules)
            VALIDATOR.validate(as_read(rules))
    rules = plar.rules({**columns, "d": np.arange(100)}, "d", decision_bins="quantile:2")
    VALIDATOR.validate(as_read(rules))


def test_what_is_wrong_is_refused() -> None:
    saved = as_read(plar.reduce(TABLE, "x_wins"))
    faults: list[dict[str, Any]] = [{"theta": "0"}, {"more": 1}, {"steps": [{}]}, {"settings": {}}, {"n_objects": -1}]
    faults += [{"n_combinations": 0}, {"rejected": {"a": 2}}, {"steps": [{**saved["steps"][0], "p_value": 1.5}]}]
    for wrong in faults:
        assert not VALIDATOR.is_valid({**saved, **wrong})
    del saved["core"]
    assert not VALIDATOR.is_valid(saved)
    selection = as_read(plar.select(TABLE, "x_wins"))
    for wrong in ({"kind": "reduct"}, {"core": []}, {"alone": {"a": -1}}, {"by_values": {"a": {}}}, {"given": "some"}):
        assert not VALIDATOR.is_valid({**selection, **wrong})
    approximations = as_read(plar.approximations(TABLE, "x_wins", attributes=[0]))
    faults = [{"quality": 1.5}, {"kind": "rules"}, {"decision": []}, {"n_classes": -1}, {"more": 1}, {"settings": {}}]
    faults += [{"by_decision": [{}]}, {"largest_contradictions": [{"values": [[]], "n_rows": 2, "counts": []}]}]
    for wrong in faults:
        assert not VALIDATOR.is_valid({**approximations, **wrong})
    check = as_read(plar.check(plar.reduce(TABLE, "x_wins"), TABLE))
    faults = [{"kind": "reduct"}, {"stands": 1}, {"checked": "rules"}, {"columns": [{}]}, {"alpha": 1}, {"more": 1}]
    faults += [{"witness": {}}, {"mending": {"columns": [], "at_least": 0}}, {"new_combinations": {"n": -1}}]
    for wrong in faults:
        assert not VALIDATOR.is_valid({**check, **wrong})
    rules = as_read(plar.rules(TABLE, "x_wins"))
    wrong_rules: list[dict[str, Any]] = [{"support": -1}, {"confidence": 1.5}, {"more": 1}, {"p_value": 2}]
    wrong_conditions = [
        {"column": "a", "operator": "<=", "value": None},
        {"column": "a", "operator": ">", "value": True},
        {"column": "a", "operator": "<", "value": 1},
        {"column": "a", "operator": "=", "value": []},
    ]
    wrong_rules += [{"conditions": [condition]} for condition in wrong_conditions]
    faults = [{"rules": [{**rules["rules"][0], **wrong}]} for wrong in wrong_rules]
    faults += [{"kind": "rule"}, {"rule_kind": "sure"}, {"decisions": []}, {"decision": ["a", "b"]}, {"more": 1}]
    faults += [{"certificate": {}}, {"settings": {}}, {"alpha": 1}, {"unmatched": [-1]}]
    for wrong in faults:
        assert not VALIDATOR.is_valid({**rules, **wrong})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("reduce", (TABLE, "-d", "x_wins")),
        ("relevant", (TABLE, "-d", "x_wins")),
        ("approximations", (TABLE, "-d", "x_wins", "-a", "0,1")),
        ("check", ("{reduct}", TABLE)),
        ("rules", (TABLE, "-d", "x_wins")),
        ("rules", (TABLE, "-d", "x_wins", "--kind", "certain")),
        ("core", (TABLE, "-d", "x_wins")),
        ("theta", (TABLE, "-d", "x_wins", "-a", "top_left")),
        ("engines", ()),
    ],
)
def test_what_commands_print_fits_what_they_publish(command: str, words: tuple[str, ...], tmp_path: Path) -> None:
    if words[:1] == ("{reduct}",):
        plar.reduce(TABLE, "x_wins").save(tmp_path / "reduct.json")
        words = (str(tmp_path / "reduct.json"), *words[1:])
    published = printed("schema", command)
    Draft202012Validator.check_schema(published)
    Draft202012Validator(published).validate(printed(command, *words, "--json"))
