"""The async twin of `lakebed.table`.

Made by `make docs` from `lakebed/table.py`; change it there.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.aio.calls import Stop
from lakebed.aio.submitted_table import SubmittedTable
from lakebed.table import Table as SyncTable
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.work_done import WorkDone


class Table(SubmittedTable):
    """A table of a lake: rows sorted by key."""

    _sync: SyncTable

    async def compact(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str], None] = lambda _: None,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Merge until each leaf has one file. The arguments, and what is raised, are those of
        `Lake.run`.
        """
        stop = Stop(should_stop)
        return await self._calls.run(
            lambda: self._sync.compact(should_stop=stop, on_progress=on_progress, failed=failed),
            stop,
        )
