"""What `plar.select` does unasked, in every way in: it says so in a line, and each can be switched off."""

from __future__ import annotations

import datetime as dt
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import plar
from plar.engines import SparkEngine
from support.auto_bins import auto_cuts
from support.environment import ROOT
from support.selection import facts
from support.shell import PLAR, run

Columns = dict[str, list[Any]]
N = 300
N_LACKING = 20
EPOCH = dt.datetime(1970, 1, 1)


def _ordinary() -> Columns:
    """A table as people have them: numbers, dates and text, an id, names, and rows without a target."""
    pick = random.Random(7)
    ages = [None if pick.random() < 0.2 else pick.randrange(160) / 2 for _ in range(N)]
    days = [dt.date(2020, 1, 1) + dt.timedelta(pick.randrange(365)) for _ in range(N)]
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(milliseconds=pick.randrange(10**9)) for _ in range(N)]
    target = ["yes" if (age or 0) > 45 or day.month > 9 else "no" for age, day in zip(ages, days, strict=True)]
    return {
        "PassengerId": [*range(1, N + 1)],
        "Name": [f"{pick.choice('ABC')}. Smith ({i})" for i in range(N)],
        "age": ages,
        "rooms": [pick.randrange(12) for _ in range(N)],
        "siblings": [pick.randrange(40) for _ in range(N)],
        "day": days,
        "time": times,
        "written": [f"202{pick.randrange(3)}-{pick.randrange(1, 13):02}-{pick.randrange(1, 28):02}" for _ in range(N)],
        "digits": [str(pick.randrange(1000)) for _ in range(N)],
        "word": [pick.choice(["x", "y", "NA"]) for _ in range(N)],
        "survived": [None if i < N_LACKING else value for i, value in enumerate(target)],
    }  # fmt: skip


ORDINARY = _ordinary()
CUT = ("age", "siblings", "day", "time", "written", "digits")
NOTES = (
    "20 rows without a target were left out.",
    "2 columns that only number or name the rows were left out: PassengerId, Name (option keep).",
    "6 columns of numbers or dates were compared in quartile bins: age, siblings, day, time and 2 more (option bins).",
)


def _seconds(value: Any) -> Any:
    """What is cut: a number, or the seconds since 1970."""
    if isinstance(value, dt.datetime):
        return (value - EPOCH).total_seconds()
    if isinstance(value, dt.date):
        return (dt.datetime(value.year, value.month, value.day) - EPOCH).total_seconds()
    if isinstance(value, str):
        return float(value) if value.isdigit() else _seconds(dt.date.fromisoformat(value))
    return value


def ways_in(folder: Path) -> Iterator[tuple[str, Any]]:
    """The table in everything that holds it."""
    frame = pl.DataFrame(ORDINARY)
    matrix = np.empty((N, len(ORDINARY)), object)
    for j, values in enumerate(ORDINARY.values()):
        matrix[:, j] = values
    yield "mapping", ORDINARY
    yield "mapping of arrays", {name: np.array(values, object) for name, values in ORDINARY.items()}
    yield "numpy", matrix
    yield "pandas", pd.DataFrame(ORDINARY)
    yield "pandas, times", pd.DataFrame(ORDINARY).assign(day=pd.to_datetime(ORDINARY["day"]).astype("M8[s]").date)
    yield "pandas, nullable", pd.DataFrame(ORDINARY).convert_dtypes()
    yield "pandas, Arrow", frame.to_pandas(use_pyarrow_extension_array=True)
    yield "polars", frame
    yield "lazy", frame.lazy()
    yield "shuffled", frame.sample(fraction=1, shuffle=True, seed=1)
    yield "Arrow", frame.to_arrow()
    frame.write_csv(folder / "t.csv")
    frame.write_csv(folder / "t.tsv", separator="\t")
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    frame.with_columns(pl.col("day", "time").cast(pl.String)).write_ndjson(folder / "t.ndjson")
    yield from ((path.name, path) for path in sorted(folder.iterdir()))
    plar.granulate(frame, "survived").save(folder / "g.parquet")
    yield "granules", plar.granulate(frame, "survived")
    yield "granule file", folder / "g.parquet"


