"""Folders and files that survive power loss (protocol H28)."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path


def sync_file(descriptor: int) -> None:
    """Return when the file's bytes will survive power loss."""
    if sys.platform == "darwin":
        # There fsync leaves the bytes in the disk's own memory.
        import fcntl  # noqa: PLC0415  not on every platform

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def begin_sync(descriptor: int, start: int, end: int) -> None:
    """Let the disk begin with these bytes of a file, so that syncing it waits for fewer.

    A hint. Linux drops from memory what it has written by now. It begins to write the rest, and
    keeps that in memory.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a file system that takes no hints
            os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


def sync_folder(path: Path) -> None:
    """Return when names that were put into or removed from a folder will survive power loss."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_remaining_folder(path: Path) -> None:
    """Return when names that were removed from a folder stay removed after power loss. Another
    process may have removed the folder since: then the nearest one above that is there is synced,
    since a folder is gone only with all that was in it."""
    for folder in (path, *path.parents):
        with suppress(FileNotFoundError):
            sync_folder(folder)
            return


def make_folders(root: Path, path: Path, known: set[Path]) -> None:
    """Make the folder `path` under `root`, and every folder on the way, durably.

    known: folders that this process has seen to; another process may have made a folder and not yet
    synced it, so those that exist are synced too, once.
    """
    if path in known:
        return
    if not path.is_relative_to(root):
        raise AssertionError("the folder lies under the root")
    if path != root:
        parent = path.parent
        make_folders(root, parent, known)
        try:
            path.mkdir()
        except FileExistsError:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", str(path)) from None
        sync_folder(parent)
    known.add(path)
