"""Tasks in this process: what containers run, until their queue is empty."""

from functools import partial
from pathlib import Path

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.app import App
from lakebed.bootstrap.tasks.compaction_task import compact_from
from lakebed.bootstrap.tasks.ingest_task import ingest_from
from lakebed.bootstrap.tasks.task_process import task_loop
from lakebed.errors import InvalidError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.model.jobs import INGEST_QUEUE
from lakebed.tasks.task_loop import StopRequest, TaskLimits

UNTIL_EMPTY = TaskLimits(idle_seconds=0, wait_seconds=0, failures_max=1)


def run_ingest_task(app: App, landing: Path) -> None:
    """Run the ingest jobs that messages ask for. landing: where their files may lie."""
    files = AllowedFiles([str(landing)], objects=None, local=LocalSourceFiles())
    loop = task_loop(
        app,
        "ingest",
        queue=app.queues.open(INGEST_QUEUE),
        handle=ingest_from(app, files).run,
        stop=StopRequest(),
        refused=(InvalidError,),
        limits=UNTIL_EMPTY,
    )
    assert loop.run() == "idle"


def run_compaction_task(app: App) -> None:
    """Run compaction jobs."""
    handle, stop = partial(compact_from, app), StopRequest()
    loop = task_loop(
        app, "compaction", queue=app.queue, handle=handle, stop=stop, limits=UNTIL_EMPTY
    )
    assert loop.run() == "idle"
