"""A backup of a lake, and a lake from a backup: opens the other side and copies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakebed.backends.local.lake_directory import MARK
from lakebed.backups.copy_definitions import CopyDefinitions
from lakebed.backups.copy_lake import CopyLake, LakeCopied
from lakebed.backups.copy_table import CopyTable, Progress
from lakebed.bootstrap.app import App, LocalParts
from lakebed.bootstrap.local import open_local
from lakebed.errors import ConflictError, InvalidError, TableMissingError

LOCK = f"{MARK}.backup-lock"
"""A name that a lake's directory may hold while it is made."""


def back_up(
    app: App,
    directory: str | os.PathLike[str],
    *,
    objects: str | None,
    prune: bool,
    on_progress: Progress,
) -> LakeCopied:
    """Copy a lake into a directory, which becomes a lake that can be opened.

    objects: where a new backup keeps its objects, as `connect` takes it.
    prune: remove tables from the backup that the lake does not have any more.

    Raises:
        InvalidError: the directory is the lake's own, or holds other things.
        ConflictError: another process copies into or from it. Nothing was changed.
    """
    _refuse_itself(app, Path(directory))
    backup = open_local(directory, clock=app.clock, objects=objects)
    try:
        local = _local_parts(backup)
        with _alone(local.directory.path):
            done = _copier(app, backup, local, pinned=True, on_progress=on_progress).run()
            if prune:
                for name in done.only_in_copy:
                    with suppress(TableMissingError):
                        backup.catalog.drop(name)
            return done
    finally:
        backup.close()


def restore(app: App, directory: str | os.PathLike[str], *, on_progress: Progress) -> LakeCopied:
    """Copy a backup into a lake: a new one, or one that an earlier try began.

    Raises:
        InvalidError: there is no backup in the directory, or the lake has a table under the name of
            one of the backup's, or is on AWS.
        ConflictError: another process copies into or from the directory. Nothing was changed.
    """
    local = _local_parts(app)
    _refuse_itself(app, Path(directory))
    backup = open_local(directory, create=False, clock=app.clock)
    try:
        with _alone(_local_parts(backup).directory.path):
            _refuse_taken_names(app, backup)
            return _copier(backup, app, local, pinned=False, on_progress=on_progress).run()
    finally:
        backup.close()


def _local_parts(app: App) -> LocalParts:
    """Return what a lake in a directory has."""
    if app.local is None:
        hint = "restore into a directory; a backup is a lake that can be read as it is"
        raise InvalidError(
            "a restore into an instance is not supported yet", lake=app.location, hint=hint
        )
    return app.local


def _copier(
    source: App, target: App, local: LocalParts, *, pinned: bool, on_progress: Progress
) -> CopyLake:
    """Return what copies tables. local: of the target."""
    return CopyLake(
        source_names=source.registry,
        source_logs=source.logs,
        opened=source.catalog.opened,
        target_names=local.names,
        log_copy=local.log_copy,
        copy_table=CopyTable(
            source=source.objects,
            target=target.objects,
            clock=source.clock,
            pinned=pinned,
            on_progress=on_progress,
        ),
        copy_definitions=CopyDefinitions(
            source=source.feeds.definitions, target=target.feeds.definitions
        ),
    )


def _refuse_itself(app: App, directory: Path) -> None:
    """Refuse a backup in the lake's directory, and a lake in the backup's."""
    if app.local is None:
        return
    lake, other = app.local.directory.path, directory.resolve()
    if lake == other or lake in other.parents or other in lake.parents:
        hint = "name a directory outside of it, best on another disk"
        raise InvalidError("the backup and the lake lie in each other", path=other, hint=hint)


def _refuse_taken_names(app: App, backup: App) -> None:
    held = {entry.name: entry.id for entry in app.registry.list()}
    for entry in backup.registry.list():
        if held.get(entry.name, entry.id) != entry.id:
            hint = "rename that table, or restore into a new directory"
            raise InvalidError(
                "the lake has another table of this name", table=entry.name, hint=hint
            )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the backup's lock: what one copy deletes as unknown another may just have written."""
    path = directory / LOCK
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait until it has ended"
            raise ConflictError(
                "another process copies this backup", path=path, hint=hint
            ) from None
        yield
