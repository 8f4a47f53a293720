"""A task that runs ingest jobs of users' messages."""

from __future__ import annotations

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.app import App
from lakebed.bootstrap.batching import run_batches
from lakebed.bootstrap.tasks.task_process import run_task, task_loop
from lakebed.config.environments import IngestTaskEnvironment, sources_in
from lakebed.errors import InvalidError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.ingest.ingest_message import IngestFromMessages
from lakebed.model.jobs import INGEST_QUEUE
from lakebed.ports.source_files import SourceFiles
from lakebed.tasks.task_loop import StopRequest, TaskLoop


def run() -> int:
    """Run a task of the instance that this process's variables name. Returns the exit code."""
    return run_task(IngestTaskEnvironment, _loop)


def ingest_from(app: App, files: SourceFiles) -> IngestFromMessages:
    """Return what runs ingest jobs of messages on a lake. files: that messages may name."""
    return IngestFromMessages(
        ingest=app.ingest,
        find_table=app.catalog.find,
        files=files,
        tracker=app.tracker,
        clock=app.clock,
        batches=None if app.batches is None else run_batches(app, files),
    )


def _loop(app: App, environment: IngestTaskEnvironment, stop: StopRequest) -> TaskLoop:
    objects = app.source_files()
    files = AllowedFiles(sources_in(environment.sources), objects=objects, local=LocalSourceFiles())
    return task_loop(
        app,
        "ingest",
        queue=app.queues.open(INGEST_QUEUE),
        handle=ingest_from(app, files).run,
        stop=stop,
        refused=(InvalidError,),
    )
