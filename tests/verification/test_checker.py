"""Proofs of the smallest reduct: `plar.verify` accepts none that is false, whatever is changed in it."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import plar
from support import oracle
from support.environment import TIC_TAC_TOE
from support.smallest import PROVEN, proof_of


def example() -> tuple[dict[str, Any], Any]:
    reduct = plar.reduce(TIC_TAC_TOE, "x_wins", search="smallest", **PROVEN)
    assert reduct.proof is not None
    return json.loads(json.dumps(proof_of(reduct).to_dict())), plar.granulate(TIC_TAC_TOE, "x_wins")


def verified(proof: Any, data: Any, folder: Path) -> None:
    path = folder / "p.json"
    path.write_text(json.dumps(proof))
    assert plar.verify(path, data)


def every_change(value: Any) -> list[tuple[str, Any]]:
    """Each value of a proof changed in all ways that its kind allows, one at a time, with the way to it."""
    made: list[tuple[str, Any]]
    if isinstance(value, dict):
        made = [(f".{k}", {**value, k: new}) for k in value for _, new in every_change(value[k])]
        return [*made, *((f" without {k}", {n: v for n, v in value.items() if n != k}) for k in value)]
    if isinstance(value, list):
        places = range(len(value)) if len(value) < 4 else (0, len(value) // 2, len(value) - 1)
        made = [(f"[{i}]", [*value[:i], new, *value[i + 1 :]]) for i in places for _, new in every_change(value[i])]
        made += [(f" without [{i}]", [*value[:i], *value[i + 1 :]]) for i in places]
        return [*made, (" twice", [*value, *value[-1:]]), ("", []), ("", {"a": 1})]
    if isinstance(value, int):
        return [("", value + 1), ("", value - 1), ("", 0), ("", -value), ("", str(value)), ("", None), ("", 10**30)]
    return [("", value + "x"), ("", ""), ("", 3), ("", None), ("", "top_left"), ("", "x"), ("", "o"), ("", "PR")]


def test_every_change_of_a_proof_is_refused_or_true(tmp_path: Path) -> None:
    proof, granules = example()
    verified(proof, granules, tmp_path)
    accepted = []
    for way, changed in every_change(proof):
        if changed == proof:
            continue
        with suppress(plar.PlarError):
            verified(changed, granules, tmp_path)
            accepted.append((way, changed))
    for way, changed in accepted:
        # what is still a proof says something true: of a table that is consistent all measures are one; a clause that
        # no node needs may come and go, and the order of what is included or chosen does not matter
        same = {name: changed[name] for name in ("fingerprint", "conditions", "decision", "cost", "lower_bound")}
        assert same == {name: proof[name] for name in same}, way
        assert sorted(changed["attributes"]) == sorted(proof["attributes"]), way
        check_by_force(changed, granules)


def check_by_force(proof: Any, granules: Any) -> None:
    """No set that holds what is included costs less than the bound, whatever the proof says."""
    costs = {name: proof["costs"].get(name, 1) for name in proof["conditions"]}
    for k in range(len(costs) + 1):
        for s in combinations(costs, k):
            if {*proof["include"]} <= {*s} and sum(costs[a] for a in s) < proof["lower_bound"]:
                assert plar.theta(granules, s, measure=proof["measure"]) != plar.theta(
                    granules, proof["conditions"], measure=proof["measure"]
                )


@pytest.mark.parametrize("measure", oracle.MEASURES)
def test_an_empty_clause_proves_nothing(measure: str, tmp_path: Path) -> None:
    table = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 0, 1, 1], "d": [0, 1, 0, 0]}
    proof = proof_of(plar.reduce(table, "d", search="smallest", measure=measure)).to_dict()
    assert proof["cost"] == 1
    forged = {**proof, "attributes": ["a", "b", "c"], "cost": 3, "lower_bound": 3}
    forged["clauses"] = [{"attributes": [], "row": [0, 0, 0], "other": []}]
    forged["tree"] = [{"scale": 1, "weights": [[0, 3]]}]
    with pytest.raises(plar.ProofError, match="Clause 0 of the proof does not hold"):
        verified(forged, table, tmp_path)


def test_a_proof_is_of_one_table() -> None:
    table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 1, 1, 0]}
    proof = plar.reduce(table, "d", search="smallest").proof
    assert proof is not None
    assert plar.verify(proof, {name: column[::-1] for name, column in table.items()})
    assert plar.verify(proof, {**table, "more": [1, 2, 3, 4]})
    for other, message in [
        ({**table, "b": [0, 1, 0, 2]}, "the values differ"),
        ({name: [*column, column[0]] for name, column in table.items()}, "its objects are 4, here 5"),
        ({"a": table["a"], "d": table["d"]}, "Unknown"),
    ]:
        with pytest.raises(plar.PlarError, match=message):
            plar.verify(proof, other)
    with pytest.raises(plar.ProofError, match="Cannot read 'nowhere'"):
        plar.verify("nowhere", table)


def test_values_of_every_kind_are_witnesses(tmp_path: Path) -> None:
    from datetime import date, datetime
    from decimal import Decimal

    table: dict[str, Any] = {
        "date": [date(2020, 1, 1), date(2021, 1, 1), None, date(2020, 1, 1)],
        "time": [datetime(2020, 1, 1, 3), datetime(2020, 1, 1, 3), datetime(2020, 1, 1), datetime(2020, 1, 1)],
        "number": [0.1, 1e300, float("inf"), 0.1],
        "text": ["", "ä", None, "\ud800x"],
        "decimal": [Decimal("1.10"), Decimal("2"), Decimal("3"), Decimal("1.1")],
        "truth": [True, False, None, True],
        "d": [0, 1, 2, 3],
    }
    reduct = plar.reduce(table, "d", search="smallest")
    assert reduct.proof is not None
    reduct.proof.save(tmp_path / "p.json")
    assert plar.verify(tmp_path / "p.json", table)
    assert plar.Proof.open(tmp_path / "p.json") == reduct.proof


def test_bins_come_from_the_proof(tmp_path: Path) -> None:
    pick = np.random.default_rng(0)
    table = {"a": pick.normal(size=90), "b": pick.normal(size=90), "c": pick.integers(0, 2, 90)}
    table["d"] = ((table["a"] > 0) ^ (table["c"] > 0)).astype(int)
    reduct = plar.reduce(table, "d", search="smallest", bins="quantile:4")
    assert reduct.cuts
    assert plar.verify(proof_of(reduct), table)
    assert plar.verify(proof_of(reduct), plar.granulate(table, "d", bins="quantile:4"))
    path = tmp_path / "t.csv"
    pl.DataFrame(table).write_csv(path)
    assert plar.verify(proof_of(plar.reduce(path, "d", search="smallest", bins="quantile:4")), path)
    opened = plar.read_table(path, "d", bins="quantile:4")
    assert plar.verify(proof_of(plar.reduce(opened, search="smallest")), opened)
    with pytest.raises(plar.ProofError, match="cut points differ"):
        plar.verify(proof_of(reduct), table, bins="quantile:5")


def test_the_verifier_knows_no_solver(tmp_path: Path) -> None:
    import subprocess
    import sys

    source = (Path(plar.__file__).parent / "verification" / "checker.py").read_text(encoding="utf-8")
    assert source.count("\n") <= 200
    table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "d": [0, 0, 1, 1]}
    proof_of(plar.reduce(table, "d", search="smallest")).save(tmp_path / "p.json")
    # numba imports scipy on its own if it can; hidden, it is neither there nor needed
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import plar\n"
        f"assert plar.verify({str(tmp_path / 'p.json')!r}, {table!r})\n"
        "print([m for m in sys.modules if m.startswith(('plar.search', 'plar.reduct_search', 'scipy.'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
