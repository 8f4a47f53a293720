"""The async twin of `lakebed.face.exported_table`.

Made by `make docs` from `lakebed/face/exported_table.py`; change it there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lakebed.aio.explored_table import ExploredTable
from lakebed.face.exported_table import ExportedTable as SyncExportedTable
from lakebed.model.predicates.language import Predicate

if TYPE_CHECKING:
    from lakebed.exports.export_table import Exported


class ExportedTable(ExploredTable):
    """A table whose rows are exported."""

    _sync: SyncExportedTable

    async def export(
        self,
        target: str | os.PathLike[str],
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        restart: bool = False,
        workers: int | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Exported:
        """Write the rows of one version to files of Parquet, in key order, with a manifest of which
        `Lake.restore_table` makes an equal table. Again, with the same arguments, goes on where a
        run was killed; where the manifest is there, it does nothing.

        target: a directory, or `s3://bucket/folder`: empty, or not there yet.
        keys, ranges, columns, where: as in `query`, but for expressions of Arrow.
        restart: remove what an earlier export put there, and begin anew.
        workers: threads; None: as many as there are CPUs, four at the most.
        on_progress: called with how many rows are written, and of how many, about.

        Raises:
            InvalidError: what is asked for can never work, the target holds other things, or
                another export. Nothing was written.
            VersionExpiredError: an export that was begun days ago cannot go on: `restart`.
            CorruptError: a file of the table or of the target is damaged.
            UnavailableError, UnknownOutcomeError, DeniedError: call again; it goes on.
        """
        return await self._calls.run(
            lambda: self._sync.export(
                target,
                keys=keys,
                ranges=ranges,
                columns=columns,
                where=where,
                restart=restart,
                workers=workers,
                on_progress=on_progress,
            )
        )
