"""The public face: a lake, its tables, and what can be done with them. Rows come and go as Arrow.

lake = lakebed.connect("./lake")
table = lake.create_table("trips", lakebed.schema_of(row_keys={"id": "string"}))
table.ingest("trips.parquet")
rows = table.query(keys=["b7"]).read_all()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from lakebed.bootstrap.app import INSTANCE_SCHEME
from lakebed.bootstrap.commit_queue import commit_queued
from lakebed.bootstrap.housekeeping import Housekeeping, WorkDone
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.memory import Memory
from lakebed.bootstrap.open_lake import OpenLake
from lakebed.errors import InvalidError
from lakebed.model.addresses import directory_named
from lakebed.model.formats import NEWEST, OLDEST, Formats
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.job_tracker import NO_TABLE, JobReport, TaskReport
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableCondition
from lakebed.table import Table
from lakebed.tables.check_new_table import check_new_table
from lakebed.tables.definition import definition_from_json
from lakebed.tasks.failed_work import FailedWork, by_gravity, raise_gravest

if TYPE_CHECKING:
    from lakebed.backups.copy_lake import LakeCopied
    from lakebed.inspection.dead_letters import Letter, QueueLetters
    from lakebed.inspection.fsck import FsckReport
    from lakebed.inspection.log_repair import LogRepairAction
    from lakebed.inspection.redrive import Redriven
    from lakebed.inspection.repair import RepairPlan, StepDone
    from lakebed.inspection.status import TableStatus

STATES_BYTES_MAX = 8 << 30
"""Of states that a committer keeps on the local disk: tables of fifty million files."""


class Lake(OpenLake):
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
                iterator that is not installed; nothing was changed.
            TableExistsError: the name is taken; that table is untouched.
        """
        check_new_table(schema, settings or {}, processing)
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
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str], None] = lambda _: None,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Do the scheduled work until nothing is due: split, compact, snapshot, collect, sweep.

        tables: None for all that are online.
        should_stop: asked between jobs.
        on_progress: called with a line after each job.
        failed: called in the end with each kind of work that failed on a table, the gravest first;
            it is tried again later, by calls of this process after a time that doubles up to an
            hour.

        Raises:
            TableMissingError: with the nearest known name.
            LakebedError: the gravest error that a table met, when all other work was done; only
                where `failed` is not given. Its notes name the rest.
        """
        names = None
        if tables is not None:
            names = [self._app.catalog.entry(name).name for name in tables]
        work = Housekeeping(self._app, on_progress=on_progress)
        return work.run(names, should_stop=should_stop, failed=failed)

    def status(
        self, table: str | None = None, *, failed: Callable[[FailedWork], None] | None = None
    ) -> list[TableStatus]:
        """Return what one table, or each, looks like now: its tree, rows, files, jobs, garbage.

        failed: called with each table that cannot be read or is in quarantine, and why.

        Raises:
            TableMissingError: with the nearest known name.
            LakebedError: the gravest error that a table met; only where `failed` is not given.
        """
        found, failures = self._app.inspection.status().run(table)
        if failed is None:
            raise_gravest(failures)
        else:
            for one in by_gravity(failures):
                failed(one)
        return found

    def commit_queued(
        self,
        *,
        wait_seconds: float = 0.0,
        states_bytes_max: int = STATES_BYTES_MAX,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Put queued commits into the log until the queue gives none, as `run` does; return how
        many were answered.

        wait_seconds: how long to wait for a first message.
        states_bytes_max: of the states of tables that stay on this machine.
        should_stop: asked between batches.
        on_progress: called with how many commits were answered so far.
        """
        return commit_queued(
            self._app,
            wait_seconds=wait_seconds,
            states_bytes_max=states_bytes_max,
            should_stop=should_stop,
            on_progress=on_progress,
        )

    def nameless_jobs(
        self,
        *,
        job: str | None = None,
        events: Sequence[str] = (),
        since_seconds: float | None = None,
        limit: int = 20,
    ) -> list[JobReport]:
        """Return the reports on messages that name no table that there is, as `Table.jobs`."""
        return self._app.inspection.job_history().find(
            NO_TABLE, job=job, events=events, since_seconds=since_seconds, limit=limit
        )

    def tasks(self, *, limit: int = 20) -> list[TaskReport]:
        """Return how far workers have come, the newest first. Hints."""
        return self._app.tracker.tasks(reports_max=limit)

    def dead_letters(self, *, queues: Sequence[str] = ()) -> list[QueueLetters]:
        """Return the queues, or some of them, with what was given up of each, by table.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.dead_letters().count(queues)

    def show_dead_letters(
        self, *, queues: Sequence[str] = (), table: str | None = None, limit: int = 10
    ) -> list[Letter]:
        """Return dead letters, with what is known of why they were given up.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.dead_letters().show(queues, table, letters_max=limit)

    def redrive(
        self, *, queues: Sequence[str] = (), table: str | None = None, limit: int = 100
    ) -> Redriven:
        """Send dead letters again, of each queue so many at the most; what could be done twice
        stays.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.redrive().run(queues, table, letters_max=limit)

    def fsck(
        self,
        table: str | None = None,
        *,
        deep: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> FsckReport:
        """Hold log, state, snapshots and objects against each other. Changes nothing.

        table: None for the whole lake.
        deep: read every byte and every row.
        on_progress: called with a table's name, how many of its files are checked, and of how many.

        Raises:
            TableMissingError: with the nearest known name.
        """
        names = None if table is None else [self._app.catalog.entry(table).name]
        return self._app.inspection.fsck().run(names, deep=deep, on_progress=on_progress)

    def plan_repair(self, report: FsckReport, *, log: LogRepairAction | None = None) -> RepairPlan:
        """Return what could be done, and what not. log: a way on for logs that lost entries."""
        return self._app.inspection.repair().plan(report.findings, log=log)

    def repair(self, plan: RepairPlan) -> list[StepDone]:
        """Carry out a plan of `plan_repair`; then look again with `fsck`.

        Nothing that was committed is touched; each step says what it did, or why it was not done.
        Open tables again that were open before.
        """
        return self._app.inspection.repair().run(plan)

    def backup(
        self,
        directory: str | os.PathLike[str],
        *,
        objects: str | None = None,
        prune: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> LakeCopied:
        """Copy the lake into a directory, which becomes a lake. Again copies only what is new.

        Other processes may write meanwhile: each table is copied as it was when its copy began. A
        table that cannot be copied has a `problem` in the result, and the others are copied.

        objects: where a new backup keeps its objects, as `connect` takes it.
        prune: remove tables from the backup that were dropped here.
        on_progress: called with a table's name, how many of its files are done, and of how many.

        Raises:
            InvalidError: the directory is the lake's own, or holds other things.
            ConflictError: another process copies into or from it. Nothing was changed.
        """
        from lakebed.bootstrap.backups import back_up  # noqa: PLC0415  of no use to a lookup

        return back_up(self._app, directory, objects=objects, prune=prune, on_progress=on_progress)

    def restore(
        self,
        directory: str | os.PathLike[str],
        *,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> LakeCopied:
        """Copy a backup into this lake: a new one, or one that an earlier try began.

        Raises:
            InvalidError: there is no backup in the directory; this lake has another table under the
                name of one of the backup's, or is on AWS.
            ConflictError: another process copies into or from it. Nothing was changed.
        """
        from lakebed.bootstrap.backups import restore  # noqa: PLC0415  of no use to a lookup

        return restore(self._app, directory, on_progress=on_progress)

    def formats(self) -> tuple[Formats, Formats]:
        """Return the newest forms that may be written to this lake, and those that this release
        can write. A lake that was made by an older release does not allow the newest at first."""
        return self._app.registry.formats() or OLDEST, NEWEST

    def raise_formats(self) -> Formats:
        """Allow all forms that this release can write. Do it when every process of the lake is of
        this release: older ones cannot open what is written from then on. It is never taken back.
        """
        self._app.registry.raise_formats(NEWEST)
        return self.formats()[0]

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
