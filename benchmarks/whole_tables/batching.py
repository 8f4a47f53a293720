"""Submitted files: how many a second are submitted, and put into batches, with SQLite and against
MiniStack, whose DynamoDB is this machine's, too.

Files are small, and none is read: their rows are another benchmark's.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import lakebed
from benchmarks.figures import Figure, table
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.aws import open_instance
from lakebed.bootstrap.batching import batch_files
from lakebed.lake import Lake
from lakebed.table import Table
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put_bytes

ROOT = Path(__file__).parents[2]
FILES, CLOUD_FILES = 10_000, 1_000
SETTINGS = {"batch_seconds_max": 0}
SCHEMA = lakebed.schema_of(row_keys={"id": "string"})
ROW = b"id\nx\n"


def run() -> list[Figure]:
    """Measure it; takes two minutes."""
    return [*_in_a_directory(), *_in_an_instance()]


def _in_a_directory() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="lakebed-batching-") as name:
        landing = Path(name) / "landing"
        landing.mkdir()
        for number in range(FILES):
            (landing / f"{number:05}.csv").write_bytes(ROW)
        with lakebed.connect(Path(name) / "lake") as lake:
            batched = lake.create_table("batched", SCHEMA, settings=SETTINGS)
            submitted = _submitted(batched, f"{landing}/", FILES)
            begun = time.perf_counter()
            batch_files(lake._app).run(batched._opened)  # noqa: SLF001 - `run` would take them in
            planned = FILES / (time.perf_counter() - begun)
            assert sum(one.files for one in batched.batches(limit=1_000)) == FILES
    return _figures("sqlite", submitted, planned)


def _in_an_instance() -> list[Figure]:
    settings = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
    with tempfile.TemporaryDirectory(prefix="lakebed-batching-") as name:
        folder = Path(name)
        synthesize(ROOT, folder / "assembly", settings)
        with LocalCloud(folder / "assembly", folder / "cloud", clock=SystemClock()) as cloud:
            instance = RunningInstance(cloud, folder / "cache")
            for number in range(CLOUD_FILES):
                put_bytes(instance, f"batched/{number:04}.csv", ROW)
            with instance.led_here(), Lake(open_instance(INSTANCE, clock=cloud.clock)) as lake:
                batched = lake.create_table("batched", SCHEMA, settings=SETTINGS)
                submitted = _submitted(batched, f"{SOURCES}/batched/", CLOUD_FILES)
                begun = time.perf_counter()
                cloud.fire(f"lakebed-{INSTANCE}-batching")
                cloud.settle()
                planned = CLOUD_FILES / (time.perf_counter() - begun)
                assert sum(one.files for one in batched.batches()) == CLOUD_FILES
            assert not cloud.failures, cloud.failures
    return _figures("ministack", submitted, planned)


def _submitted(batched: Table, folder: str, files: int) -> float:
    """Submit a folder. Returns how many of its files a second."""
    begun = time.perf_counter()
    assert batched.submit([folder]).added == files
    return files / (time.perf_counter() - begun)


def _figures(where: str, submitted: float, planned: float) -> list[Figure]:
    return [
        Figure(f"batch.files_per_second.submitted.{where}", submitted, "files/s", None, "higher"),
        Figure(f"batch.files_per_second.batched.{where}", planned, "files/s", None, "higher"),
    ]


if __name__ == "__main__":
    print(table(run()))
