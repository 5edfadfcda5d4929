"""What `import plar` loads, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import plar

OPTIONAL = ("pyspark", "sklearn", "numba.cuda", "numba_cuda", "matplotlib", "jinja2", "pandas", "pyarrow")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_no_optional_library() -> None:
    loaded = python(f"import sys, plar; print(*[m for m in {OPTIONAL!r} if m in sys.modules])")
    assert loaded == ""


def test_kernels_and_search_need_no_polars() -> None:
    python(
        "import sys; sys.modules['polars'] = None\n"
        "import plar.granules.granules, plar.measures, plar.search.greedy, plar.engines.local.engine"
    )


def test_everything_public_exists() -> None:
    missing = python("import plar; print(*[n for n in plar.__all__ if not hasattr(plar, n)])")
    assert missing == ""


def test_help_needs_none_of_the_heavy_libraries() -> None:
    heavy = ("numpy", "numba", "polars", "scipy")
    loaded = python(f"import sys, plar.cli; print(*[m for m in {heavy!r} if m in sys.modules])")
    assert loaded == ""


def test_a_saved_result_is_read_without_the_heavy_libraries(tmp_path: Path) -> None:
    path = str(tmp_path / "r.json")
    plar.reduce({"a": [0, 1], "d": [0, 1]}, "d").save(path)
    heavy = ("numba", "polars", "scipy")
    loaded = python(f"import plar, sys; plar.load({path!r}); print(*[m for m in {heavy!r} if m in sys.modules])")
    assert loaded == ""


def test_no_module_shadows_a_public_function() -> None:
    # importing plar.NAME would put the module where the function was
    code = """
import importlib, pkgutil, types
import plar

for module in pkgutil.walk_packages(plar.__path__, "plar."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:  # an engine that cannot run here
            pass
modules = {"datasets", "engines", "measures"}
print(*[name for name in plar.__all__ if isinstance(getattr(plar, name), types.ModuleType) and name not in modules])
"""
    assert python(code) == ""
