"""A job that the library sends is done by a task: its files become rows once, and its sender hears
what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.tasks.ingest_task import ingest_from
from lakebed.errors import InvalidError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.lake import Lake
from lakebed.model.jobs import INGEST_QUEUE
from lakebed.ports.source_files import SourceFile
from lakebed.table import Table
from lakebed.tasks.worker import FailurePolicy, Worker
from tests.dsl.memory_instance import MemoryInstance

BUCKET = "s3://landing"


class Bucket:
    """Files of a folder by URL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = LocalSourceFiles()

    def find(self, name: str) -> list[SourceFile]:
        return [
            SourceFile(name.removesuffix("/") + one.name.removeprefix(path), one.size, one.version)
            for path in [self._path(name)]
            for one in self._files.find(path)
        ]

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        here = SourceFile(self._path(file.name), file.size, file.version)
        return self._files.on_disk(here, spans)

    def _path(self, name: str) -> str:
        return str(self._folder / name.removeprefix(f"{BUCKET}/"))


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    (folder / "day").mkdir(parents=True)
    (folder / "a.csv").write_text("key,value\na,1\n")
    (folder / "day" / "b.csv").write_text("key,value\nb,1\nc,1\n")
    return folder


@pytest.fixture
def table(instance: MemoryInstance) -> Table:
    instance.given_table("trips")
    return Lake(instance.lake).table("trips")


def take_in(instance: MemoryInstance, bucket: Path) -> int:
    """Let a task do what waits. Returns how many jobs ended."""
    files = AllowedFiles([BUCKET], objects=Bucket(bucket), local=LocalSourceFiles())
    worker = Worker(
        queue=instance.queues.open(INGEST_QUEUE),
        handle=ingest_from(instance.lake, files).run,
        failures=FailurePolicy(refused=(InvalidError,)),
    )
    return worker.run(jobs_max=100)


def keys(table: Table) -> list[str]:
    found: list[str] = table.query(columns=["key"]).read_all().column("key").to_pylist()
    return found


def test_files_and_folders_become_rows_once_however_often_a_job_is_sent(
    instance: MemoryInstance, bucket: Path, table: Table
) -> None:
    for _ in range(2):  # a sender that got no answer
        table.send([f"{BUCKET}/a.csv", f"{BUCKET}/day/"], job="monday")
    assert take_in(instance, bucket) == 2
    assert keys(table) == ["a", "b", "c"]
    assert "committed" in [report.event for report in table.jobs(job="monday")]


def test_a_sender_hears_why_a_job_was_refused(
    instance: MemoryInstance, bucket: Path, table: Table
) -> None:
    job = table.send(f"{BUCKET}/gone.csv")
    take_in(instance, bucket)
    assert keys(table) == []
    assert table.jobs(job=job)[-1].event == "rejected"
    assert "no such file" in table.jobs(job=job)[-1].reason
