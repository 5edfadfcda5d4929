"""Several searches at once, in threads and processes; folders that cannot be written and disks that are full."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest

import plar
from plar.engines import LocalEngine
from support import oracle
from support.comparing import facts

SOURCE = Path(plar.__file__).parent


def table(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (3000, 12)).astype(np.uint8)
    y = (X[:, seed % 12] + X[:, (seed + 5) % 12] * X[:, (seed + 7) % 12]) % 4
    return pl.DataFrame(X, schema=[f"a{j}" for j in range(12)]).with_columns(d=pl.Series(y))


def search(path: str, measure: str) -> dict[str, Any]:
    return facts(plar.reduce(path, "d", measure=measure, n_jobs=2))


def bad_weights(path: str) -> None:
    plar.reduce({"a": [0, 1], "w": [1.5, 2], "d": [0, 1]}, "d", weights="w")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    made = []
    for seed in range(3):
        made.append(str(tmp_path / f"t{seed}.csv"))
        table(seed).write_csv(made[-1])
    return made


# ---------------------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("lanes", [False, True])
def test_threads_share_granules_and_an_engine(lanes: bool) -> None:
    engine = LocalEngine(n_jobs=2, lanes=lanes)
    granules = [plar.granulate(table(seed), "d") for seed in range(3)]
    asked = [(g, measure) for g in granules for measure in oracle.MEASURES] * 3

    def run(one: tuple[plar.Granules, str]) -> dict[str, Any]:
        return facts(plar.reduce(one[0], measure=one[1], engine=engine))

    alone = [run(one) for one in asked[: len(asked) // 3]] * 3
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, asked)) == alone


def test_threads_read_files(files: list[str], tmp_path: Path) -> None:
    alone = [search(path, "LCE") for path in files]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(search, files * 4, ["LCE"] * 12)) == alone * 4
        reduct = plar.reduce(files[0], "d")
        list(pool.map(lambda _: reduct.save(tmp_path / "r.json"), range(20)))
    assert plar.load(tmp_path / "r.json") == reduct
    assert not list(tmp_path.glob(".*"))


# -------------------------------------------------------------------------------------------------- processes


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(files: list[str], backend: str) -> None:
    with joblib.parallel_config(backend=backend, n_jobs=2):
        results = joblib.Parallel()(joblib.delayed(search)(path, "SCE") for path in files * 2)
        assert results == [search(path, "SCE") for path in files] * 2
        with pytest.raises(plar.TableError, match="Weights are whole numbers"):
            joblib.Parallel()(joblib.delayed(bad_weights)(path) for path in files)


#: granules made before can be searched in a forked process, and text be read; typed files only if polars had not begun
FORKED = """
import multiprocessing, sys
import plar

def by_path(path):
    return plar.reduce(path, "d", n_jobs=2).attributes

def by_granules(_):
    return plar.reduce(granules, n_jobs=2).attributes

if __name__ == "__main__":
    method, begun, path = sys.argv[1:]
    granules = None
    if begun == "begun":
        granules = plar.granulate(path, "d")
    with multiprocessing.get_context(method).Pool(2) as pool:
        if granules is not None and method == "fork":
            print(pool.map(by_granules, range(4)))
        try:
            print(pool.map(by_path, [path] * 4))
        except plar.PlarError as error:
            print("refused:", error)
