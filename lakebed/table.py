"""A table of a lake, as callers of the library see it. Rows come and go as Arrow."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.bootstrap.housekeeping import Housekeeping
from lakebed.face.submitted_table import SubmittedTable
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.work_done import WorkDone


class Table(SubmittedTable):
    """A table of a lake: rows sorted by key."""

    def __repr__(self) -> str:
        keys = ", ".join(f.name for f in self.schema.row_keys)
        return f"<lakebed table {self.name!r} by {keys}>"

    def compact(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str], None] = lambda _: None,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Merge until each leaf has one file. The arguments, and what is raised, are those of
        `Lake.run`."""
        names = [e.name for e in self._app.catalog.list() if e.id == self._opened.id]
        work = Housekeeping(self._app, on_progress=on_progress)
        return work.run(names, everything=True, should_stop=should_stop, failed=failed)
