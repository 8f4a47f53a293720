"""The async twin of `lakebed.lake`.

Made by `make docs` from `lakebed/lake.py`; change it there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from lakebed.aio.batches import AsyncItems
from lakebed.aio.calls import THREADS, Calls, Later, Stop
from lakebed.aio.paid_lake import PaidLake
from lakebed.aio.table import Table
from lakebed.lake import Lake as SyncLake
from lakebed.lake import connect as sync_connect
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableCondition
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.work_done import WorkDone


class Lake(PaidLake):
    """A lake in a directory, or on AWS. Several processes may open it at once."""

    _sync: SyncLake

    async def create_table(
        self,
        name: str,
        schema: Schema,
        *,
        split_points: Sequence[object] = (),
        settings: Mapping[str, Any] | None = None,
        processing: Processing | None = None,
    ) -> Table:
        """Create an empty table.

        split_points: values of the first row key, ascending.
        processing: what the table does with rows: filter, age off, aggregate, keep latest, iterate.

        Raises:
            InvalidError: a name, split point, setting or processing that is not allowed, an
                iterator or strategy that is not there; nothing was changed.
            TableExistsError: the name is taken; that table is untouched.
        """
        return await self._calls.run(
            lambda: Table(
                self._calls,
                self._sync.create_table(
                    name,
                    schema,
                    split_points=split_points,
                    settings=settings,
                    processing=processing,
                ),
            )
        )

    async def create_table_from(self, name: str, definition: Mapping[str, Any]) -> Table:
        """Create an empty table like another one, from `Table.definition`.

        Raises:
            As `create_table`. NewerFormatError: a newer Lakebed wrote the definition.
        """
        return await self._calls.run(
            lambda: Table(self._calls, self._sync.create_table_from(name, definition))
        )

    async def table(self, name: str) -> Table:
        """Return a table. Raises: TableMissingError, with the nearest known name."""
        return await self._calls.run(lambda: Table(self._calls, self._sync.table(name)))

    def __getitem__(self, name: str) -> Later[Table]:
        """Return a table, as `table` does."""
        return Later(self._calls, lambda: Table(self._calls, self._sync[name]))

    def __aiter__(self) -> AsyncItems[str]:
        """As `__iter__` of the sync class."""
        return AsyncItems[str](self._calls, self._sync.__iter__)

    async def tables(self, *, online: bool | None = None) -> list[str]:
        """Return the names of all tables. online: only of those that are, or are not."""
        return await self._calls.run(lambda: self._sync.tables(online=online))

    async def rename_table(self, old: str, new: str) -> Table:
        """Give a table another name; nothing of it is copied. Processes that have it open go on.

        Raises:
            InvalidError: the new one is no table name. TableMissingError: no table has the old
            name. TableExistsError: another table has the new one. Nothing was changed.
        """
        return await self._calls.run(lambda: Table(self._calls, self._sync.rename_table(old, new)))

    async def set_online(self, name: str, *, online: bool) -> None:
        """Take a table offline: `run` passes over it until it is put online, or named. Rows can be
        taken in and read all the same; compaction jobs that were created before are done. Online
        brings a table back from quarantine, too.

        Raises: TableMissingError, with the nearest known name.
        """
        await self._calls.run(lambda: self._sync.set_online(name, online=online))

    async def quarantine(self, name: str) -> None:
        """Set a table aside, whether its log can be read or not. Nothing is done on it or with it,
        and all of its bytes stay, until `set_online` brings it back or it is dropped.

        Raises: TableMissingError, with the nearest known name.
        """
        await self._calls.run(lambda: self._sync.quarantine(name))

    async def watch(self, name: str, folder: str | None) -> None:
        """Let files that arrive in a folder of S3 become rows of a table, each by itself, as if
        `Table.submit` were called for it. Those that lie there already are not told. folder:
        `s3://BUCKET/FOLDER/`; None: none any more.

        Raises:
            TableMissingError: with the nearest known name. InvalidError: the lake is a directory;
            the folder is outside the instance's `sources`; another table watches it.
        """
        await self._calls.run(lambda: self._sync.watch(name, folder))

    async def watched_folder(self, name: str) -> str | None:
        """Return the folder whose files become rows of a table as they arrive; None: no folder's.

        Raises: TableMissingError, with the nearest known name.
        """
        return await self._calls.run(lambda: self._sync.watched_folder(name))

    async def table_condition(self, name: str) -> TableCondition:
        """Return whether a table is online, offline or in quarantine. Its log is not opened.

        Raises: TableMissingError, with the nearest known name.
        """
        return await self._calls.run(lambda: self._sync.table_condition(name))

    async def drop_table(self, name: str) -> None:
        """Remove a table and all its rows. One whose log cannot be read has to be in quarantine.

        Raises:
            TableMissingError: with the nearest known name. CorruptError: its log cannot be read;
            nothing was changed.
        """
        await self._calls.run(lambda: self._sync.drop_table(name))

    async def run(
        self,
        tables: Sequence[str] | None = None,
        *,
        kinds: Sequence[str] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str], None] = lambda _: None,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Do the scheduled work until nothing is due: split, compact, snapshot, collect, sweep.

        tables: None for all that are online.
        kinds: of work: `splitting`, `compaction-creation`, `compaction`, `commits`, `garbage`,
            `snapshots`, `sweep`, `history`; None for all.
        should_stop: asked between jobs.
        on_progress: called with a line after each job.
        failed: called in the end with each kind of work that failed on a table, or on what all
            tables share (then its table is "(all)"), the gravest first; it is tried again later, by
            calls of this process after a time that doubles up to an hour.

        Raises:
            InvalidError: there is no such kind. TableMissingError: with the nearest known name.
            LakebedError: the gravest error that a table met, when all other work was done; only
                where `failed` is not given. Its notes name the rest.
        """
        stop = Stop(should_stop)
        return await self._calls.run(
            lambda: self._sync.run(
                tables, kinds=kinds, should_stop=stop, on_progress=on_progress, failed=failed
            ),
            stop,
        )

    async def close(self) -> None:
        """Close files; what was committed stays, and the lake and its tables answer no more."""
        await self._calls.finish(self._sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def connect(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    objects: str | ObjectStore | None = None,
    cache_bytes: int | None = None,
    merge_bytes: int | None = None,
    threads: int = THREADS,
) -> Lake:
    """Open the lake in a directory; make it if there is none and `create` is true.

    path: `aws:INSTANCE` opens what was deployed as that instance; nothing is made, and `objects` is
        not for it. boto3 finds region and credentials. A directory of such a name is
        `./aws:INSTANCE`.
    objects: where a new lake keeps its objects: `s3://bucket/prefix` or a store; None: in the
        directory. A lake remembers an address, and stays there. Endpoint, region and credentials of
        S3 come from the variables AWS_... or the machine's role.
    cache_bytes: of what is kept of files for lookups; None: 192 MiB.
    merge_bytes: of a compaction's buffers, kept or refused with the least.
    threads: calls that run at once, at the most.

    Raises:
        InvalidError: no lake there, no such instance, a directory of something else, on a network
            file system; objects in another place, no such bucket, credentials refused; memory below
            1 MiB.
        UnavailableError: a new lake's bucket, or AWS, cannot be reached.
        NewerFormatError: a newer Lakebed made it.
    """
    calls = Calls(threads)
    try:
        sync = await calls.run(
            lambda: sync_connect(
                path,
                create=create,
                objects=objects,
                cache_bytes=cache_bytes,
                merge_bytes=merge_bytes,
            )
        )
    except BaseException:
        calls.close()
        raise
    return Lake(calls, sync)
