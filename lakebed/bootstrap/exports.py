"""Export of a table into a folder or a bucket, and a table from there: opens the other side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.bootstrap.app import App
from lakebed.bootstrap.machine import cpus
from lakebed.bootstrap.object_locations import (
    SCHEME,
    bucket_and_prefix,
    endpoint_config,
    obstore_installed,
)
from lakebed.errors import InvalidError
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import Exported, ExportTable, Progress
from lakebed.exports.restore_table import Restored, RestoreTable
from lakebed.exports.target import MANIFEST, PROGRESS, ExportTarget
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.addresses import scheme_of, without_file_scheme
from lakebed.model.disk_errors import translated
from lakebed.statestore.open_table import OpenTable

WORKERS_MAX = 4
"""Each reads ahead, and holds row groups on their way into a file: 200 MiB or so."""
IN_S3 = "s3"


def export(
    app: App,
    table: OpenTable,
    target: str | os.PathLike[str],
    request: ExportRequest,
    *,
    restart: bool,
    workers: int | None,
    on_progress: Progress,
) -> Exported:
    """Export rows of a table into a folder. workers: slices that are read at the same time; None:
    as many as there are CPUs, at most four. Raises: as `ExportTable.run`."""
    count = min(WORKERS_MAX, cpus()) if workers is None else workers
    if type(count) is not int or count < 1:
        raise InvalidError("not a number of workers", workers=workers, hint="give 1 or more")
    with _opened(app, target) as there:
        _refuse_lake(app, there)
        return ExportTable(query=app.query, clock=app.clock, budgets=app.paying.budgets).run(
            table,
            there,
            request,
            workers=count,
            restart=restart,
            on_progress=on_progress,
        )


def restore_table(
    app: App,
    name: str,
    source: str | os.PathLike[str],
    *,
    verify: bool,
    on_progress: Callable[[str, int, int], None],
) -> Restored:
    """Make a table of an export. source: its folder, or its manifest. Raises: as
    `RestoreTable.run`."""
    text = os.fspath(source)
    folder = text.removesuffix(MANIFEST) if text.endswith(f"/{MANIFEST}") else text
    folder = "." if text == MANIFEST else folder
    ingest = IngestRows[pa.RecordBatch](
        files=app.files, clock=app.clock, tracker=app.tracker, stage="compaction"
    )
    service = RestoreTable(catalog=app.catalog, ingest=ingest, query=app.query, steps=app.steps)
    with _opened(app, folder) as there:
        return service.run(name, there, verify=verify, on_progress=on_progress)


@contextmanager
def _opened(app: App, location: str | os.PathLike[str]) -> Iterator[ExportTarget]:
    """Give a folder of a user's. Nothing is made. Raises: InvalidError: it cannot be one."""
    location = without_file_scheme(location)
    scheme = scheme_of(location)
    if scheme is None:
        yield _directory(app, Path(location))
        return
    if scheme != IN_S3 or not os.fspath(location).startswith(SCHEME):
        hint = "give a directory of this machine, or s3://BUCKET/FOLDER as text"
        raise InvalidError("not a place for an export", target=location, hint=hint)
    with ExitStack() as undo:
        yield _in_s3(app, os.fspath(location), undo)


def _directory(app: App, path: Path) -> ExportTarget:
    with translated("looking at a directory"):
        if path.exists() and not path.is_dir():
            hint = "name a directory; one that is not there is made"
            raise InvalidError("an export lies in a directory", target=path, hint=hint)
    objects = PlainLocalObjects(path, app.clock)
    return ExportTarget(objects, str(path), lambda: objects.tidy(PROGRESS))


def _in_s3(app: App, location: str, undo: ExitStack) -> ExportTarget:
    """Return a folder in a bucket: with the credentials of an instance where the lake is one."""
    bucket, prefix = bucket_and_prefix(location)
    with obstore_installed(location):
        from lakebed.backends.aws.source_files import PlainS3Objects
    if app.local is not None:
        objects = PlainS3Objects(
            bucket, prefix, clock=app.clock, rng=app.rng, config=endpoint_config()
        )
        return ExportTarget(objects, location, is_probed=True)
    from lakebed.bootstrap.aws import new_clients
    from lakebed.bootstrap.aws_stores import config_of

    clients = new_clients(app.clock, app.rng)
    undo.callback(clients.close)
    objects = PlainS3Objects(
        bucket, prefix, clock=app.clock, rng=app.rng, config=config_of(clients), clients=clients
    )
    return ExportTarget(objects, location, is_probed=True)


def _refuse_lake(app: App, target: ExportTarget) -> None:
    """Refuse a directory inside of the lake's. Raises: InvalidError."""
    if app.local is None or scheme_of(target.location) is not None:
        return
    lake, path = app.local.directory.path, Path(target.location).resolve()
    if lake == path or lake in path.parents:
        hint = "name a directory outside of it, best on another disk"
        raise InvalidError("the target lies in the lake", target=path, hint=hint)
