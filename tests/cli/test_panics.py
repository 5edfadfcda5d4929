"""What polars says of itself on stderr does not reach a person to whom plar says what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import fuzzing

PANIC = "\\n\\nthread 'async-executor-1' (17935) panicked at a.rs:4:3:\\nno\\nstack backtrace:\\n  0: f\\n"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = "import os, sys, time\nfrom plar.cli import panics_hidden\n" + textwrap.dedent(script)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments], capture_output=True, text=True, timeout=300
    )


def test_a_panic_that_is_dealt_with_is_not_told() -> None:
    done = run(f"""
        with panics_hidden():
            os.write(2, b"before")
            time.sleep(0.1)
            os.write(2, b"hand{PANIC}")
            time.sleep(0.1)
            os.write(2, b"more of it")
            print("ours", file=sys.stderr)
        print("after", file=sys.stderr, flush=True)
        os.write(2, b"end")
    """)
    assert done.returncode == 0
    assert sorted(done.stderr.replace("ours\n", "").partition("after")) == ["\nend", "after", "beforehand"]
    assert "ours\n" in done.stderr


def test_whoever_keeps_the_descriptor_open_does_not_hold_the_process() -> None:
    done = run("""
        import subprocess
        with panics_hidden():
            child = subprocess.Popen(["sh", "-c", "while sleep 0.1; do echo more >&2; done"])
            time.sleep(0.3)
        print("ended", file=sys.stderr, flush=True)
        child.kill()
        child.wait()
    """)
    assert done.returncode == 0
    assert done.stderr.endswith("more\nended\n")


#: a process that writes to what it got as stderr, also after we have taken it back, and stays
WRITER = "echo first >&2; echo ready; i=0; while [ $i -lt 200000 ]; do echo more >&2; i=$((i+1)); done; exec sleep 600"


@pytest.mark.parametrize("also_spark", [False, True])
def test_a_process_that_writes_on_neither_holds_us_nor_hides_what_we_say(also_spark: bool) -> None:
    if also_spark:
        pytest.importorskip("pyspark")
    done = run(
        """
        import subprocess, tempfile
        from contextlib import ExitStack
        with panics_hidden():
            os.write(2, b"by a library\\n")
            with tempfile.TemporaryFile() as log:
                with ExitStack() as stack:
                    if sys.argv[2:]:
                        from plar.engines.spark.session import _stderr_to
                        stack.enter_context(_stderr_to(log))
                    child = subprocess.Popen(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
                    assert child.stdout.readline() == "ready\\n"
                print("ours", file=sys.stderr)
                if sys.argv[2:]:
                    print(os.pread(log.fileno(), 5, 0).decode())
        print("after", file=sys.stderr)
        print(child.pid, child.poll(), flush=True)
        os._exit(0)  # as with a JVM, nobody waits for it
        """,
        WRITER,
        *(["spark"] if also_spark else []),
    )
    *logged, pid, state = done.stdout.split()
    os.kill(int(pid), signal.SIGKILL)
    assert (done.returncode, logged, state) == (0, ["first"] * also_spark, "None")
    lines = done.stderr.splitlines()
    assert lines[0] == "ours"
    assert lines[-1] == "after"
    assert lines[1:3] == (["by a library", "after"] if also_spark else ["by a library", "first"])


def test_exceptions_pass() -> None:
    done = run("""
        try:
            with panics_hidden():
                raise KeyError("x")
        except KeyError:
            print("caught", file=sys.stderr)
    """)
    assert (done.returncode, done.stderr) == (0, "caught\n")


def test_who_reads_no_stderr_does_not_stop_the_work() -> None:
    script = """
        with panics_hidden():
            for _ in range(100):
                try:
                    os.write(2, b"line\\n" * 100)
                except BrokenPipeError:
                    pass
        print("done")
    """
    script = "import os\nfrom plar.cli import panics_hidden\n" + textwrap.dedent(script)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stderr.close()
        assert started.stdout.read() == "done\n"


def test_a_real_panic_ends_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    command = [sys.executable, "-m", "plar", "reduce", str(path), "--decision", "-1"]
    for number in (307, 584, 587):
        path.write_bytes(fuzzing.damaged("parquet", number))
        bare = subprocess.run(command, capture_output=True, text=True, env={"PLAR_DEBUG": "1"}, timeout=300)
        if "panicked" in bare.stderr:
            break
    else:
        pytest.skip("this polars does not panic over these files")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: Cannot read {str(path)!r}: its parts do not fit together. "
        "The file is damaged or not what its name says.\n"
    )
