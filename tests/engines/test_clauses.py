"""The clause finder of large tables, by the definitions: which sets preserve Θ, and what rows of the table decide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plar
from plar.engines import clauses
from plar.engines.clauses import LocalClauseFinder
from plar.granules.fingerprint import spell
from plar.measures import as_measure
from support import oracle
from support.check import decisions_of, stands
from support.strategies import large_tables


@pytest.fixture(scope="module", autouse=True)
def every_table_is_large() -> Any:
    """No matrix of codes, and sets are first judged by a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clauses, "_MAX_MATRIX_CELLS", 0)
        patch.setattr(clauses, "_FIRST_ROWS", 3)
        patch.setattr(clauses, "_MAX_SIFTING", 2)
        yield


@pytest.mark.parametrize("measure", oracle.MEASURES)
@given(sample=large_tables(80), data=st.data())
def test_which_sets_preserve(measure: str, sample: Any, data: st.DataObject) -> None:
    table = sample.table()
    C = table.conditions
    finder = LocalClauseFinder(plar.granulate(sample.frame(), **sample.roles), as_measure(measure))
    sets = data.draw(st.lists(st.sets(st.sampled_from(range(len(C)))), min_size=1, max_size=80))
    common = data.draw(st.sampled_from(sets))
    expected = [stands(table, [C[a] for a in sorted(attributes)], measure) for attributes in sets]
    assert finder.preserve(sets) == expected
    finder.assume(common)
    assert finder.preserve(sets) == expected
    assert finder.preserve([attributes | common for attributes in sets]) == [
        stands(table, [C[a] for a in sorted(attributes | common)], measure) for attributes in sets
    ]


@given(sample=large_tables(80), data=st.data())
def test_what_rows_decide(sample: Any, data: st.DataObject) -> None:
    table = sample.table()
    granules = plar.granulate(sample.frame(), **sample.roles)
    finder = LocalClauseFinder(granules, as_measure("PR"))
    rows = data.draw(st.lists(st.sampled_from(table.rows), max_size=8))
    strangers = data.draw(
        st.lists(st.tuples(*(st.sampled_from(values) for values in zip(*table.rows, strict=True))), max_size=4)
    )
    known = set(table.rows)
    values = [decision for (decision,) in zip(*granules.decision_values, strict=True)]
    asked = [*rows, *strangers, tuple("never" for _ in table.conditions)]
    for row, decisions in zip(asked, finder.decisions([tuple(map(spell, row)) for row in asked]), strict=True):
        expected = decisions_of(table, row) if row in known else {}
        assert {values[code]: n for code, n in decisions.items()} == expected