"""


@pytest.mark.parametrize(
    ("method", "begun", "kind"),
    [
        *((method, begun, "csv") for method in ("fork", "spawn", "forkserver") for begun in ("fresh", "begun")),
        *(("fork", begun, "parquet") for begun in ("fresh", "begun")),
    ],
)
def test_multiprocessing(tmp_path: Path, method: str, begun: str, kind: str) -> None:
    path, frame, script = tmp_path / f"t.{kind}", table(0), tmp_path / "script.py"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    script.write_text(FORKED)
    command = [sys.executable, "-W", "ignore", str(script), method, begun, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    right = str([plar.reduce(path, "d").attributes] * 4)
    *searched, read = done.stdout.splitlines()
    assert searched == ([right] if (method, begun) == ("fork", "begun") else [])
    if (method, begun, kind) == ("fork", "begun", "parquet"):
        assert read.startswith("refused: This process was forked from one that had used polars")
    else:
        assert read == right


def copied(folder: Path) -> Path:
    """The package without anything compiled."""
    ignore = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(SOURCE, folder / "plar", ignore=ignore)
    return folder


def small(python_path: Path, path: str, **environment: str) -> list[str]:
    """A command that tells a reduct, computed by the package in `python_path`."""
    return ran(python_path, f"json.dumps(plar.reduce({path!r}, 'd').attributes)", **environment)


def ran(python_path: Path, call: str, **environment: str) -> list[str]:
    """A command that tells where the package is, and what a call of it gives."""
    code = f"import json, plar; print(plar.__file__); print({call})"
    settings = {"PYTHONPATH": str(python_path), **environment}
    return ["env", *(f"{key}={value}" for key, value in settings.items()), sys.executable, "-c", code]


def check_small(output: str, package: Path, path: str) -> None:
    where, told = output.splitlines()
    assert Path(where).parent == package / "plar"
    assert tuple(json.loads(told)) == plar.reduce(path, "d").attributes


def test_processes_that_start_at_once_share_numbas_cache(files: list[str], tmp_path: Path) -> None:
    package = copied(tmp_path / "package")
    # a few kernels are enough: each is compiled four times here, and a reduct of text takes twenty
    call = f"len(plar.granulate(__import__('polars').read_csv({files[0]!r}), 'd'))"
    command = ran(package, call, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0
        assert output.splitlines() == [str(package / "plar" / "__init__.py"), str(len(plar.granulate(files[0], "d")))]
    assert list((tmp_path / "cache").rglob("*.nbi"))


# --------------------------------------------------------------------------------- folders, read-only and full


def _may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    made = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return made.returncode == 0


mounts = pytest.mark.skipif(not _may_mount(), reason="only root can mount a folder that is read-only or full")


def mounted(setup: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command where only it sees what `setup` has mounted."""
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{setup} && exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@mounts
def test_neither_home_nor_the_package_can_be_written(files: list[str], tmp_path: Path) -> None:
    package, home = copied(tmp_path / "package"), tmp_path / "home"
    home.mkdir()
    read_only = " && ".join(f"mount --bind {p} {p} && mount -o remount,ro,bind {p}" for p in (package, home))
    done = mounted(read_only, small(package, files[0], HOME=str(home), XDG_CACHE_HOME=str(home / "cache")))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    check_small(done.stdout, package, files[0])
    assert not list(home.iterdir())
    assert not list(package.rglob("*.nb*"))


WRITERS: dict[str, Callable[[str, Path], list[str]]] = {
    "the reduced table": lambda path, disk: ["reduce", path, "-d", "d", "-o", f"{disk}/out.csv"],
    "a Parquet file": lambda path, disk: ["reduce", path, "-d", "d", "-o", f"{disk}/out.parquet"],
    "granules": lambda path, disk: ["granulate", path, "-d", "d", "-o", f"{disk}/g.parquet"],
    "a checkpoint": lambda path, disk: ["reduce", path, "-d", "d", "--checkpoint", f"{disk}/c.json"],
    "a report": lambda path, disk: ["reduce", path, "-d", "d", "--report", f"{disk}/r.html"],
}


@mounts
@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk(tmp_path: Path, what: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3000, (3000, 6))
    path, disk = tmp_path / "t.csv", tmp_path / "disk"
    pl.DataFrame(X, schema=list("abcefg")).with_columns(d=pl.Series(X[:, 0] % 2)).write_csv(path)
    disk.mkdir()
    command = [str(Path(sys.executable).parent / "plar"), *WRITERS[what](str(path), disk)]
    full = f"mount -t tmpfs -o size=16k tmpfs {disk} && head -c 14000 /dev/zero > {disk}/filling"
    listed = ["sh", "-c", 'first="$1"; shift; "$@"; code=$?; ls -A "$first"; exit $code', "sh", str(disk), *command]
    done = mounted(full, listed)
    if "No such option" in done.stderr:
        pytest.skip(f"the command cannot write {what} yet")
    assert done.returncode == 1, done.stderr + done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("Error: "), done.stderr
    assert "No space left on device" in done.stderr
    assert done.stdout.splitlines()[-1] == "filling", "something half-written is left"
