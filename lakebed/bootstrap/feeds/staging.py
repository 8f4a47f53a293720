"""Stages rows of feeds, put together from the services of a lake."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.compaction.merge_small_files import MergeSmallFiles
from lakebed.feeds.pacing.merge_written import MergeWritten
from lakebed.ingest.stage_rows import StageRows
from lakebed.model.names import TableId
from lakebed.ports.table_registry import TableRegistry


def staging_of(app: App) -> StageRows[pa.RecordBatch]:
    """Return what stages rows of feeds. Of a lake in a directory it merges small files of the table
    before; in an instance schedules and tasks do that."""
    if app.local is None:
        return StageRows[pa.RecordBatch](files=app.files)
    small_files = MergeSmallFiles[pa.RecordBatch](
        run_job=app.run_job,
        give_up=app.give_up,
        is_online=partial(_is_online, app.registry),
        tracker=app.tracker,
        clock=app.clock,
    )
    merge = MergeWritten(
        small_files,
        failed=app.feeds.failed_merges,
        held=app.feeds.held,
        share=app.feeds.merging,
        clock=app.clock,
    )
    return StageRows[pa.RecordBatch](files=app.files, before=merge.run)


def _is_online(registry: TableRegistry, table: TableId) -> bool:
    """Return whether a table is online, whatever its name is by now."""
    return any(entry.online for entry in registry.list() if entry.id == table)
