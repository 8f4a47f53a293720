"""Tell how a table is: its rows, files and leaves, and what waits to be done on it."""

from __future__ import annotations

from lakebed.observe import events
from lakebed.statestore.open_table import OpenTable


def measure_table(table: OpenTable) -> None:
    """Tell it as an event, from which metrics are made."""
    with table.head.reading() as state:
        leaves = list(state.leaf_figures())
        jobs = len(state.jobs())
        files_max = state.settings().leaf_files_max
    most = max((leaf.files for leaf in leaves), default=0)
    events.emit(
        events.TABLE_MEASURED,
        table=table.name,
        rows_count=sum(leaf.rows for leaf in leaves),
        files_count=sum(leaf.files for leaf in leaves),
        leaves_count=len(leaves),
        leaf_files_most=most,
        leaf_files_percent=100 * most // files_max,
        jobs_count=jobs,
    )
