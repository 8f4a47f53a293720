"""Processes of a cluster, on any machine: where a lake's objects are, and what is kept open."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.process_folder import ProcessFolder, remove_dead
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.object_locations import ObjectsLocation, location_of, objects_for_process
from lakebed.bootstrap.releases import report_by_lock
from lakebed.bulk_import.do_task import DoTask
from lakebed.bulk_import.import_rows import ImportRows
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.source_files import SourceFiles
from lakebed.sorted_files.parquet_files import ParquetFiles


class ClusterLocation(msgspec.Struct, frozen=True):
    """The location of a lake's objects for the tasks of a cluster.

    spill: a folder for rows on their way; None: this machine's.
    sources: where users' files may lie.
    """

    objects: ObjectsLocation
    spill: str | None
    sources: tuple[str, ...]


class _Stores(NamedTuple):
    """The stores that a process of a cluster keeps open.

    sources: users' files by URL, with a folder for them.
    root: for folders of its tasks.
    """

    objects: ObjectStore
    sources: Callable[[Path], SourceFiles | None]
    root: Path


def opened_lake(lake: str | os.PathLike[str]) -> App:
    """Return the services of a lake that is there. Raises: as `lakebed.connect`."""
    if isinstance(lake, str) and lake.startswith(INSTANCE_SCHEME):
        from lakebed.bootstrap.aws import open_instance

        return open_instance(lake.removeprefix(INSTANCE_SCHEME))
    return open_local(lake, create=False)


def import_rows_into(app: App) -> ImportRows:
    """Return the service that takes rows into a lake by a cluster."""
    return ImportRows(
        objects=app.objects,
        files=app.files,
        tracker=app.tracker,
        clock=app.clock,
        budgets=app.paying.budgets,
    )


def location_for_tasks(app: App, sources: Sequence[str] = ()) -> bytes:
    """Return where tasks find the objects of an open lake. sources: where users' files may lie."""
    instance = app.location.startswith(INSTANCE_SCHEME)
    spill = None if instance else str(app.spill.path.parent)
    if isinstance(app.objects, LocalObjectStore):
        objects = str(Path(app.location).absolute())
    else:
        objects = location_of(app.objects)
    location = ClusterLocation(ObjectsLocation(objects, instance), spill, tuple(sources))
    return msgspec.json.encode(location)


@contextmanager
def doing(location: bytes) -> Iterator[DoTask]:
    """Give what does a task, with a folder of its own: a cluster ends its processes by force."""
    where = msgspec.json.decode(location, type=ClusterLocation)
    stores = _opened_stores(where)
    with closing(ProcessFolder(stores.root)) as folder:
        report_by_lock(stores.root, folder, SystemClock())
        in_s3 = stores.sources(folder.path)
        yield DoTask(
            objects=stores.objects,
            files=ParquetFiles(stores.objects, spill_directory=folder.path),
            sources=AllowedFiles(where.sources, objects=in_s3, local=LocalSourceFiles()),
            rng=system_random(),
        )


def files_for_reading(location: bytes) -> ParquetFiles:
    """Return a lake's files, which are kept while this process lives. Nothing is spilled."""
    where = msgspec.json.decode(location, type=ClusterLocation)
    return _kept_files(msgspec.structs.replace(where, spill=None, sources=()))


@functools.lru_cache(maxsize=4)
def _kept_files(where: ClusterLocation) -> ParquetFiles:
    pa.set_cpu_count(1)
    objects, _ = objects_for_process(where.objects)
    return ParquetFiles(objects, spill_directory=Path(tempfile.gettempdir()))


@functools.lru_cache(maxsize=4)
def _opened_stores(where: ClusterLocation) -> _Stores:
    """Return stores that are kept while this process lives: of each core there is one."""
    pa.set_cpu_count(1)
    root = Path(where.spill) if where.spill is not None else _own_root()
    objects, clients = objects_for_process(where.objects)
    if clients is None:
        return _Stores(objects, lambda _: None, root)
    from lakebed.bootstrap.aws_stores import source_files_of

    return _Stores(objects, partial(source_files_of, clients, system_random()), root)


def _own_root() -> Path:
    root = Path(tempfile.gettempdir()) / "lakebed-spill"
    root.mkdir(mode=0o700, exist_ok=True)
    remove_dead(root)
    return root
