"""Exports a table as files that other programs read."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from lakebed.face.explored_table import ExploredTable

if TYPE_CHECKING:
    from lakebed.exports.export_plan import AskedRows
    from lakebed.exports.export_table import Exported


class ExportedTable(ExploredTable):
    """A table whose rows are exported."""

    def export(
        self,
        target: str | os.PathLike[str],
        *,
        restart: bool = False,
        workers: int | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
        **asked: Unpack[AskedRows],
    ) -> Exported:
        """Write the rows of one version to files of Parquet, in key order, with a manifest of which
        `Lake.restore_table` makes an equal table. Again, with the same arguments, goes on where a
        run was killed; where the manifest is there, it does nothing.

        target: a directory, or `s3://bucket/folder`: empty, or not there yet.
        asked: `keys`, `ranges`, `columns`, `where`, `as_of`, as in `query`, but for expressions of
            Arrow. Other rows, columns or another `as_of` are another export: name another target.
        restart: remove what an earlier export put there, and begin anew.
        workers: slices that are read at the same time, by two threads each; None: as many as there
            are CPUs, four at the most.
        on_progress: called with how many rows are written, and of how many, about.

        Raises:
            InvalidError: what is asked for can never work, the version lies ahead, the target holds
                other things, or another export. Nothing was written.
            VersionExpiredError: the version is not kept any more, and nothing was written; or an
                export that was begun days ago cannot go on: `restart`.
            FormatGateError: older releases may still work on this lake, and would not keep an older
                version. Nothing was written.
            CorruptError: a file of the table or of the target is damaged.
            UnavailableError, UnknownOutcomeError, DeniedError: call again; it goes on.
        """
        from lakebed.bootstrap.exports import export
        from lakebed.exports.export_plan import ExportRequest

        request = ExportRequest(**asked)
        return export(
            self._app,
            self._opened,
            target,
            request,
            restart=restart,
            workers=workers,
            on_progress=on_progress,
        )
