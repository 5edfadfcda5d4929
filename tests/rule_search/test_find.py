"""What surrounds the search: limits, Ctrl-C, progress, columns to look at, odd tables, notes, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from plar.rule_search.find import RuleSearch
from support.clock import Clock
from support.environment import PLAR

posix = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
KINDS = ("tested", "certain", "possible")
#: a column that says the decision, and one that says nothing
TABLE = {"a": ["p", "q"] * 20, "b": ["x", "y", "y", "x"] * 10, "d": ["n", "y"] * 20}


def noisy_table(n_rows: int = 3_000) -> pl.DataFrame:
    """Enough rows and rules for several threads."""
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 4, (n_rows, 8))
    decision = (cells[:, 0] + cells[:, 1] * (cells[:, 2] > 1) + (rng.random(n_rows) < 0.2)) % 4
    columns = {f"c{i}": [f"v{value}" for value in cells[:, i]] for i in range(8)}
    return pl.DataFrame({**columns, "d": [f"class {j}" for j in decision]})


def facts_of(rules: plar.Rules) -> set[Any]:
    """The rules, without what they add beside each other."""
    return {(rule.conditions, rule.decision, rule.counts, rule.p_value) for rule in rules}


# -- limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_time_at_all_gives_no_rules(kind: str, tmp_path: Path) -> None:
    rules = plar.rules(TABLE, "d", kind=kind, time_limit=0)
    assert len(rules) == 0
    assert not rules.complete
    assert rules.unmatched == rules.class_sizes == (20, 20)
    assert rules.predict({"a": ["p"], "b": ["x"]}).tolist() == ["n"]
    assert rules.predict_proba({"a": ["p"], "b": ["x"]}).tolist() == [[0.5, 0.5]]
    assert str(rules)
    rules.save(tmp_path / "r.json")
    assert plar.load(tmp_path / "r.json") == rules
    if kind != "tested":
        assert rules.certificate == plar.results.rules.RuleCertificate(False, True, True, True)


def test_one_class_needs_no_time() -> None:
    rules = plar.rules({"a": [1, 2], "d": [1, 1]}, "d", time_limit=0)
    assert rules.complete
    assert len(rules) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_time_limit_keeps_the_rules_so_far(kind: str, n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = noisy_table(1_200)
    whole = plar.rules(frame, "d", kind=kind)
    clock = Clock(monkeypatch)
    monkeypatch.setattr("plar.rule_search.find.perf_counter", lambda: clock.now)

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "rules" and done >= 3:
            clock.now = 60.0

    part = plar.rules(frame, "d", kind=kind, time_limit="1m", progress=progress, n_jobs=n_jobs)
    assert not part.complete
    assert 3 <= len(part) < len(whole)
    if kind == "tested":
        assert facts_of(part) < facts_of(whole)
    else:
        assert part.certificate is not None
        assert not part.certificate.complete
        assert part.certificate.consistent


def test_the_memory_limit_is_kept() -> None:
    with pytest.raises(plar.errors.MemoryLimitExceeded, match="the memory limit is 1 MB"):
        plar.rules(noisy_table(), "d", memory_limit="1MB")


# -- Ctrl-C --------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_brings_the_rules_so_far(kind: str, n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = noisy_table()
    whole = plar.rules(frame, "d", kind=kind)
    pressed: list[int] = []
    is_told = threading.Event()
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    stop_search = RuleSearch._stop

    def stop_and_tell(search: RuleSearch) -> None:
        stop_search(search)
        is_told.set()

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "rules" and done >= 3 and not pressed:
            pressed.append(done)
            signal.pthread_kill(main_thread, signal.SIGINT)
            assert is_told.wait(300)  # the main thread stops the others

    monkeypatch.setattr(RuleSearch, "_stop", stop_and_tell)
    with pytest.raises(plar.Interrupted) as stop:
        plar.rules(frame, "d", kind=kind, progress=progress, n_jobs=n_jobs)
    rules = stop.value.result
    assert isinstance(rules, plar.Rules)
    assert not rules.complete
    assert 3 <= len(rules) < len(whole)
    assert facts_of(rules) < facts_of(whole) or kind != "tested"
    assert len(rules.predict(frame)) == len(frame)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


#: a search that waits for the signal when LEM2 is to find its third rule
WAITS = """
import sys, time
import plar.rule_search.lem2 as lem2
from plar.cli import main

