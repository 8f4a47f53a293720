"""A lake in a directory whose clock is turned by hand, a folder of files, and who submits them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.batching import batch_files, batches_of, run_batches
from lakebed.bootstrap.local import open_local
from lakebed.ingest.batch_listing import BatchReport
from lakebed.ingest.submit_files import Submitted
from lakebed.lake import Lake
from lakebed.model.jobs import BATCHES_QUEUE, batch_message_in
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.user_jobs import Ingested
from lakebed.tasks.work_done import WorkDone
from tests.unit.tables.lakes import SCHEMA, ids, rows


class BatchStory:
    """A lake with a table `trips`, and a folder."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder / "landing"
        self.folder.mkdir()
        self.clock = VirtualClock()
        self.app = open_local(folder / "lake", clock=self.clock)
        self.lake = Lake(self.app)
        self.table = self.lake.create_table("trips", SCHEMA, settings=settings)
        self.id = self.table._opened.id
        self.batches = batches_of(self.app)

    def given(self, name: str, *keys: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(keys), path)
        self.clock.advance(1)
        stamp = self.clock.now() * 1_000
        os.utime(path, ns=(stamp, stamp))  # another version, however fast it was written
        return str(path)

    def submit(self, *names: str) -> Submitted:
        return self.table.submit(names)

    def run(self, seconds: float = 0, **given: Any) -> WorkDone:  # noqa: ANN401 - as it is given
        self.clock.advance(seconds)
        return self.lake.run(**given)

    def run_failing(self, seconds: float = 0) -> list[FailedWork]:
        failed: list[FailedWork] = []
        self.run(seconds, failed=failed.append)
        return failed

    def tick(self, seconds: float = 0) -> int:
        """Make batches, and take none in."""
        self.clock.advance(seconds)
        return batch_files(self.app).run(self.table._opened)

    def take_in(self) -> list[Ingested]:
        """Do all jobs that wait."""
        queue, done = self.app.queues.open(BATCHES_QUEUE), []
        while found := queue.receive(messages_max=1, hidden_seconds=60):
            message = batch_message_in(found[0].body)
            assert message is not None
            done.append(run_batches(self.app).run(message))
            queue.delete(found[0].receipt)
        return done

    def lose_messages(self) -> int:
        queue, lost = self.app.queues.open(BATCHES_QUEUE), 0
        while found := queue.receive(messages_max=10, hidden_seconds=60):
            queue.delete(*(one.receipt for one in found))
            lost += len(found)
        return lost

    @property
    def ids(self) -> list[str]:
        return ids(self.table)

    @property
    def newest(self) -> BatchReport:
        return self.table.batches(limit=1)[0]

    def pending(self) -> list[str]:
        return sorted(Path(one.file).name for one in self.table.pending_files())
