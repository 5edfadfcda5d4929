"""HadoopAR: a Hadoop MapReduce job for every Θ(D|B), which reads the table again.

The mapper, the reducer and the driver are in HadoopAR.java, compiled once against the Hadoop client in
pyspark. Where no cluster is configured the jobs run in Hadoop's LocalJobRunner: real jobs with their splits,
sort, spills and committed output, but without the start-up of containers and without HDFS. That flatters
Hadoop.
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
from typing import Any, Unpack

from plar.baselines.subsets import Judged, Subset, SubsetEvaluation, System, SystemOptions
from plar.errors import EngineFailed, EngineUnavailable
from plar.granules.granules import Granules
from plar.measures import Measure
from plar.results.reduct import Reduct

_SOURCE = Path(__file__).with_name("HadoopAR.java")
#: milliseconds between two polls of a job; by default one and five seconds, longer than a small job takes
_POLLING = {"mapreduce.client.progressmonitor.pollinterval": "10", "mapreduce.client.completion.pollinterval": "10"}


def hadoop_ar(
    data: Any,
    decision: Any = None,
    y: Any = None,
    *,
    conf: Mapping[str, str] | None = None,
    **options: Unpack[SystemOptions],
) -> Reduct:
    """Reduce a table with HadoopAR: each Θ is one MapReduce job over the rows, not granulated, read again every time.

    Without further settings the jobs run in Hadoop's LocalJobRunner on this machine, which has no container
    start-up: a cluster takes seconds longer for each. Where the environment variable HADOOP_CONF_DIR names
    the settings of a cluster with YARN and HDFS, or `conf` gives them, the same jobs run there.

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
        java, class_path = _compiled()
        tags, columns = self._unrolled()
        self._folder = Path(tempfile.mkdtemp(prefix="plar-hadoop-"))
        table = self._folder / "table.csv"
        with table.open("w") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in zip(tags, *columns, strict=True))
        settings = dict(_POLLING)
        if "HADOOP_CONF_DIR" not in os.environ and "mapreduce.framework.name" not in conf:
            settings |= _local_settings(table)
        settings |= conf
        options = [f"-D{name}={value}" for name, value in settings.items()]
        command = [java, "-cp", class_path, "HadoopAR", *options, str(table), measure.name, str(granules.n_decisions)]
        self._log = (self._folder / "hadoop.log").open("w+")
        pipe = subprocess.PIPE
        self._driver = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, text=True, cwd=self._folder)
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._requests = self._driver.stdin
        self._answers = self._driver.stdout

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
                raise EngineFailed(f"Hadoop could not evaluate a subset: {answer[1:].strip() or self._logged_reason()}")
            judged.append(Judged(*map(int, answer[1:].split())))
        return judged

    def _logged_reason(self) -> str:
        """The first line of the log that names an error, or its first line."""
        self._log.seek(0)
        lines = [line.strip() for line in self._log if line.strip()]
        errors = [line for line in lines if re.search(r"(Exception|Error)\b", line)]
        if errors:
            return errors[0]
        if lines:
            return lines[0]
        return "the driver ended without a message"

    def close(self) -> None:
        """Stop the driver and delete the files."""
        self._requests.close()
        self._driver.wait()
        self._answers.close()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _local_settings(table: Path) -> dict[str, str]:
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
    java = _tool("java")
    javac = _tool("javac")
    jars = _client_jars()
    key = hashlib.sha256(_SOURCE.read_bytes() + "".join(jars).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plar"
    jar = cache / f"hadoop-ar-{key}.jar"
    if not jar.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _compile(javac, jars, jar)
    class_path = [str(jar), *jars]
    cluster_settings = os.environ.get("HADOOP_CONF_DIR")
    if cluster_settings:
        class_path.insert(0, cluster_settings)
    return java, os.pathsep.join(class_path)


def _compile(javac: str, jars: Sequence[str], target: Path) -> None:
    """Compile the source into a jar, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [javac, "-nowarn", "-cp", os.pathsep.join(jars), "-d", folder, str(_SOURCE)]
        compiler = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiler.returncode:
            raise EngineUnavailable(f"The system 'HadoopAR' cannot be compiled: {compiler.stderr.splitlines()[0]}")
        complete = Path(folder, "all.jar")
        with zipfile.ZipFile(complete, "w") as jar:
            for file in Path(folder).glob("*.class"):
                jar.write(file, file.name)
        complete.rename(target)


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
    patterns = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    jars = [str(jar) for pattern in patterns for jar in sorted(folder.glob(pattern))]
    if len(jars) < len(patterns):
        raise EngineUnavailable(
            "The system 'HadoopAR' needs the Hadoop client in pyspark; install it with pip (pip install 'plar[spark]')."
        )
    return jars
