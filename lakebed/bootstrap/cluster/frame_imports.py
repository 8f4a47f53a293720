"""Bulk imports of rows that an engine holds: a driver that has the lake, and tasks that sort."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.bulk_import import ClusterFor, Tasks, merge, sort
from lakebed.bootstrap.cluster.processes import (
    doing,
    import_rows_into,
    location_for_tasks,
    opened_lake,
)
from lakebed.bulk_import.work import BegunImport, decode, encode, refused
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import RequestDigest, TableId, digest_of, job_id
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.input_files import ExtraColumns


class BegunFrame(msgspec.Struct, frozen=True):
    """A job that was begun, for the process that ends it; tasks of the cluster get `tasks`.

    lake: as `lakebed.connect` takes it.
    """

    lake: str
    table: TableId
    begun: bytes
    tasks: FrameTasks


class FrameTasks(msgspec.Struct, frozen=True):
    """The tasks that sort the rows of a frame, in any process on any machine."""

    location: bytes
    job: bytes

    def sort(self, number: int, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Sort rows and put them as a run; return the answer. number: of this part of the frame,
        from 0; no other part has it.

        Raises:
            UnavailableError, UnknownOutcomeError: another attempt may succeed.
        """
        with doing(self.location) as tasks:
            return tasks.sort_frame(self.job, number, batches)

    def refuse(self, error: InvalidError) -> bytes:
        """Return the answer of a part that can never be sorted."""
        return encode(refused(error))


class Asked(NamedTuple):
    """A request to append a frame to a table.

    columns: name and type of each, as the engine says them: they stand for the request.
    job: the user's name for it; None: a fresh one.
    """

    table: str
    columns: Sequence[tuple[str, str]]
    job: str | None = None
    extra_columns: ExtraColumns = "refuse"

    @property
    def digest(self) -> RequestDigest:
        """Stands for the request: not for its rows, which may come in another order."""
        return digest_of(b"frame", *(part.encode() for pair in self.columns for part in pair))


def begin_frame(lake: str | os.PathLike[str], asked: Asked) -> BegunFrame | Ingested:
    """Begin to append a frame, or return what became of the job when it was done before.

    Raises:
        As `lakebed.connect`. TableMissingError, with the nearest known name. InvalidError: not a
        job id. JobIdReusedError: it stands for another request.
    """
    id_ = None if asked.job is None else job_id(asked.job)
    app = opened_lake(lake)
    try:
        table = app.catalog.find(asked.table)
        begun = import_rows_into(app).begin(
            table, asked.digest, job=id_, extra_columns=asked.extra_columns
        )
        if isinstance(begun, Ingested):
            return begun
        tasks = FrameTasks(location_for_tasks(app), encode(begun.job))
        return BegunFrame(_anywhere(app), table.id, encode(begun), tasks)
    finally:
        app.close()


def finish_frame(
    frame: BegunFrame,
    answers: Iterable[bytes],
    *,
    cluster_for: ClusterFor,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Ingested:
    """Merge what was sorted, and commit. answers: of all parts of the frame.

    Raises:
        As `ImportRows.run`. InvalidError: the table was dropped meanwhile.
    """
    app = opened_lake(frame.lake)
    try:
        location = frame.tasks.location
        return import_rows_into(app).finish(
            app.catalog.with_id(frame.table),
            decode(frame.begun, BegunImport),
            answers,
            cluster=cluster_for(Tasks(partial(sort, location), partial(merge, location))),
            on_progress=on_progress,
        )
    finally:
        app.close()


def give_up_frame(frame: BegunFrame, answers: Iterable[bytes], error: LakebedError) -> None:
    """End a job without its rows, and report why. answers: those that there are.

    Raises:
        As `finish_frame`, before anything is done.
    """
    app = opened_lake(frame.lake)
    try:
        table = app.catalog.with_id(frame.table)
        import_rows_into(app).give_up(table, decode(frame.begun, BegunImport), answers, error)
    finally:
        app.close()


def _anywhere(app: App) -> str:
    """Return how a process in another directory opens the lake."""
    is_instance = app.location.startswith(INSTANCE_SCHEME)
    return app.location if is_instance else str(Path(app.location).absolute())
