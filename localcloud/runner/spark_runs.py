"""Runs of EMR Serverless, each a Spark process of this machine, as template and request say."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lakebed.errors import InvalidError
from localcloud.programs import checked_requests, shifted_time, task_process
from localcloud.runner.workers import PRIVATE_FOLDER
from localcloud.services.amazon import Amazon
from localcloud.services.cloud_clock import CloudClock
from localcloud.services.emulator import REGION, Emulator
from localcloud.templates.running import SparkSpec

DRIVER_VARIABLE, TASK_VARIABLE = "spark.emr-serverless.driverEnv.", "spark.executorEnv."
MASTER = f"local[{os.cpu_count() or 1},4]"
INHERITED = ("PATH", "LD_LIBRARY_PATH", "JAVA_HOME")
ON_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
"""Only this machine may reach it; and one machine compiles no more than it needs."""
OF_CLUSTERS = ("spark.archives", "spark.dynamicAllocation", "spark.executor.", "spark.driver.")
"""Settings of what one machine has not: it has one process of Java, and its own memory."""
SPARK_HINT = "install Java 17 and, beside lakebed, pyspark: pip install 'pyspark==4.0.2'"


class SparkProcess:
    """A run under way."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self.is_cancelled = False

    def kill(self) -> None:
        """End it at once, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class SparkRequest(NamedTuple):
    """A run that a platform was asked for.

    id: of it, for its folder and log.
    role: its ARN.
    program: the URL of what is run.
    arguments: of the program.
    conf: settings of Spark.
    of_driver: what those begin with that are variables of the driver.
    """

    id: str
    role: str
    program: str
    arguments: Sequence[str]
    conf: Mapping[str, str]
    of_driver: str


class SparkLauncher:
    """Starts Spark processes of this machine. said: gets what drivers print."""

    def __init__(
        self,
        amazon: Amazon,
        emulator: Emulator,
        *,
        clock: CloudClock,
        said: Callable[[bytes], None],
    ) -> None:
        self._amazon = amazon
        self._emulator = emulator
        self._clock = clock
        self.said = said

    def start(self, spec: SparkSpec, asked: SparkRequest) -> SparkProcess:
        """Start a run. Raises: InvalidError, for what cannot be run here."""
        spark = _pyspark()
        conf = dict(asked.conf)
        folder = self._emulator.folder / "private" / f"{spec.name}-{asked.id}"
        _make_empty(folder)
        program = folder / "main.py"
        shutil.copyfile(_asset(spec, asked.program), program)
        for archive in filter(None, conf.pop("spark.archives", "").split(",")):
            url, _, name = archive.partition("#")
            (folder / name).symlink_to(_asset(spec, url), target_is_directory=True)
        log = self._emulator.folder / "logs" / f"{folder.name}.log"
        log.parent.mkdir(exist_ok=True)
        command = [
            *(sys.executable, "-S", shifted_time.__file__, checked_requests.__file__),
            *(task_process.__file__, str(folder), str(self._clock.ahead_seconds), program.name),
            *asked.arguments,
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the user's own program
                command,
                cwd=folder,
                env=self._environment(asked, conf, folder, spark),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return SparkProcess(process, log)

    def _environment(
        self, asked: SparkRequest, conf: dict[str, str], folder: Path, spark: Path
    ) -> dict[str, str]:
        prefixes = (TASK_VARIABLE, asked.of_driver)
        given = {
            name.removeprefix(prefix): value
            for prefix in prefixes
            for name, value in conf.items()
            if name.startswith(prefix)
        }
        here = {
            name: str(folder) + value.removeprefix(PRIVATE_FOLDER)
            if value.startswith(f"{PRIVATE_FOLDER}/")
            else value
            for name, value in given.items()
        }
        own = {
            name: value
            for name, value in conf.items()
            if not name.startswith((*prefixes, *OF_CLUSTERS))
        }
        options = [f"{name}={value}" for name, value in {**own, **ON_THIS_MACHINE}.items()]
        submit = ["--master", MASTER, *(w for o in options for w in ("--conf", o)), "pyspark-shell"]
        return {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **self._amazon.environment(),
            **self._amazon.session_of(asked.role).variables,
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **here,
            "AWS_REGION": REGION,
            "PYTHONPATH": os.pathsep.join([here.get("PYTHONPATH", ""), str(spark)]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(submit),
        }


class EmulatedSparkRuns:
    """Starts the runs that were asked for, and reports to the emulator how they go."""

    def __init__(
        self, specs: Mapping[str, SparkSpec], emulator: Emulator, launcher: SparkLauncher
    ) -> None:
        self._specs = specs
        self._emulator = emulator
        self._launcher = launcher
        self.running: dict[str, SparkProcess] = {}
        """By the id of the run."""

    def look(self) -> None:
        """Start runs that wait, stop those that were cancelled, report what ended."""
        if not self._specs:
            return
        for run in self._emulator.ask("spark_runs"):
            id_ = run["jobRunId"]
            if run["state"] == "SUBMITTED":
                self._begin(id_, run)
            elif run["state"] == "CANCELLING" and id_ in self.running:
                self.running[id_].is_cancelled = True
                self.running[id_].kill()
        for id_, spark in list(self.running.items()):
            if spark.process.poll() is not None:
                self._ended(id_, spark)

    def close(self) -> None:
        """Kill what runs."""
        for spark in self.running.values():
            spark.kill()
        self.running.clear()

    def _begin(self, id_: str, run: Mapping[str, Any]) -> None:
        submitted = run["jobDriver"]["sparkSubmit"]
        try:
            asked = SparkRequest(
                id_,
                role=run["executionRoleArn"],
                program=submitted["entryPoint"],
                arguments=submitted.get("entryPointArguments", []),
                conf=conf_in(shlex.split(submitted["sparkSubmitParameters"])),
                of_driver=DRIVER_VARIABLE,
            )
            spec = self._specs[run["applicationId"]]
            self.running[id_] = self._launcher.start(spec, asked)
        except InvalidError as error:
            self._set_state(id_, "FAILED", str(error))
        else:
            self._set_state(id_, "RUNNING", "")

    def _ended(self, id_: str, spark: SparkProcess) -> None:
        del self.running[id_]
        spark.kill()  # what it started, if it could not end that
        self._launcher.said(spark.log.read_bytes())
        code = spark.process.returncode
        if spark.is_cancelled:
            self._set_state(id_, "CANCELLED", "the run was cancelled")
        elif code:
            self._set_state(id_, "FAILED", f"the driver ended with exit code {code}")
        else:
            self._set_state(id_, "SUCCESS", "")

    def _set_state(self, run: str, state: str, details: str) -> None:
        self._emulator.ask("set_spark_run_state", run=run, state=state, details=details)


def _make_empty(folder: Path) -> None:
    """Make the folder of a run. A run of an earlier session may have had the same id; what its
    links lead to stays."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _pyspark() -> Path:
    """Return the folder in which pyspark lies. Raises: InvalidError."""
    found = importlib.util.find_spec("pyspark")
    has_java = "JAVA_HOME" in os.environ or shutil.which("java") is not None
    if found is None or found.origin is None or not has_java:
        raise InvalidError("Spark is not installed here", hint=SPARK_HINT)
    return Path(found.origin).parents[1]


def conf_in(words: Sequence[str]) -> dict[str, str]:
    """Return the settings among the options of spark-submit. Raises: InvalidError for others."""
    pairs = list(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or any(word != "--conf" for word, _ in pairs):
        raise InvalidError(
            "a local cloud knows `--conf NAME=VALUE` only",
            parameters=shlex.join(words),
            hint="say each parameter as `--conf NAME=VALUE`",
        )
    return {name: value for name, _, value in (pair.partition("=") for _, pair in pairs)}


def _asset(spec: SparkSpec, url: str) -> Path:
    """Return what lies at the URL of an asset. Raises: InvalidError."""
    hash_ = url.rpartition("/")[2].partition(".")[0]
    if hash_ not in spec.assets:
        raise InvalidError(
            "a run names what is no asset of its stack", url=url, hint="deploy again, then run it"
        )
    return spec.assets[hash_]
