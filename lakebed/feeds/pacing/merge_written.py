"""Lets the small files of a table be merged by the worker that is about to add another one.

A feed commits a file for each leaf and round. Where no schedule merges them, a leaf would have as
many as it may after some hundred rounds, and the feed would wait for ever (`table-busy`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.ports.clock import Clock
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.failed_work import FailedTables

SECONDS = 1.0
"""Seconds after which no other merge is begun before the round is written."""
COMPACTION = "compaction"


class SmallFiles(Protocol):
    """Merges small files of a table, as `MergeSmallFiles`."""

    def run(self, table: OpenTable, *, bytes_max: int, seconds: float) -> int:
        """Merge some. Returns how many merges were committed."""
        ...


class MergeWritten:
    """Merges small files of a table when it is time. Whatever that meets, the feed goes on.

    failed: reports failures, and says when the work is tried again.
    held: by all pipelines of this process. A merge has as many bytes however many are held: else
        the table of a feed that is behind its source would never have fewer files.
    share: of its time that this process merges.
    """

    def __init__(
        self,
        small_files: SmallFiles,
        *,
        failed: FailedTables,
        held: HeldBytes,
        share: TimeShare,
        clock: Clock,
    ) -> None:
        self._small_files = small_files
        self._failed = failed
        self._held = held
        self._share = share
        self._clock = clock

    def run(self, table: OpenTable) -> None:
        """Merge some, unless this process has merged enough, or failed a short time ago."""
        begun = self._clock.monotonic()
        if self._share.is_free(begun):
            merge: Callable[[], int] = partial(
                self._small_files.run, table, bytes_max=self._held.merged_max, seconds=SECONDS
            )
            self._failed.attempt(table.id, table.name, COMPACTION, merge)
            self._share.spent(begun, self._clock.monotonic())