find_one = lem2.Lem2._find_one
calls = []

def slow(search):
    calls.append(search)
    if len(calls) == 3:
        print("third", file=sys.stderr, flush=True)
        time.sleep(600)
    find_one(search)

lem2.Lem2._find_one = slow
main()
"""


@posix
def test_ctrl_c_in_the_shell_keeps_the_rules_of_an_unfinished_decision(tmp_path: Path) -> None:
    noisy_table(300).write_csv(tmp_path / "t.csv")
    words = ["rules", str(tmp_path / "t.csv"), "-d", "d", "--kind", "certain", "--json", "--jobs", "1"]
    child = subprocess.Popen(
        [sys.executable, "-c", WAITS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    assert "third" in map(str.strip, child.stderr)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (130, "Interrupted.\n")
    rules = json.loads(out)
    assert rules["complete"] is False
    assert len(rules["rules"]) == 2
    assert rules["certificate"]["complete"] is False
    assert rules["certificate"]["consistent"] is True


# -- progress ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_rules_is_told(kind: str) -> None:
    told: list[tuple[str, int]] = []
    rules = plar.rules(TABLE, "d", kind=kind, progress=lambda phase, done, total: told.append((phase, done)))
    assert [phase for phase, _ in told] == ["read", "granulate", *["rules"] * (1 + len(rules))]
    assert [done for phase, done in told if phase == "rules"] == list(range(1 + len(rules)))
    assert {"granulate", "rules"} <= set(rules.seconds)


def test_verbose_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    plar.rules(TABLE, "d", verbose=True)
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()][:1] == ["rows"]
    plar.rules(TABLE, "d")
    assert capsys.readouterr().err == ""


# -- columns -------------------------------------------------------------------------------------------------


def columns_of(rules: plar.Rules) -> set[str]:
    return {condition.column for rule in rules for condition in rule.conditions}


SAID_TWICE = {"a": [0, 1] * 20, "c": [1, 0] * 20, "d": ["n", "y"] * 20}
CHOICES: dict[str, Callable[[], Any]] = {
    "names": lambda: ["c"],
    "one name": lambda: "c",
    "positions": lambda: [1],
    "one from the end": lambda: -2,
    "an iterator": lambda: iter(["c"]),
    "a reduct": lambda: plar.reduce(SAID_TWICE, "d", conditions=["c"]),
    "a selection": lambda: plar.select(SAID_TWICE, "d", conditions=["c"]),
    "relevant columns": lambda: plar.relevant(SAID_TWICE, "d", conditions=["c"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", CHOICES)
def test_columns_may_be_chosen(kind: str, choice: str) -> None:
    rules = plar.rules(SAID_TWICE, "d", kind=kind, attributes=CHOICES[choice]())
    assert rules.attributes == ("c",)
    assert columns_of(rules) == {"c"}
    assert columns_of(plar.rules(SAID_TWICE, "d", kind=kind)) == {"a"}


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_columns_are_the_table(kind: str) -> None:
    """Of granules too, whose other columns are forgotten."""
    frame = noisy_table(400)
    expected = plar.rules(frame.select("c0", "c2", "d"), "d", kind=kind)
    assert tuple(plar.rules(frame, "d", kind=kind, attributes=["c0", "c2"])) == tuple(expected)
    assert tuple(plar.rules(plar.granulate(frame, "d"), kind=kind, attributes=["c0", "c2"])) == tuple(expected)
    assert tuple(plar.rules(frame, "d", kind=kind, conditions=["c0", "c1", "c2"], attributes=["c0", "c2"])) == tuple(
        expected
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_columns_leave_what_is_always_so(kind: str) -> None:
    rules = plar.rules(TABLE, "d", kind=kind, attributes=[])
    assert rules.attributes == ()
    assert [rule.conditions for rule in rules] == ([(), ()] if kind == "possible" else [])


def test_columns_that_name_the_rows_are_left_out_of_tested_rules() -> None:
    numbers = list(range(1, 41))
    table = {"id": [f"customer {i}" for i in numbers], **TABLE}
    rules = plar.rules(table, "d")
    assert list(rules.left_out) == ["id"]
    assert rules.attributes == ("a", "b")
    assert any("id" in note for note in rules.notes)
    assert plar.rules(table, "d", attributes=["id", "a"]).left_out == {}
    assert plar.rules(table, "d", conditions=["id", "a"]).attributes == ("id", "a")
    with pytest.warns(plar.PlarWarning, match="'id' is different in nearly every row"):
        assert plar.rules(table, "d", kind="certain").attributes == ("id", "a", "b")


# -- odd tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_one_class(kind: str) -> None:
    rules = plar.rules({"a": [1, 2, None], "d": ["y"] * 3}, "d", kind=kind)
    [rule] = rules
    assert (rule.conditions, rule.counts, rule.support) == ((), (3,), 3)
    assert (rule.confidence, rule.coverage, rule.lift) == (1, 1, 1)
    assert rule.p_value is None
    assert rules.unmatched == (0,)
    assert rules.predict({"a": [7]}).tolist() == ["y"]


@pytest.mark.parametrize("value", ["x", 3, None])
def test_constant_columns_say_nothing(value: Any) -> None:
    table = {"a": [value] * 60, "d": ["y", "y", "n"] * 20}
    for kind in ("tested", "certain"):
        assert len(plar.rules(table, "d", kind=kind)) == 0
    possible = plar.rules(table, "d", kind="possible")
    assert [(rule.conditions, rule.counts) for rule in possible] == [((), (20, 40)), ((), (20, 40))]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_rows_are_refused(kind: str) -> None:
    with pytest.raises(plar.TableError, match="The table has no rows"):
        plar.rules({"a": [], "d": []}, "d", kind=kind)
    with pytest.raises(plar.TableError, match="No row is left"):
        plar.rules({"a": [1, 2], "d": [None, None]}, "d", kind=kind)


def test_a_missing_decision_is_left_out_or_a_class() -> None:
    table = {"a": ["p", "q", "r"] * 20, "d": ["n", "y", None] * 20}
    dropped = plar.rules(table, "d")
    assert dropped.decisions == ("n", "y")
    assert dropped.n_objects == 40
    assert any("20 rows" in note for note in dropped.notes)
    own = plar.rules(table, "d", missing_decision="value")
    assert own.decisions == ("n", "y", None)
    assert [rule.decision for rule in own] == ["n", "y", None]
    with pytest.raises(plar.TableError):
        plar.rules(table, "d", missing_decision="error")


def test_values_of_dropped_rows_are_no_conditions() -> None:
    """A bin that only rows without a decision are in is not counted among the conditions that were tried."""
    table = {"a": [1.0, 2.0, 3.0] * 20, "d": ["n", None, "y"] * 20}
    rules = plar.rules(table, "d", bins={"a": [1.5, 2.5]})
    alone = plar.rules({"a": [1.0, 3.0] * 20, "d": ["n", "y"] * 20}, "d", bins={"a": [1.5, 2.5]})
    assert [(rule.conditions, rule.p_value) for rule in rules] == [(rule.conditions, rule.p_value) for rule in alone]


def test_what_was_cut_is_noted() -> None:
    numbers = [i / 7 for i in range(60)]
    rules = plar.rules({"a": numbers, "d": ["n" if x < 4 else "y" for x in numbers]}, "d")
    assert rules.notes == ("1 column of numbers or dates was compared in decile bins: a (option bins).",)
    assert set(rules.cuts) == {"a"}
    assert len(rules.cuts["a"]) == 9


def test_cuts_that_know_the_decision_are_warned_of() -> None:
    numbers = [i / 7 for i in range(60)]
    table = {"a": numbers, "d": ["n" if x < 4 else "y" for x in numbers]}
    with pytest.warns(plar.PlarWarning, match="bins='mdlp' depend on what is predicted"):
        plar.rules(table, "d", bins="mdlp")
    plar.rules(table, "d", bins="mdlp", kind="certain")


def test_a_quantity_as_decision_is_warned_of() -> None:
    with pytest.warns(plar.PlarWarning, match="The decision 'd' holds 60 different numbers"):
        plar.rules({"a": [1, 2] * 30, "d": [i / 7 for i in range(60)]}, "d")


# -- what is refused -----------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "kind": ({"kind": "exact"}, plar.ParameterError, "The 'kind' parameter must be one of: tested, certain, possible."),
    "no kind": ({"kind": None}, plar.ParameterError, "The 'kind' parameter must be one of"),
    "alpha 0": ({"alpha": 0}, plar.ParameterError, "The 'alpha' parameter must be between 0 and 1. Got 0 instead."),
    "alpha 1": ({"alpha": 1.0}, plar.ParameterError, "The 'alpha' parameter must be between 0 and 1. Got 1.0 instead."),
    "alpha NaN": ({"alpha": float("nan")}, plar.ParameterError, "The 'alpha' parameter must be between 0 and 1."),
    "no alpha": ({"alpha": None}, plar.ParameterError, "The 'alpha' parameter must be between 0 and 1. Got None"),
    "alpha of text": ({"alpha": "5 %"}, plar.ParameterError, "The 'alpha' parameter must be between 0 and 1."),
    "min_support": ({"min_support": 0}, plar.ParameterError, "The 'min_support' parameter must be at least 1. Got 0"),
    "a share": ({"min_support": 0.1}, plar.ParameterError, "The 'min_support' parameter must be at least 1."),
    "truth": ({"min_support": True}, plar.ParameterError, "The 'min_support' parameter must be at least 1."),
    "max_conditions": (
        {"max_conditions": 0},
        plar.ParameterError,
        "The 'max_conditions' parameter must be None or at least 1. Got 0 instead.",
    ),
    "attributes": ({"attributes": ["z"]}, plar.UnknownNameError, "Unknown column 'z'. Choose one of: a, b, d."),
    "position": ({"attributes": [7]}, plar.UnknownNameError, "Unknown column 7."),
    "itself": ({"attributes": ["d"]}, plar.TableError, "'d' is both a column to choose from and the decision."),
    "twice": ({"attributes": ["a", 0]}, plar.TableError, "The column 'a' is given twice."),
    "not a condition": ({"conditions": ["a"], "attributes": ["b"]}, plar.UnknownNameError, "Unknown condition 'b'."),
    "decision": ({"decision": "z"}, plar.UnknownNameError, "Unknown decision 'z'. Choose one of: a, b, d."),
    "decisions": (
        {"decision": ["d", "a"]},
        plar.TableError,
        "Rules predict one column, but 2 decisions are given: 'd', 'a'. Name one, or make one column of them.",
    ),
    "unknown": ({"measure": "PR"}, TypeError, "rules() got an unexpected keyword argument 'measure'."),
    "misspelt": ({"min_suport": 2}, TypeError, "Did you mean 'min_support'?"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_in_one_line(name: str) -> None:
    options, kind, message = REFUSED[name]
    with pytest.raises(kind, match=re.escape(message)) as refused:
        plar.rules(TABLE, **{"decision": "d", **options})
    assert "\n" not in str(refused.value)


def test_the_shell_says_it_in_one_line_too(tmp_path: Path) -> None:
    pl.DataFrame(TABLE).write_csv(tmp_path / "t.csv")
    words = [PLAR, "rules", str(tmp_path / "t.csv"), "-d", "d", "--min-support", "0"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "Error: --min-support must be at least 1. Got 0 instead.\n"
