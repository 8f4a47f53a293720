"""A measured run of Spark: a process with one line of Spark on its path, and all that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT

LINE = "4"
CORES = 2
SETTINGS = {"spark.driver.memory": "3g", "spark.ui.enabled": "false"}


def spark_home() -> Path | None:
    """Return where Spark is installed: `make test` does it where Java is."""
    home = Path(os.environ.get("LAKEBED_SPARK", ROOT / ".venv")) / f"spark-{LINE}"
    return home if home.exists() else None


def cpu_seconds(module: str, *arguments: str) -> float:
    """Return what a run took, of JVM and workers together, once its session had started."""
    return cpu_seconds_and_answer(module, *arguments)[0]


def cpu_seconds_and_answer(module: str, *arguments: str) -> tuple[float, bytes]:
    """Return what a run took, and the last line that it wrote before it said so."""
    paths = os.pathsep.join([str(ROOT), str(spark_home())])
    run = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    answer, took = [b"", *run.stdout.splitlines()][-2:]
    return float(json.loads(took)["cpu_seconds"]), answer


@contextmanager
def told() -> Iterator[Callable[[Any], None]]:
    """Tell what happens from the moment that a session is given, until the end of the block."""
    begun: list[float] = []

    def begin(spark: Any) -> None:  # noqa: ANN401 - Spark is not there for who reads this
        spark.range(1_000).repartition(2).count()
        begun.append(_of_tree())

    yield begin
    print(json.dumps({"cpu_seconds": _of_tree() - begun[0]}), flush=True)


def _of_tree() -> float:
    """Return the CPU time of this process, and of all below it."""
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))  # its own, and of children that it waited for
    tree, wave = 0, {os.getpid()}
    while wave:
        tree += sum(ticks[pid] for pid in wave)
        wave = {pid for pid, parent in parents.items() if parent in wave}
    return tree / os.sysconf("SC_CLK_TCK")
