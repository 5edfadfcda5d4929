"""Engines by name, loaded only when used, each with the reason why this machine cannot run it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from plar.engines.base import Engine, Evaluation, Inner
from plar.errors import EngineUnavailable, TableError, unknown_name

if TYPE_CHECKING:
    from plar.engines.cuda import CudaEngine
    from plar.engines.local import LocalEngine

__all__ = ["ENGINES", "CudaEngine", "Engine", "Evaluation", "Inner", "LocalEngine", "as_engine", "why_unavailable"]


class Entry(NamedTuple):
    """Where an engine lives and what it needs."""

    class_name: str
    needs: tuple[str, ...]
    about: str


ENGINES = {
    "local": Entry("LocalEngine", (), "this machine, all cores"),
    "spark": Entry("SparkEngine", ("pyspark",), "an Apache Spark cluster"),
    "cuda": Entry("CudaEngine", ("numba_cuda",), "an NVIDIA GPU"),
}


def why_unavailable(name: str) -> str | None:
    """Say why this machine cannot run an engine; None if it can.

    Examples
    --------
    >>> why_unavailable("local") is None
    True
    """
    missing = [package for package in ENGINES[name].needs if find_spec(package) is None]
    has_it = find_spec(f"plar.engines.{name}") is not None
    install = f"needs {' and '.join(missing)} (pip install 'plar[{name}]')" if missing else ""
    later = "" if has_it else "is not part of this version of plar"
    return " and ".join(filter(None, [install, later])) or _what_is_amiss(name)


def _what_is_amiss(name: str) -> str | None:
    """Ask the engine itself, where packages are not all that it needs."""
    if not ENGINES[name].needs:
        return None
    try:
        module = import_module(f"plar.engines.{name}")
    except ImportError as error:
        return f"cannot be loaded: {' '.join(str(error).split())}"
    reason: str | None = getattr(module, "why_unavailable", lambda: None)()
    return reason


def as_engine(engine: str | Engine, n_jobs: int | None = None) -> Engine:
    """Make the engine of that name; an engine object is taken as it is.

    Examples
    --------
    >>> as_engine("local", n_jobs=2).name
    'local'
    >>> as_engine("gpu")
    Traceback (most recent call last):
    plar.errors.UnknownNameError: Unknown engine 'gpu'. Choose one of: auto, local, spark, cuda.
    """
    if not isinstance(engine, str):
        if isinstance(engine, type) or not hasattr(engine, "open"):
            raise TableError(
                f"The engine must be a name or an engine with its options, such as LocalEngine(n_jobs=2). "
                f"Got {engine!r} instead."
            )
        if n_jobs is not None:
            raise TableError("Give n_jobs to the engine itself, such as LocalEngine(n_jobs=2), not beside it.")
        return engine
    name = "local" if engine == "auto" else engine
    if name not in ENGINES:
        raise unknown_name("engine", engine, ["auto", *ENGINES])
    reason = why_unavailable(name)
    if reason:
        ready = [other for other in ENGINES if why_unavailable(other) is None]
        raise EngineUnavailable(f"The engine {name!r} {reason}. Ready here: {', '.join(ready)}.")
    kind: Any = getattr(import_module(f"plar.engines.{name}"), ENGINES[name].class_name)
    return cast(Engine, kind(n_jobs=n_jobs) if name == "local" else kind())


def __getattr__(name: str) -> Any:
    for module, entry in ENGINES.items():
        if entry.class_name == name and find_spec(f"plar.engines.{module}") is not None:
            return getattr(import_module(f"plar.engines.{module}"), name)
    raise AttributeError(f"module 'plar.engines' has no attribute {name!r}")
