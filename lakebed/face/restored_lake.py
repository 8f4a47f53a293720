"""Brings a table into a lake from files that were exported."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakebed.face.sql_lake import SqlLake

if TYPE_CHECKING:
    from lakebed.exports.restore_table import Restored


class RestoredLake(SqlLake):
    """A lake that takes exports in."""

    def restore_table(
        self,
        name: str,
        manifest: str | os.PathLike[str],
        *,
        verify: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _phase, _done, _total: None,
    ) -> Restored:
        """Make the table of an export, with its rows; or complete what an earlier try began. Again
        does nothing.

        manifest: what `Table.export` wrote, or the folder that it is in; also `s3://bucket/folder`.
        verify: read files and table once more, and compare.
        on_progress: called with what is being done, with how many rows, and of how many.

        Raises:
            InvalidError: no export lies there, or no table can be made of it, or a table of this
                name has another schema or processing, or rows. Nothing was made.
            CorruptError: the manifest was changed, or a file is missing or damaged. Nothing was
                made. Or, by `verify`: the rows differ.
            UnavailableError, UnknownOutcomeError: the table may be there without rows; call again.
        """
        from lakebed.bootstrap.exports import restore_table

        return restore_table(self._app, name, manifest, verify=verify, on_progress=on_progress)
