"""The command `lakebed` in a process that has one line of Spark on its path."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lakebed.cli.bulk_import import JAVA_MIN, java_version
from tests.tidy.source import ROOT

SECONDS_MAX = 600
COMMAND = (sys.executable, "-c", "from lakebed.cli.main import main; main()")


def spark_home(line: str) -> Path:
    """Return where a line of Spark is installed. Skips the test where it, or Java, is not."""
    home = Path(os.environ.get("LAKEBED_SPARK", ROOT / ".venv")) / f"spark-{line}"
    if not home.exists():
        pytest.skip(f"Spark {line} is not installed: make does it where Java is")
    if (java_version() or 0) < JAVA_MIN:
        pytest.skip(f"Spark needs Java {JAVA_MIN}")
    return home


class SparkShell:
    """Runs commands on a lake; a machine's two cores, each task tried four times."""

    def __init__(self, line: str, lake: str, folder: Path) -> None:
        self._environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(spark_home(line))]),
            "SPARK_LOCAL_DIRS": str(folder / "spark"),
            "LAKEBED_LAKE": lake,
            "PYSPARK_PYTHON": sys.executable,
        }
        self._folder = folder

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *args],
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )

    def imported(self, *args: str, master: str = "local[2,4]") -> subprocess.CompletedProcess[str]:
        """Run a bulk import."""
        return self.run("bulk-import", *args, "--master", master)

    def copied(self, files: Sequence[str], to: Path) -> None:
        """Let Spark read files of Parquet, and write what it read."""
        program = (
            "import sys; from pyspark.sql import SparkSession;"
            " spark = SparkSession.builder.master('local[1]').getOrCreate();"
            " spark.read.parquet(*sys.argv[2:]).write.parquet(sys.argv[1])"
        )
        subprocess.run(
            [sys.executable, "-c", program, str(to), *files],
            env=self._environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=self._folder,
            capture_output=True,
            check=True,
            timeout=SECONDS_MAX,
        )

    def importing(
        self, *args: str, master: str = "local[2,4]"
    ) -> AbstractContextManager["subprocess.Popen[str]"]:
        """Begin a bulk import. Who leaves before it ended, ends it."""
        return self._running(*COMMAND, "bulk-import", *args, "--master", master)

    def steps_done(
        self, steps: Sequence[Mapping[str, Any]], *, master: str = "local[2,4]"
    ) -> dict[str, dict[str, Any]]:
        """Do steps of `frame_program.py` in one session. Returns what each gave, by name."""
        with self.doing(steps, master=master) as process:
            _, told = process.communicate(timeout=SECONDS_MAX)
            assert process.returncode == 0, told[-5_000:]
        names = [step["name"] for step in steps]
        return {name: json.loads((self._folder / f"{name}.json").read_text()) for name in names}

    def doing(
        self, steps: Sequence[Mapping[str, Any]], *, master: str = "local[2,4]"
    ) -> AbstractContextManager["subprocess.Popen[str]"]:
        """Begin to do steps. Who leaves before they are done, ends it."""
        asked = self._folder / f"{steps[0]['name']}-asked.json"
        asked.write_text(json.dumps(steps))
        program = "tests.spark.frame_program"
        return self._running(sys.executable, "-m", program, str(asked), str(self._folder), master)

    @contextmanager
    def _running(self, *command: str) -> Iterator["subprocess.Popen[str]"]:
        process = subprocess.Popen(
            command,
            env=self._environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            everybody = [process.pid, *descendants(process.pid)]
            process.kill()
            process.communicate()
            for pid in everybody[1:]:
                kill(pid)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def descendants(pid: int, having: str = "") -> list[int]:
    """Return the processes below one whose command line has some text, parents first."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listing.stdout.splitlines()[1:]]
    found, wave = [], {pid}
    while wave:
        below = [(int(p), args) for p, parent, args in rows if int(parent) in wave]
        found += [p for p, args in below if having in args]
        wave = {p for p, _ in below}
    return found


def wait_for(what: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    """Wait until something is true, while a process lives."""
    deadline = time.monotonic() + SECONDS_MAX
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it does not become true"
        time.sleep(0.05)
