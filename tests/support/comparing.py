"""Results compared with each other and with the oracle's."""

from __future__ import annotations

from typing import Any

import pytest

import plar
from support import oracle


def facts(reduct: plar.Reduct) -> dict[str, Any]:
    """All that a result says, but for the times, the engine, the path and what was asked; Θ to the last bit."""
    said = reduct.to_dict()
    for name in ("seconds", "engine", "settings", "source"):
        said.pop(name)
    said["steps"] = [{k: v for k, v in step.items() if k != "seconds"} for step in said["steps"]]
    return said


def all_facts(reduct: plar.Reduct) -> dict[str, Any]:
    """All that a result says, but for the times and the engine."""
    said = reduct.to_dict()
    del said["seconds"], said["engine"]
    return {**said, "steps": [{**step, "seconds": 0} for step in said["steps"]]}


def close(values: list[float], integers: list[int], table: oracle.Table, measure: oracle.Measure) -> bool:
    """Whether floats are these integers, normalised; SCE's integers are themselves rounded logarithms."""
    norm = oracle.normaliser(table, measure)
    exact = [n / norm for n in integers]
    if measure == "SCE":
        return values == pytest.approx(exact, rel=0, abs=1e-9)
    return values == pytest.approx(exact, rel=1e-12, abs=1e-300)


def assert_agrees(reduct: plar.Reduct, expected: oracle.Outcome, table: oracle.Table, measure: oracle.Measure) -> None:
    """Compare every field of the result with the oracle's."""
    assert reduct.core == expected.core
    assert reduct.attributes == expected.attributes
    assert reduct.n_objects == table.n_objects
    assert reduct.complete is expected.complete
    assert reduct.consistent is expected.consistent
    assert reduct.certificate.preserved is expected.preserved
    assert reduct.certificate.redundant == expected.redundant
    assert reduct.certificate.minimal is expected.minimal
    assert close([reduct.theta, reduct.theta_all], [expected.theta, expected.theta_all], table, measure)
    assert [step.attribute for step in reduct.steps] == [step.attribute for step in expected.steps]
    before = expected.theta_start
    for ours, theirs in zip(reduct.steps, expected.steps, strict=True):
        assert tuple(ours.ties) == theirs.ties
        assert list(ours.candidates) == list(theirs.candidates)
        gains = [before - value for value in theirs.candidates.values()]
        assert close(list(ours.candidates.values()), gains, table, measure)
        assert close([ours.theta, ours.significance], [theirs.theta, before - theirs.theta], table, measure)
        if isinstance(measure, str):  # what a user's measure leaves active is the engine's choice
            assert ours.active == theirs.active
        before = theirs.theta
