"""Nothing that plar reads can make it run code: it loads no pickles, and evaluates no text."""

from __future__ import annotations

import ast
from pathlib import Path

import plar

SOURCE = Path(plar.__file__).parent
#: what turns data into running code; Spark's own workers get what this very run has made, and no file, that way
FORBIDDEN = {"pickle", "cPickle", "cloudpickle", "joblib", "marshal", "shelve", "dill"}
#: counts cores, and loads nothing
HARMLESS = {("joblib", "effective_n_jobs")}
TRANSPORT = {"engines/spark/distributed_tables.py", "engines/spark/session.py"}


def dangerous(path: Path) -> list[str]:
    """Uses of pickle and its kin, of eval and exec, and of numpy's loaders of pickles."""
    uses = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_harmless = all((module, alias.name) in HARMLESS for alias in node.names)
            if module.partition(".")[0] in FORBIDDEN and not is_harmless:
                uses.append(module)
        elif isinstance(node, ast.Import):
            uses += [alias.name for alias in node.names if alias.name.partition(".")[0] in FORBIDDEN]
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in ("eval", "exec", "compile", "__import__"):
                uses.append(called.id)
            if isinstance(called, ast.Attribute) and called.attr in ("read_pickle", "unsafe_load"):
                uses.append(called.attr)
            uses += [
                "allow_pickle"
                for word in node.keywords
                if word.arg == "allow_pickle"
                and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            ]
    return uses


def test_nothing_loads_pickles_from_files() -> None:
    uses = {str(path.relative_to(SOURCE)): dangerous(path) for path in SOURCE.rglob("*.py")}
    used = {name for name, what in uses.items() if what}
    assert used <= TRANSPORT, {name: uses[name] for name in used - TRANSPORT}


def test_the_look_for_pickles_sees_them(tmp_path: Path) -> None:
    for line in ("import pickle", "from joblib import load", "eval('1')", "np.load(f, allow_pickle=True)", "exec(x)"):
        (tmp_path / "m.py").write_text(line)
        assert dangerous(tmp_path / "m.py"), line
    (tmp_path / "m.py").write_text("import json\nnp.load(f, allow_pickle=False)")
    assert not dangerous(tmp_path / "m.py")
