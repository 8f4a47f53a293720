"""The public face: a lake, its tables, and what can be done with them. Rows come and go as Arrow.

lake = lakebed.connect("./lake")
table = lake.create_table("trips", lakebed.schema_of(row_keys={"id": "string"}))
table.ingest("trips.parquet")
rows = table.query(keys=["b7"]).read_all()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from lakebed.bootstrap.app import INSTANCE_SCHEME
from lakebed.bootstrap.housekeeping import Housekeeping
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.memory import Memory
from lakebed.errors import InvalidError
from lakebed.face.paid_lake import PaidLake
from lakebed.model.addresses import directory_named
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableCondition
from lakebed.table import Table
from lakebed.tables.check_new_table import check_new_table
from lakebed.tables.definition import definition_from_json
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.work_done import WorkDone


class Lake(PaidLake):
    """A lake in a directory, or on AWS. Several processes may open it at once."""

    def __repr__(self) -> str:
        return f"<lakebed lake at {self._given_app.location}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_table(
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
        check_new_table(schema, settings or {}, processing, self._app.steps)
        opened = self._app.catalog.create(
            name, schema, split_points=split_points, settings=settings, processing=processing
        )
        return Table(self._app, opened)

    def create_table_from(self, name: str, definition: Mapping[str, Any]) -> Table:
        """Create an empty table like another one, from `Table.definition`.

        Raises:
            As `create_table`. NewerFormatError: a newer Lakebed wrote the definition.
        """
        parsed = definition_from_json(definition)
        return self.create_table(
            name,
            parsed.schema,
            split_points=parsed.split_points,
            settings=parsed.settings,
            processing=parsed.processing,
        )

    def table(self, name: str) -> Table:
        """Return a table. Raises: TableMissingError, with the nearest known name."""
        return Table(self._app, self._app.catalog.find(name))

    def __getitem__(self, name: str) -> Table:
        """Return a table, as `table` does."""
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        return name in self.tables()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables())

    def tables(self, *, online: bool | None = None) -> list[str]:
        """Return the names of all tables. online: only of those that are, or are not."""
        entries = self._app.catalog.list()
        return [e.name for e in entries if online is None or e.online is online]

    def rename_table(self, old: str, new: str) -> Table:
        """Give a table another name; nothing of it is copied. Processes that have it open go on.

        Raises:
            InvalidError: the new one is no table name. TableMissingError: no table has the old
            name. TableExistsError: another table has the new one. Nothing was changed.
        """
        return Table(self._app, self._app.catalog.rename(old, new))

    def set_online(self, name: str, *, online: bool) -> None:
        """Take a table offline: `run` passes over it until it is put online, or named. Rows can be
        taken in and read all the same; compaction jobs that were created before are done. Online
        brings a table back from quarantine, too.

        Raises: TableMissingError, with the nearest known name.
        """
        self._app.catalog.set_online(name, online=online)

    def quarantine(self, name: str) -> None:
        """Set a table aside, whether its log can be read or not. Nothing is done on it or with it,
        and all of its bytes stay, until `set_online` brings it back or it is dropped.

        Raises: TableMissingError, with the nearest known name.
        """
        self._app.catalog.quarantine(name)

    def watch(self, name: str, folder: str | None) -> None:
        """Let files that arrive in a folder of S3 become rows of a table, each by itself, as if
        `Table.submit` were called for it. Those that lie there already are not told. folder:
        `s3://BUCKET/FOLDER/`; None: none any more.

        Raises:
            TableMissingError: with the nearest known name. InvalidError: the lake is a directory;
            the folder is outside the instance's `sources`; another table watches it.
        """
        self._app.catalog.watch(name, folder or "")

    def watched_folder(self, name: str) -> str | None:
        """Return the folder whose files become rows of a table as they arrive; None: no folder's.

        Raises: TableMissingError, with the nearest known name.
        """
        return self._app.catalog.entry(name).watched or None

    def table_condition(self, name: str) -> TableCondition:
        """Return whether a table is online, offline or in quarantine. Its log is not opened.

        Raises: TableMissingError, with the nearest known name.
        """
        return self._app.catalog.entry(name).condition

    def drop_table(self, name: str) -> None:
        """Remove a table and all its rows. One whose log cannot be read has to be in quarantine.

        Raises:
            TableMissingError: with the nearest known name. CorruptError: its log cannot be read;
            nothing was changed.
        """
        self._app.catalog.drop(name)

    def run(
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
        names = None
        if tables is not None:
            names = [self._app.catalog.entry(name).name for name in tables]
        work = Housekeeping(self._app, on_progress=on_progress)
        return work.run(names, kinds=kinds, should_stop=should_stop, failed=failed)

    def close(self) -> None:
        """Close files; what was committed stays, and the lake and its tables answer no more."""
        self._given_app.close()


def connect(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    objects: str | ObjectStore | None = None,
    cache_bytes: int | None = None,
    merge_bytes: int | None = None,
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

    Raises:
        InvalidError: no lake there, no such instance, a directory of something else, on a network
            file system; objects in another place, no such bucket, credentials refused; memory below
            1 MiB.
        UnavailableError: a new lake's bucket, or AWS, cannot be reached.
        NewerFormatError: a newer Lakebed made it.
    """
    memory = Memory(cache_bytes, merge_bytes)
    if isinstance(path, str) and path.startswith(INSTANCE_SCHEME):
        if objects is not None:
            hint = "its deployment says where they lie"
            raise InvalidError("an instance has its own objects", instance=path, hint=hint)
        from lakebed.bootstrap.aws import open_instance  # noqa: PLC0415  of no use to others

        return Lake(open_instance(path.removeprefix(INSTANCE_SCHEME), memory=memory))
    path = directory_named(path, instances=INSTANCE_SCHEME)
    return Lake(open_local(path, create=create, objects=objects, memory=memory))
