"""Stages rows of feeds, put together from the services of a lake."""

from __future__ import annotations

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.compaction.merge_small_files import MergeSmallFiles
from lakebed.feeds.pacing.merge_written import MergeWritten
from lakebed.ingest.stage_rows import StageRows


def staging_of(app: App) -> StageRows[pa.RecordBatch]:
    """Return what stages rows of feeds. Of a lake in a directory it merges small files of the table
    before; in an instance schedules and tasks do that."""
    if app.local is None:
        return StageRows[pa.RecordBatch](files=app.files)
    small_files = MergeSmallFiles[pa.RecordBatch](
        run_job=app.run_job, tracker=app.tracker, clock=app.clock
    )
    merge = MergeWritten(
        small_files,
        failed=app.feeds.failed_merges,
        held=app.feeds.held,
        share=app.feeds.merging,
        clock=app.clock,
    )
    return StageRows[pa.RecordBatch](files=app.files, before=merge.run)
