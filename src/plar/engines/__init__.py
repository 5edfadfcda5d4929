"""Engines by name, loaded only when used, and why this machine cannot run some of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from plar.engines.base import Engine, Evaluation, LeaveOneOut
from plar.errors import EngineUnavailable, Given, ParameterError, PythonOnly, unknown_name
from plar.input.tables import DecisionTable
from plar.input.tables.spark import ClusterSource
from plar.runtime.parallel import check_jobs

if TYPE_CHECKING:
    from plar.engines.cuda import CudaEngine
    from plar.engines.local.engine import LocalEngine
    from plar.engines.spark import SparkEngine

__all__ = [
    "ENGINES",
    "CudaEngine",
    "Engine",
    "Evaluation",
    "LeaveOneOut",
    "LocalEngine",
    "SparkEngine",
    "as_engine",
    "on_spark",
    "why_unavailable",
]

#: what each engine is
ENGINES = {"local": "this machine, all cores", "spark": "an Apache Spark cluster", "cuda": "an NVIDIA GPU"}
#: packages that an engine needs
_PACKAGES = {"local": (), "spark": ("pyspark", "pyarrow"), "cuda": ("numba_cuda",)}
#: what importing an engine raises where a package is missing, or, from numba-cuda, a library of CUDA
_IMPORT_ERRORS = (ImportError, RuntimeError)


def why_unavailable(name: str, data: Any = None) -> str | None:
    """Say why this machine cannot run an engine, on these data if given; None if it can."""
    missing = [package for package in _PACKAGES[name] if find_spec(package) is None]
    if missing:
        return f"needs {' and '.join(missing)} (pip install 'plar[{name}]')"
    if name == "spark" and on_spark(data):  # where Spark runs already
        return None
    try:
        module = import_module(f"plar.engines.{name}")
    except _IMPORT_ERRORS as error:
        return f"cannot be loaded: {' '.join(str(error).split())}"
    if not hasattr(module, "why_unavailable"):
        return None
    return cast("str | None", module.why_unavailable())


def on_spark(data: Any) -> bool:
    """Whether data are on a Spark cluster already."""
    if isinstance(data, DecisionTable):
        return isinstance(data.source, ClusterSource) or on_spark(data.source.data)
    return type(data).__module__.startswith(("pyspark.sql", "plar.engines.spark"))


def as_engine(engine: object, n_jobs: int | None = None, data: Any = None) -> Engine:
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
        if not isinstance(engine, Engine):
            raise ParameterError(
                "The engine must be a name or an engine with its options, such as LocalEngine(n_jobs=2). "
                f"Got {engine!r} instead."
            )
        if n_jobs is not None:
            raise ParameterError("Pass n_jobs to the engine itself, as in LocalEngine(n_jobs=2).")
        return engine
    name = engine
    if engine == "auto":
        name = "spark" if on_spark(data) else "local"
    if name not in ENGINES:
        raise unknown_name("engine", engine, ["auto", *ENGINES])
    check_jobs(n_jobs)
    if name == "spark" and n_jobs not in (None, -1):
        raise ParameterError(
            Given("n_jobs"),
            f" sets the threads of this machine, but Spark has its own cores. Got {n_jobs!r}; leave it out",
            PythonOnly(f", or pass engine=SparkEngine(master='local[{n_jobs}]')"),
            ".",
        )
    if reason := why_unavailable(name, data):
        ready = [other for other in ENGINES if why_unavailable(other) is None]
        raise EngineUnavailable(f"The engine {name!r} {reason}. Ready here: {', '.join(ready)}.")
    engine_class: Any = getattr(import_module(f"plar.engines.{name}"), f"{name.title()}Engine")
    if name == "spark":
        return cast(Engine, engine_class())
    return cast(Engine, engine_class(n_jobs=n_jobs))


def __getattr__(name: str) -> Any:
    module = name.removesuffix("Engine").lower()
    if module not in ENGINES or name != f"{module.title()}Engine":
        raise AttributeError(f"module 'plar.engines' has no attribute {name!r}")
    try:
        return getattr(import_module(f"plar.engines.{module}"), name)
    except _IMPORT_ERRORS as error:
        raise EngineUnavailable(f"The engine {module!r} {why_unavailable(module)}.") from error
