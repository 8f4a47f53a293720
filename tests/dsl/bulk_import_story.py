"""A lake, and who starts bulk imports of messages and looks after them, in this process."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.bootstrap.batching import batches_of
from lakebed.bootstrap.bulk_import import BulkImportApp
from lakebed.bootstrap.local import open_local
from lakebed.bulk_import.follow_runs import FollowRuns
from lakebed.bulk_import.requests import ImportRequests
from lakebed.bulk_import.start_runs import StartRuns
from lakebed.ingest.allowed_files import AllowedSources
from lakebed.lake import Lake
from lakebed.model.names import JobId, Micros
from tests.dsl.in_process_cluster import InProcessCluster
from tests.dsl.spark_platform import SparkPlatform
from tests.unit.tables.lakes import SCHEMA, rows


class BulkImportStory:
    """A lake with a table `trips`, a folder where files may lie, and who starts and follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "landing"
        self.folder.mkdir()
        self.clock = VirtualClock()
        self.app = open_local(folder / "lake", clock=self.clock)
        self.lake = Lake(self.app)
        self.table = self.lake.create_table("trips", SCHEMA)
        self.platform = SparkPlatform()
        self.objects = MemoryObjectStore(self.clock)
        self.requests = ImportRequests(self.objects)
        shared: dict[str, Any] = {
            "requests": self.requests,
            "platforms": {"serverless": self.platform, "cluster": self.platform},
            "tracker": self.app.tracker,
            "clock": self.clock,
        }
        self.starter = StartRuns(
            find_table=self.app.catalog.find,
            find_id=self.app.catalog.find_id,
            batches=batches_of(self.app),
            check_file=AllowedSources([str(self.folder)]).check,
            **shared,
        )
        opened = self.table._opened
        self.follower = FollowRuns(
            find_table=lambda id_: opened if id_ == opened.id else None,
            instance_types=["m7g.2xlarge", "m6g.2xlarge"],
            **shared,
        )

    def message_for(self, name: str, *keys: str) -> dict[str, object]:
        """Return a message of id `j` for a new file."""
        return {"id": "j", "table": "trips", "files": [self.given_file(name, *keys)]}

    def given_file(self, name: str, *keys: str) -> str:
        path = self.folder / name
        pq.write_table(rows(keys), path)
        return str(path)

    def given_object(self, path: str, body: bytes) -> None:
        """Put bytes among the requests."""
        writer = self.objects.create(path)
        writer.write(body)
        writer.finish()

    def body_of(self, path: str) -> bytes:
        size = self.objects.size_of(path)
        assert size is not None, path
        return self.objects.read(path, [(0, size)])[0]

    def when_sent(self, message: object, at: int = 1) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.clock.advance(1)
        self.starter.start(body, sent_at=Micros(at))

    def when_driven(self, name: str = "") -> None:
        """Let the driver of a request do its work. name: of its run; "": the newest one."""
        request = self.requests.get(name or list(self.platform.by_name)[-1])
        self.clock.advance(1)
        driver = BulkImportApp(self.app)
        driver.run_request(request, sources=[str(self.folder)], cluster_for=InProcessCluster)

    def events(self, job: str = "j") -> list[str]:
        table = self.table._opened.id
        return [report.event for report in self.app.tracker.history(table, JobId(job))]