def plain(selection: plar.Selection) -> dict[str, Any]:
    """All that a selection says, with the columns of a matrix by their names; values are spelled as libraries do."""
    said = json.loads(json.dumps(facts(selection), default=str))
    del said["by_values"]
    text = json.dumps(said)
    if selection.conditions[0] == "x0":
        for j, name in reversed([*enumerate(ORDINARY)]):
            text = text.replace(f'"x{j}"', f'"{name}"').replace(f"x{j},", f"{name},").replace(f"x{j} ", f"{name} ")
    return dict(json.loads(text))


def test_every_way_in(tmp_path: Path) -> None:
    answers = {}
    for kind, data in ways_in(tmp_path):
        target = None if "granule" in kind else -1
        answers[kind] = plain(plar.select(data, target))
    expected = answers["mapping"]
    assert {kind: answer for kind, answer in answers.items() if answer != expected} == {}
    assert tuple(expected["notes"]) == NOTES
    assert expected["n_rows"] == N - N_LACKING
    assert expected["left_out"] == {"PassengerId": "one value per row", "Name": "one value per row"}
    assert expected["columns"][:2] in (["age", "day"], ["day", "age"])
    counted = [int(value is not None) for value in ORDINARY["survived"]]
    cuts = {name: auto_cuts([*map(_seconds, ORDINARY[name])], counted) for name in CUT}
    assert {name: tuple(points) for name, points in expected["cuts"].items() if name != "PassengerId"} == cuts
    n_missing = sum(value is None for value in ORDINARY["age"][N_LACKING:])
    assert expected["missing"] == {"age": n_missing, "word": ORDINARY["word"][N_LACKING:].count("NA")}


def test_standard_input(tmp_path: Path) -> None:
    [table] = [data for kind, data in ways_in(tmp_path) if kind == "t.csv"]
    with table.open("rb") as file:
        words = [PLAR, "select", "-", "-d", "survived", "--json"]
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert tuple(said["notes"]) == NOTES
    assert tuple(said["columns"]) == plar.select(table, "survived").columns
    printed = run("select", str(table), "-d", "survived").stdout
    assert " ".join(NOTES) in " ".join(printed.split())


def test_engines_agree(engine: Any) -> None:
    assert plain(plar.select(ORDINARY, "survived", engine=engine)) == plain(plar.select(ORDINARY, "survived"))


