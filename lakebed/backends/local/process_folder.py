"""A folder for one process's rows on their way. Any process may remove it when its owner has died.

<name>.lock   held by the process while it lives; the kernel frees it when it dies, however. In it
              stands what the process says of itself, if it does
<name>/       what it spills
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lakebed.model.disk_errors import translated

SUFFIX = ".lock"
_serial = itertools.count()


class ProcessFolder:
    """A new folder inside `root`. Close it to remove it; a process that dies leaves it to
    `remove_dead`."""

    def __init__(self, root: Path) -> None:
        with translated("making a folder to spill to"):
            self._lock, self._lock_path = _locked_file(root)
            self.path = self._lock_path.with_suffix("")
            self.path.mkdir()

    def __del__(self) -> None:
        if hasattr(self, "path"):
            self.close()

    def write_note(self, body: bytes) -> None:
        """Write down what this process says of itself, in place of what it said before."""
        with translated("writing what a process says of itself"):
            self._lock.seek(0)
            left = memoryview(body)
            while left:
                left = left[self._lock.write(left) :]
            self._lock.truncate()

    def close(self) -> None:
        """Remove it and all that is in it. Safe to call again."""
        if not self._lock.closed:
            shutil.rmtree(self.path, ignore_errors=True)
            with suppress(OSError):
                self._lock_path.unlink()
            self._lock.close()


def dead_in(root: Path) -> list[Path]:
    """Return what processes that are dead left in the folder `root`."""
    with translated("looking for spilled rows"):
        return [path for path in sorted(root.iterdir()) if _is_dead(path)]


def notes_of_living(root: Path) -> list[tuple[Path, bytes, float]]:
    """Return the lock of each living process with a folder in `root`, what it wrote down, and when,
    in seconds since 1970."""
    found = []
    with translated("looking for processes"):
        for path in sorted(root.glob(f"*{SUFFIX}")):
            with suppress(FileNotFoundError):  # it ended just now
                if is_held(path):
                    found.append((path, path.read_bytes(), path.stat().st_mtime))
    return found


def others_alive(root: Path, mine: ProcessFolder) -> list[int]:
    """Return the ids of other living processes with a folder in `root`, also of another that this
    process has opened."""
    with translated("looking for other processes"):
        locks = [path for path in sorted(root.glob(f"*{SUFFIX}")) if not _is_dead(path)]
    return [int(lock.name.partition("-")[0]) for lock in locks if lock.stem != mine.path.name]


def remove_dead(root: Path) -> int:
    """Remove what dead processes left in the folder `root`. Returns how many things."""
    removed = 0
    for path in dead_in(root):
        if path.suffix == SUFFIX:
            removed += remove_unless_held(path, beside=path.with_suffix(""))
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
        else:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def is_held(lock: Path) -> bool:
    """Return whether a living process holds the lock on a file. Raises: FileNotFoundError."""
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_unless_held(path: Path, *, beside: Path | None = None) -> bool:
    """Remove a file whose lock no living process holds, and a folder beside it. Returns whether.

    The lock is held meanwhile: an owner that opens the file only now waits, and sees that it went.
    """
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if is_still_at(file, path):
            if beside is not None:
                shutil.rmtree(beside, ignore_errors=True)
            path.unlink(missing_ok=True)
            return True
    return False


def is_still_at(file: BinaryIO, path: Path) -> bool:
    """Return whether a file that was opened and then locked is still the one at its path.

    Between the two steps it looks like a dead process's, and may have been removed.
    """
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _locked_file(root: Path) -> tuple[BinaryIO, Path]:
    while True:
        path = root / f"{os.getpid()}-{next(_serial)}{SUFFIX}"
        try:
            # Without a buffer: what a full disk refused is not tried again when it is closed.
            file = path.open("xb", buffering=0)
        except FileExistsError:  # a dead process of the same id left it
            continue
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if is_still_at(file, path):
            return file, path
        file.close()


def _is_dead(path: Path) -> bool:
    lock = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    try:
        return not is_held(lock)
    except FileNotFoundError:
        return path != lock
