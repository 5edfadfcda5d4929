"""HadoopAR: a Hadoop MapReduce job for every Θ(D|B), which reads the table again.

The mapper, the reducer and the driver are in HadoopAR.java, compiled once against the Hadoop client in pyspark.
Where no cluster is configured the jobs run in Hadoop's LocalJobRunner: real jobs with their splits, sort, spills and
committed output, but without the start-up of containers and without HDFS. That flatters Hadoop.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plar.baselines.subsets import Judged, Subset, SubsetEvaluation, System
from plar.errors import EngineFailed, EngineUnavailable
from plar.granules.granules import Granules
from plar.measures import Measure
from plar.results.reduct import Reduct

_SOURCE = Path(__file__).with_name("HadoopAR.java")
#: milliseconds between two polls of a job; by default one and five seconds, longer than a small job takes
_POLLING = {"mapreduce.client.progressmonitor.pollinterval": "10", "mapreduce.client.completion.pollinterval": "10"}


def hadoop_ar(
    data: Any, decision: Any = None, y: Any = None, *, conf: Mapping[str, str] | None = None, **options: Any
) -> Reduct:
    """Reduce a table with HadoopAR: each Θ is one MapReduce job over the rows, not granulated, read again every time.

    Without further settings the jobs run in Hadoop's LocalJobRunner on this machine, which has no container start-up:
    a cluster takes seconds longer for each. Where the environment variable HADOOP_CONF_DIR names the settings of a
    cluster with YARN and HDFS, or `conf` gives them, the same jobs run there.

    Parameters
    ----------
    data, decision, y, **options
        As in `har`, except Spark DataFrames.
    conf : mapping, optional
        Hadoop's settings, such as {"mapreduce.job.reduces": "4"}.

    Returns
    -------
    Reduct
        That of `plar.reduce`, except for times and engine.
    """
    return HadoopAR(conf).reduce(data, decision, y, options)


class HadoopAR(System):
    """The engine of `hadoop_ar`."""

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__("HadoopAR", partial(HadoopEvaluation, conf=conf or {}))


class HadoopEvaluation(SubsetEvaluation):
    """Θ by MapReduce jobs, one at a time; the driver is a separate process that waits for subsets."""

    def __init__(self, granules: Granules, measure: Measure, conf: Mapping[str, str]) -> None:
        super().__init__(granules, measure)
        java, classpath = _compiled()
        tags, columns = self._unrolled()
        self._folder = Path(tempfile.mkdtemp(prefix="plar-hadoop-"))
        table = self._folder / "table.csv"
        with table.open("w") as lines:
            lines.writelines(",".join(map(str, row)) + "\n" for row in zip(tags, *columns, strict=True))
        on_cluster = "HADOOP_CONF_DIR" in os.environ or "mapreduce.framework.name" in conf
        settings = {**_POLLING, **({} if on_cluster else _locally(table)), **conf}
        generic = [f"-D{name}={value}" for name, value in settings.items()]
        words = [java, "-cp", classpath, "HadoopAR", *generic, str(table), measure.name, str(granules.n_decisions)]
        self._log = (self._folder / "hadoop.log").open("w+")
        pipe = subprocess.PIPE
        self._driver = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=self._log, text=True, cwd=self._folder)
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._requests, self._answers = self._driver.stdin, self._driver.stdout

    def judge(self, subsets: Sequence[Subset]) -> list[Judged]:
        """Θ(D|B) of each of the subsets B."""
        judged = []
        for subset in subsets:
            try:
                print(",".join(map(str, subset)), file=self._requests, flush=True)
                answer = self._answers.readline()
            except BrokenPipeError:
                answer = ""
            if not answer.startswith("="):
                raise EngineFailed(f"Hadoop could not evaluate a subset: {answer[1:].strip() or self._last_words()}")
            judged.append(Judged(*map(int, answer[1:].split())))
        return judged

    def _last_words(self) -> str:
        self._log.seek(0)
        said = [line.strip() for line in self._log if line.strip()]
        naming = [line for line in said if re.search(r"(Exception|Error)\b", line)]
        if naming:
            return naming[0]
        if said:
            return said[0]
        return "the driver ended without a message"

    def close(self) -> None:
        """Stop the driver and delete the files."""
        self._requests.close()
        self._driver.wait()
        self._answers.close()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _locally(table: Path) -> dict[str, str]:
    """Settings for the local runner to use all cores, with a part of the table for each; by default it uses one."""
    cores = os.cpu_count() or 1
    return {
        "hadoop.tmp.dir": str(table.with_name("tmp")),
        "mapreduce.local.map.tasks.maximum": str(cores),
        "mapreduce.local.reduce.tasks.maximum": str(cores),
        "mapreduce.job.reduces": str(cores),
        "mapreduce.input.fileinputformat.split.maxsize": str(-(-table.stat().st_size // cores)),
    }


def _compiled() -> tuple[str, str]:
    """Java, and the class path with our classes, compiled if needed."""
    java, javac = (_tool(name) for name in ("java", "javac"))
    jars = _client_jars()
    key = hashlib.sha256(_SOURCE.read_bytes() + "".join(jars).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plar"
    ours = cache / f"hadoop-ar-{key}.jar"
    if not ours.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            words = [javac, "-nowarn", "-cp", os.pathsep.join(jars), "-d", folder, str(_SOURCE)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise EngineUnavailable(f"The system 'HadoopAR' cannot be compiled: {done.stderr.splitlines()[0]}")
            whole = Path(folder, "all.jar")
            with zipfile.ZipFile(whole, "w") as jar:
                for file in Path(folder).glob("*.class"):
                    jar.write(file, file.name)
            whole.rename(ours)
    settings = os.environ.get("HADOOP_CONF_DIR")
    return java, os.pathsep.join([*([settings] if settings else []), str(ours), *jars])


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(name, path=os.path.join(home, "bin")) if home else shutil.which(name)
    if path is None:
        where = f"JAVA_HOME is {home!r}, which has no bin/{name}" if home else f"no {name} was found"
        raise EngineUnavailable(f"The system 'HadoopAR' needs a JDK and {where}; install one, or set JAVA_HOME to it.")
    return path


def _client_jars() -> list[str]:
    """Hadoop's client, as pyspark brings it."""
    spec = find_spec("pyspark")
    wanted = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    jars = [str(jar) for pattern in wanted for jar in sorted(folder.glob(pattern))]
    if len(jars) < len(wanted):
        raise EngineUnavailable(
            "The system 'HadoopAR' needs the Hadoop client in pyspark; install it with pip (pip install 'plar[spark]')."
        )
    return jars