@pytest.mark.parametrize("layout", ["auto", "rows", "columns"])
def test_on_spark(tmp_path: Path, spark: Any, layout: str) -> None:
    engine = SparkEngine(session=spark, layout=layout)
    frame = pl.DataFrame(ORDINARY)
    expected = plain(plar.select(frame, "survived"))
    rows = spark.createDataFrame(frame.to_arrow()).repartition(3)
    for part in range(3):  # the first holds no target at all
        (tmp_path / "t.csv").mkdir(exist_ok=True)
        (tmp_path / "t.parquet").mkdir(exist_ok=True)
        low, high = [(0, N_LACKING), (N_LACKING, 150), (150, N)][part]
        frame[low:high].write_csv(tmp_path / "t.csv" / f"{part}.csv")
        frame[low:high].write_parquet(tmp_path / "t.parquet" / f"{part}.parquet")
    for data in (rows, tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert plain(plar.select(data, "survived", engine=engine)) == expected


def test_an_index_is_recognised_on_spark_by_all_rows_that_are_read(tmp_path: Path, spark: Any) -> None:
    """Also by those without a target or with missing values, which are dropped."""
    pick = random.Random(3)
    columns = {
        "": pick.sample(range(N), N),
        "name": [None if i % 20 == 1 else f"k{i}" for i in range(N)],
        "a": [pick.randrange(3) if i % 50 else None for i in range(N)],
        "t": [None if i % 7 == 0 else i % 2 for i in range(N)],
    }
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    for layout in ("auto", "rows", "columns"):
        engine = SparkEngine(session=spark, layout=layout, partitions=3)
        for options in ({"bins": None}, {"bins": None, "missing": "drop"}, {"bins": {"a": "width:2"}}):
            expected = plar.select(tmp_path / "t.csv", "t", **options)
            assert list(expected.left_out) == ["x0", "name"]
            assert facts(plar.select(tmp_path / "t.csv", "t", engine=engine, **options)) == facts(expected)


def test_categories_are_classes_on_spark(tmp_path: Path, spark: Any) -> None:
    codes = pl.Series([str(100 + i * 7 % 60) for i in range(300)]).cast(pl.Categorical)
    pl.DataFrame({"a": [i % 3 for i in range(300)], "t": codes}).write_parquet(tmp_path / "t.parquet")
    for layout in ("auto", "rows", "columns"):
        engine = SparkEngine(session=spark, layout=layout)
        assert plar.select(tmp_path / "t.parquet", "t", engine=engine).target_type == "classes"
        granules: Any = plar.granulate(tmp_path / "t.parquet", "t", engine=engine)
        assert plar.select(granules, engine=engine).target_type == "classes"


def test_granules_on_spark(spark: Any) -> None:
    """They are cut where they are made: if nothing is left to cut or to drop, the defaults do no harm."""
    engine = SparkEngine(session=spark, layout="rows")
    frame = pl.DataFrame(ORDINARY)
    rows = spark.createDataFrame(frame.to_arrow())
    granules: Any = plar.granulate(rows, "survived", engine=engine, bins="auto", missing_decision="drop")
    with granules:
        assert plar.select(granules).columns == plar.select(frame, "survived").columns
    uncut: Any = plar.granulate(rows, "survived", engine=engine, missing_decision="drop")
    with uncut:
        with pytest.raises(plar.TableError, match=r"already granulated\. Pass bins= when granulating it"):
            plar.select(uncut)
        assert plar.select(uncut, bins=None).cuts == {}


def test_nothing_but_rows_without_a_target_on_spark(spark: Any) -> None:
    frame = pl.DataFrame(ORDINARY).head(N_LACKING)
    engine = SparkEngine(session=spark)
    with pytest.warns(plar.PlarWarning, match="No row has a value of the target 'survived'"):
        selection = plar.select(spark.createDataFrame(frame.to_arrow()), "survived", engine=engine)
    assert set(selection.left_out.values()) == {"no row has a target"}


def test_each_is_switched_off() -> None:
    as_class = plar.select(ORDINARY, "survived", missing_decision="value")
    assert as_class.n_rows == N
    assert as_class.notes == NOTES[1:]
    kept = plar.select(ORDINARY, "survived", keep=["Name", 0])
    assert kept.left_out == {}
    assert not any("number or name" in note for note in kept.notes)
    one = plar.select(ORDINARY, "survived", keep="Name")
    assert one.notes[1] == "1 column that only numbers or names the rows was left out: PassengerId (option keep)."
    uncut = plar.select(ORDINARY, "survived", bins=None)
    assert uncut.cuts == {}
    assert uncut.notes == NOTES[:2]
    named = plar.select(ORDINARY, "survived", bins={"age": "quantile:3"})
    assert named.notes == NOTES[:2]
    assert [*named.cuts] == ["age"]
    table = {"a": ["NA", "x"] * 30, "t": ["NA", "x"] * 30}
    assert plar.select(table, "t", na=()).n_rows == 60
    dotted = {"a": ["?", "x", "y"] * 20, "t": ["?", "u", "v"] * 20}
    assert plar.select(dotted, "t").n_rows == 60
    assert plar.select(dotted, "t", na="?").n_rows == 40


def test_weights_do_not_make_an_index() -> None:
    """Twenty rows number themselves; nineteen do not, however often each counts."""
    for n, reasons in ((20, {"id": "one value per row"}), (19, {})):
        table: Columns = {
            "id": [*range(n)],
            "a": [i % 3 for i in range(n)],
            "t": [i % 2 for i in range(n)],
            "w": [5] * n,
        }
        assert plar.select(table, "t", weights="w").left_out == reasons


def test_rows_are_counted_with_their_weights() -> None:
    table: Columns = {"a": [1, 2] * 30, "t": [None, "x", "y"] * 20, "w": [3, 1, 1] * 20}
    selection = plar.select(table, "t", weights="w")
    assert selection.notes == ("60 rows without a target were left out.",)
    assert selection.n_rows == 40
    first = {name: values[:4] for name, values in table.items()}
    first["t"] = ["x", "y", "x", None]
    assert plar.select(first, "t").notes == ("1 row without a target was left out.",)


def test_what_may_leak_the_target() -> None:
    bits = [i >> 3 & 1 for i in range(4000)]
    nearly = [1 - bit if i == 5 else bit for i, bit in enumerate(bits)]
    hardly = [1 - bit if i % 100 == 0 else bit for i, bit in enumerate(bits)]
    table: Columns = {"noise": [i % 5 for i in range(4000)], "copy": bits, "hardly": hardly, "t": bits}
    selection = plar.select(table, "t")
    assert selection.notes == ("copy alone determines the target almost completely: does it leak it? (option exclude)",)
    assert selection.alone["copy"] > 0.99 > selection.alone["hardly"]
    assert plar.select({**table, "nearly": nearly}, "t").notes == (
        "copy, nearly each determine the target almost completely: do they leak it? (option exclude)",
    )


def test_rows_with_missing_values_are_counted() -> None:
    notes = plar.select(ORDINARY, "survived", missing="drop").notes
    complete = [row for row in zip(*ORDINARY.values(), strict=True) if None not in row and "NA" not in row]
    assert notes[:2] == (
        NOTES[0],
        f"{N - N_LACKING - len(complete)} rows with missing values were left out (option missing).",
    )
    weighted = plar.granulate({"a": [0, 1, 2] * 20, "w": [0, 1, 1] * 20, "t": [0, 1] * 30}, "t", weights="w")
    assert not any("missing" in note for note in plar.select(weighted, missing="drop").notes)


def test_what_is_read_as_text() -> None:
    columns: Columns = {
        "amount": [f"{i % 7 + 1},{i % 10}00.5" for i in range(80)],
        "price": [f"${i % 9}.50" for i in range(80)],
        "share": [f"{i % 30}.5 %" for i in range(80)],
        "day": [f"{i % 28 + 1:02}.01.2023" for i in range(80)],
        "month": [f"{i % 28 + 1}-Jan-2023" if i else None for i in range(80)],
        "read": [f"2023-01-{i % 28 + 1:02}" for i in range(80)],
        "word": [f"{i % 7 + 1},{i % 10}00.5" if i else "many" for i in range(80)],
        "t": [i % 2 for i in range(80)],
    }
    [note] = [note for note in plar.select(columns, "t").notes if "recognize" in note]
    assert note == (
        "amount, price, share, day and 1 more look like numbers or dates in a format that plar does not recognize, and "
        "were compared as text. It reads 1234.56 and 2023-01-15."
    )


@pytest.mark.parametrize(
    "value",
    ["p", "1234.56", "1998.0", "612 345 678", "560 001", "12-34-56", "1.10.12", "1001-12", "001,002", "Octane 95",
     "Market 10", "Decile 01", "10.0.0.12", "4:3", "A-17", "£", "May", "1,2"],
)  # fmt: skip
def test_what_is_ordinary_text(value: str) -> None:
    columns: Columns = {"a": [value if i % 2 else value[::-1] + "0" for i in range(80)], "b": [value] * 80}
    columns["c"] = [value if i % 2 else value.replace("1", "2").replace("p", "e") for i in range(80)]
    notes = plar.select({**columns, "t": [i % 2 for i in range(80)]}, "t", bins=None).notes
    assert not any("recognize" in note for note in notes)


def test_values_that_occur_once_are_warned_of_where_they_are_selected() -> None:
    columns: Columns = {"ticket": [f"T{i // 2}" for i in range(120)], "t": [i // 2 % 2 for i in range(120)]}
    columns["ticket"][0] = "alone"
    selection = plar.select(columns, "t")
    assert selection.columns == ("ticket",)
    note = "ticket has 61 different values in 120 rows: it only helps with values seen before (option exclude)."
    assert note in selection.notes


def test_granules_that_were_cut_before_are_not_said_to_be_cut() -> None:
    columns: Columns = {"x": [float(i) for i in range(60)], "t": [i // 30 for i in range(60)]}
    granules = plar.granulate(columns, "t", bins="width:3")
    assert not any("quartile" in note for note in plar.select(granules, keep=["x"]).notes)


def test_a_first_line_that_may_be_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1.5,2,0\n" + "".join(f"{i / 4},{i % 3},{i % 2}\n" for i in range(40)))
    with pytest.warns(plar.PlarWarning, match="first line of the file may be data. If it is, pass header=False"):
        plar.select(path, -1)
    assert plar.select(path, -1, header=False).n_rows == 41
    rows = "".join(f"{i / 4},{i % 3},{i % 2}\n" for i in range(40))
    declared = "".join(f"@attribute '{name}' numeric\n" for name in ("1.5", "2", "0"))
    (tmp_path / "t.arff").write_text(f"@relation r\n{declared}@data\n{rows}")
    assert plar.select(tmp_path / "t.arff", -1).n_rows == 40


def test_a_target_as_a_column_and_other_words() -> None:
    with pytest.raises(plar.UnknownNameError, match=r"^Column 'survived' is the target\. Choose others: PassengerId"):
        plar.select(ORDINARY, "survived", keep=["survived"])
    with pytest.raises(
        plar.UnknownNameError, match=r"^Unknown target 99\. Choose a position from 0 to 10, or from the end"
    ):
        plar.select(ORDINARY, 99)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'decision'\. Did you mean 'target'"):
        plar.select(ORDINARY, decision="survived")  # type: ignore[call-arg]
    with pytest.raises(plar.ParameterError, match="'alpha' parameter must be between 0 and 1"):
        plar.select(ORDINARY, "survived", alpha=0)


def test_selected_columns_are_handed_on_uncut() -> None:
    selection = plar.select(ORDINARY, "survived")
    frame = pl.DataFrame(ORDINARY)
    handed_on = selection.transform(frame)
    assert handed_on.equals(frame.select([name for name in ORDINARY if name in (*selection.columns, "survived")]))
    binned = selection.transform(frame, output="bins")["day"].to_list()
    cuts = selection.cuts["day"]
    assert binned == [sum(cut < _seconds(day) for cut in cuts) for day in ORDINARY["day"]]


def test_several_targets_are_refused() -> None:
    with pytest.raises(
        plar.TableError, match=r"^select predicts one column, but 2 targets are given: 'survived', 'word'"
    ):
        plar.select(ORDINARY, ["survived", "word"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^No target is given\. Pass target=, a column of the table, or y=, labels beside it\. Columns: "),
        ({"target": "sank"}, r"^Unknown target 'sank'\. Choose one of: "),
        ({"target": "age", "y": [1]}, r"^Both target and y are given\. Pass target="),
        ({"target": "age", "bins": {"age": "auto"}}, "'age' is the target, which bins= does not cut. Use target_bins="),
        ({"target": "age", "target_bins": "mdlp"}, r"^target_bins='mdlp' would cut the target by itself\."),
        ({"target": "age", "conditions": ["age"]}, r"^'age' is both a column to choose from and the target\."),
        ({"target": "age", "keep": ["sank"]}, r"^Unknown column 'sank'\."),
        ({"target": "age", "drop": [*ORDINARY][:2] + [*ORDINARY][3:]}, r"Leave at least one beside the target\.$"),
    ],
)  # fmt: skip
def test_errors_say_target(options: dict[str, Any], message: str) -> None:
    with pytest.raises(plar.PlarError, match=message):
        plar.select(ORDINARY, **options)
    with pytest.raises(plar.TableError, match="No decision is given"):  # other functions keep their word
        plar.reduce(ORDINARY)


def test_bins_that_saw_the_target_are_warned_of() -> None:
    columns = {"x": [float(i) for i in range(60)], "t": [i // 30 for i in range(60)]}
    with pytest.warns(plar.PlarWarning, match="The cut points of bins='mdlp' depend on what is predicted"):
        plar.select(columns, "t", bins="mdlp", keep=["x"])


@pytest.mark.parametrize("bins", [None, "quantile:5"])
def test_an_opened_table_gets_the_defaults_that_it_was_made_without(bins: str | None) -> None:
    passengers = "examples/passengers.csv"
    table = plar.read_table(ROOT / passengers, "survived", bins=bins)
    expected = plar.select(ROOT / passengers, "survived", bins=bins or "auto")
    selection = plar.select(table)
    assert facts(selection) == facts(expected)
    assert selection.settings["bins"] == (bins or "auto")
    with pytest.raises(plar.TableError, match="made with another"):
        plar.select(table, bins="width:3")
