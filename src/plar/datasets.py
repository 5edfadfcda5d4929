"""Tables to try plar on: the paper's real ones from a folder of yours, and seeded ones of any shape.

`load` returns a `DecisionTable`, the generators plain numpy arrays.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plar.api import read_table
from plar.errors import TableError, unknown_name
from plar.input.tables import DecisionTable

__all__ = ["gisette_like", "load", "names", "random_table", "sdss_like"]

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint8]]

#: options of `read_table` for all datasets
_COMMON_OPTIONS: dict[str, Any] = {"decision": -1, "header": False, "separator": ",", "na": "?"}
#: where each dataset is, and how the paper prepared it, as further options of `read_table`
_SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "mushroom": ("agaricus-lepiota.data", {"decision": 0, "missing": "drop"}),
    "tic-tac-toe": ("tic-tac-toe.data", {}),
    "dermatology": ("dermatology.data", {"missing": "drop"}),
    "kr-vs-kp": ("kr-vs-kp.data", {}),
    "breast": ("breast-cancer-wisconsin.data", {"drop": 0, "missing": "drop"}),
    "backup-large": ("soybean-large.test", {"decision": 0}),
    "shuttle": ("shuttle.t[rs][nt]", {"separator": " "}),
    "letter": ("letter-recognition.data", {"decision": 0}),
    "ticdata2000": ("ticdata2000.txt", {"separator": "\t"}),
    "kdd99": ("kddcup.data_10_percent.gz", {}),
}


def names() -> tuple[str, ...]:
    """Names of the real datasets that `load` knows, in the paper's order.

    Examples
    --------
    >>> from plar import datasets
    >>> datasets.names()[:3]
    ('mushroom', 'tic-tac-toe', 'dermatology')
    """
    return tuple(_SOURCES)


def load(name: str, folder: str | os.PathLike[str] | None = None) -> DecisionTable:
    """Read one of the paper's datasets, prepared as the paper did.

    In Mushroom, Dermatology and Breast-cancer-wisconsin the rows with a ``?`` are dropped, in the last also
    the id. In the others a ``?`` is a value. ``"backup-large"`` is soybean-large.test, a stand-in of the same
    shape, and ``"kdd99"`` the 10 % file.

    Parameters
    ----------
    name : str
        One of `names`.
    folder : path, optional
        Where the original UCI and KDD-Cup files are; by default the folder that the environment variable
        ``PLAR_DATA`` names.

    Returns
    -------
    DecisionTable
        Columns are named ``x0, x1, …`` by their position in the file.

    Examples
    --------
    >>> from plar import datasets
    >>> datasets.load("breast", folder="uci")
    Traceback (most recent call last):
    plar.errors.TableError: No such file: 'uci/breast-cancer-wisconsin.data'. Check the path.
    """
    if name not in _SOURCES:
        raise unknown_name("dataset", name, _SOURCES)
    if folder is None:
        folder = os.environ.get("PLAR_DATA")
    if not folder:
        raise TableError(
            f"No folder to read dataset {name!r} from. Set the environment variable PLAR_DATA to the folder "
            "with the original files, or pass folder=."
        )
    file, options = _SOURCES[name]
    return read_table(Path(folder) / file, **{**_COMMON_OPTIONS, **options})


def random_table(n: int = 100_000, attributes: int = 20, values: int = 4, classes: int = 3, seed: int = 0) -> Arrays:
    """Uniform noise: every cell and every decision is drawn independently.

    Parameters
    ----------
    n, attributes : int
        Shape of the table.
    values, classes : int
        How many values a column, and the decision, may have; at most 256.
    seed : int
        Equal seeds give equal tables.

    Returns
    -------
    X : (n, attributes) array of uint8
        In Fortran order: each column is contiguous.
    y : (n,) array of uint8

    Examples
    --------
    >>> from plar import datasets
    >>> X, y = datasets.random_table(1_000, 5, values=4, classes=3)
    >>> X.shape, int(X.max()), int(y.max())
    ((1000, 5), 3, 2)
    """
    _check_sizes(n=n, attributes=attributes, values=values, classes=classes)
    seed_of_y, *seeds_of_columns = np.random.SeedSequence(seed).spawn(attributes + 1)
    X = np.empty((n, attributes), np.uint8, order="F")
    for j, seed_of_column in enumerate(seeds_of_columns):
        X[:, j] = np.random.default_rng(seed_of_column).integers(0, values, n, np.uint8)
    y = np.random.default_rng(seed_of_y).integers(0, classes, n, np.uint8)
    return X, y


def sdss_like(n: int = 320_000, attributes: int = 5_201, values: int = 8, classes: int = 17, seed: int = 0) -> Arrays:
    """Generate a table of the shape of the paper's SDSS, with structure, so that greedy iterations differ.

    Twelve hidden variables determine the class, with noise. Every twentieth column shows one of them, with renamed
    values, in 30 % to 90 % of the rows; the rest is noise. Parameters and result are those of `random_table`.

    Examples
    --------
    >>> from plar import datasets
    >>> X, y = datasets.sdss_like(n=2_000, attributes=60)
    >>> X.shape, X.flags.f_contiguous, len(set(y.tolist()))
    ((2000, 60), True, 17)
    """
    return _latent_table(n, attributes, values, classes, seed, latents=12, every=20)


def gisette_like(n: int = 6_000, attributes: int = 5_000, values: int = 10, classes: int = 2, seed: int = 0) -> Arrays:
    """Generate a table of the shape of the paper's Gisette: like `sdss_like`, with half of the columns noise.

    Examples
    --------
    >>> from plar import datasets
    >>> X, y = datasets.gisette_like(n=500, attributes=40)
    >>> X.shape, sorted(set(y.tolist()))
    ((500, 40), [0, 1])
    """
    return _latent_table(n, attributes, values, classes, seed, latents=30, every=2)


def _latent_table(n: int, attributes: int, values: int, classes: int, seed: int, *, latents: int, every: int) -> Arrays:
    """Columns of which every `every`-th shows one of the hidden variables that determine the class."""
    _check_sizes(n=n, attributes=attributes, values=values, classes=classes)
    # a random stream per column, so that a column does not depend on how many there are
    seed_of_hidden, *seeds_of_columns = np.random.SeedSequence(seed).spawn(attributes + 1)
    rng = np.random.default_rng(seed_of_hidden)
    hidden = [rng.integers(0, values, n, np.uint8) for _ in range(latents)]
    score = rng.normal(0.0, 0.1 * values, n)
    for k, latent in enumerate(hidden):
        # effects of unequal size, not monotonic in the value, so that no single column gives the class away
        score += rng.normal(0.0, 1.0 / (1 + k % 4), values)[latent] * values
    edges = np.quantile(score, np.arange(1, classes) / classes)
    y = np.searchsorted(edges, score, side="right").astype(np.uint8)

    X = np.empty((n, attributes), np.uint8, order="F")
    for j, seed_of_column in enumerate(seeds_of_columns):
        rng = np.random.default_rng(seed_of_column)
        column = rng.integers(0, values, n, np.uint8)
        if j % every == every // 2:
            new_name_of_value = rng.permutation(values).astype(np.uint8)
            latent = hidden[j // every % latents]
            is_shown = rng.random(n, np.float32) < rng.uniform(0.3, 0.9)
            np.copyto(column, new_name_of_value[latent], where=is_shown)
        X[:, j] = column
    return X, y


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        fits_in_a_byte = name in ("values", "classes")
        if size < 1 or (fits_in_a_byte and size > 256):
            limit = " and at most 256" if fits_in_a_byte else ""
            raise TableError(f"The {name!r} parameter must be at least 1{limit}. Got {size!r} instead.")
