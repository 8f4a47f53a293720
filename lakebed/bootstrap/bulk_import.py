"""Bulk import: a driver that has the whole lake, and tasks that have its objects only."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
import pyarrow as pa

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.process_folder import ProcessFolder, remove_dead
from lakebed.backends.system.chance import system_random
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.local import LocalApp
from lakebed.bootstrap.object_places import SCHEME, objects_at, place_of
from lakebed.bulk_import.do_task import DoTask
from lakebed.bulk_import.import_rows import Cluster, ImportRows
from lakebed.model.names import job_id
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.input_files import ExtraColumns, FileFormat, input_files
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.tasks.user_jobs import Ingested

Task = Callable[[bytes, bytes], bytes]


class Tasks(NamedTuple):
    """What a cluster runs, in any process on any machine: they may be pickled."""

    sort: Task
    merge: Task


class _Place(msgspec.Struct, frozen=True):
    """Where tasks find a lake's objects. objects: a directory, or s3://bucket/prefix. instance:
    whether it is of an instance on AWS. spill: a folder for rows on their way; None: this
    machine's."""

    objects: str
    instance: bool
    spill: str | None


class BulkImportApp:
    """The driver of bulk imports into a lake. lake: as `lakebed.connect` takes it.

    Raises: as `lakebed.connect`; nothing is made.
    """

    def __init__(self, lake: str | os.PathLike[str]) -> None:
        self._app = _opened(lake)
        self._service = ImportRows(
            objects=self._app.objects, tracker=self._app.tracker, clock=self._app.clock
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._app.close()

    def run(
        self,
        table: str,
        paths: Sequence[str | os.PathLike[str]],
        *,
        cluster_for: Callable[[Tasks], Cluster],
        job: str | None = None,
        format: FileFormat | None = None,
        extra_columns: ExtraColumns = "refuse",
        told: Callable[[str], None] = lambda _: None,
    ) -> Ingested:
        """Take files into a table by the cluster that runs these tasks. Raises: as `ImportRows`."""
        opened = self._app.catalog.find(table)
        files = input_files([Path(path).absolute() for path in paths], format)
        place = msgspec.json.encode(_place(self._app))
        return self._service.run(
            opened,
            files,
            cluster=cluster_for(Tasks(partial(sort, place), partial(merge, place))),
            job=None if job is None else job_id(job),
            extra_columns=extra_columns,
            told=told,
        )


def sort(place: bytes, job: bytes, work: bytes) -> bytes:
    """Do a task of the first stage, in a process of a cluster."""
    with _doing(place) as tasks:
        return tasks.sort(job, work)


def merge(place: bytes, job: bytes, work: bytes) -> bytes:
    """Do a task of the second stage, in a process of a cluster."""
    with _doing(place) as tasks:
        return tasks.merge(job, work)


@contextmanager
def _doing(place: bytes) -> Iterator[DoTask]:
    """Give what does a task, with a folder of its own: a cluster ends its processes by force."""
    where = msgspec.json.decode(place, type=_Place)
    objects, root = _opened_place(where)
    with closing(ProcessFolder(root)) as folder:
        files = ParquetFiles(objects, spill_directory=folder.path)
        yield DoTask(objects=objects, files=files, chance=system_random())


@functools.lru_cache(maxsize=4)
def _opened_place(where: _Place) -> tuple[ObjectStore, Path]:
    """Return objects and a folder for spilled rows, kept while this process lives: of each core
    there is one."""
    pa.set_cpu_count(1)
    if where.spill is not None:
        return _objects(where), Path(where.spill)
    root = Path(tempfile.gettempdir()) / "lakebed-spill"
    root.mkdir(mode=0o700, exist_ok=True)
    remove_dead(root)
    return _objects(where), root


def _objects(where: _Place) -> ObjectStore:
    if not where.objects.startswith(SCHEME):
        return LocalObjectStore(Path(where.objects), SystemClock())
    if not where.instance:
        return objects_at(where.objects, clock=SystemClock(), chance=system_random())
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.bootstrap.aws_stores import objects_of

    bucket, _, prefix = where.objects.removeprefix(SCHEME).partition("/")
    chance = system_random()
    return objects_of(AmazonClients(clock=SystemClock(), chance=chance), bucket, prefix, chance)


def _opened(lake: str | os.PathLike[str]) -> App:
    if isinstance(lake, str) and lake.startswith(INSTANCE_SCHEME):
        from lakebed.bootstrap.aws import AwsApp

        return AwsApp(lake.removeprefix(INSTANCE_SCHEME))
    return LocalApp(lake, create=False)


def _place(app: App) -> _Place:
    """Return where tasks find the objects of an open lake."""
    instance = app.place.startswith(INSTANCE_SCHEME)
    spill = None if instance else str(app.spill.path.parent)
    if isinstance(app.objects, LocalObjectStore):
        return _Place(str(Path(app.place).absolute()), instance, spill)
    return _Place(place_of(app.objects), instance, spill)
