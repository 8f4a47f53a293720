"""Spark, as a bulk import needs it: the driver commits, Spark schedules what needs no lake."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lakebed
from lakebed.bootstrap.bulk_import import Task, Tasks
from lakebed.errors import UnavailableError
from spark_jobs.bulk_import_frames import answers_frame, tasks_frame

ATTEMPTS = 4
"""Attempts of a task before the job is given up. A session of its own would try only once."""

REASON_LENGTH = 300


class SparkCluster:
    """Runs the tasks of bulk imports as a Spark job. Begins when the first one is asked for.

    master: "local[*]" for this machine's cores; None: as Spark was started. conf: Spark's settings.
    session: the caller's, which stays open; then the other two do not count.
    """

    def __init__(
        self,
        tasks: Tasks,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self._tasks = tasks
        self._master = master
        self._conf = conf or {}
        self._given = session
        self._spark: SparkSession | None = None

    @property
    def tasks_at_once(self) -> int:
        """Return about how many tasks may run at the same time."""
        return int(self._session().sparkContext.defaultParallelism)

    def sort(self, job: bytes, works: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the answers of the first stage. Raises: UnavailableError."""
        return self._done(self._tasks.sort, job, works)

    def merge(self, job: bytes, works: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the answers of the second stage. Raises: UnavailableError."""
        return self._done(self._tasks.merge, job, works)

    def close(self) -> None:
        """End the session, if one began."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def _done(self, task: Task, job: bytes, works: Sequence[bytes]) -> Iterator[bytes]:
        if not works:
            return iter(())
        spark = self._session()
        with _given_up():
            shared = spark.sparkContext.broadcast((job, list(works)))

            def do_task(number: int) -> bytes:
                job, works = shared.value
                return task(job, works[number])

            answers = answers_in_frame(answers_frame(tasks_frame(spark, len(works)), do_task))
            shared.destroy()
        return iter(answers)

    def _session(self) -> SparkSession:
        if self._given is not None:
            return self._given
        if self._spark is None:
            conf = SparkConf().set("spark.app.name", "lakebed bulk import")
            if self._master is not None:
                path = _find_python()
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
                os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent))  # it is quiet
                conf.setAll([*_LOCAL.items(), ("spark.executorEnv.PYTHONPATH", path)])
            conf.setAll(list(self._conf.items()))
            if self._master is not None:
                conf.setMaster(self._master)
            self._spark = SparkSession.builder.config(conf=conf).getOrCreate()
        return self._spark


def answers_in_frame(frame: DataFrame) -> list[bytes]:
    """Return what the tasks of a frame answered. column: answer binary.

    Raises:
        UnavailableError: Spark gave up.
    """
    with _given_up():
        return [bytes(row["answer"]) for row in frame.collect()]


@contextmanager
def _given_up() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise UnavailableError(
            "Spark gave up on the job",
            reason=_reason(error),
            hint="no rows were ingested; run it again",
        ) from error


_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.task.maxFailures": str(ATTEMPTS),
    # The JVM only schedules: to compile its code well costs more than all that it does.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings on one machine: only it may reach Spark, and a lost task is tried again."""


def _find_python() -> str:
    """Let tasks run under this interpreter; return where they find what this process finds."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ours = [
        str(Path(package.__path__[0]).parent) for package in (lakebed, sys.modules["spark_jobs"])
    ]
    found = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = dict.fromkeys([*ours, *filter(None, found)])
    path = os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    return path


def _reason(error: Exception) -> str:
    """Return the line of an error that says most: the last one of a task's, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (causes or lines or [type(error).__name__])[0][:REASON_LENGTH]
