"""The machine that this process runs on."""

from __future__ import annotations

import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile

from lakebed.backends.local.mounts import mount_of, mounts_of_this_machine
from lakebed.model.disk_errors import translated
from lakebed.ports.clock import Clock
from lakebed.ports.examined.machine import Room

PACKAGES = ("pyarrow", "boto3", "obstore", "numba")
FILES_LOOKED_AT_MAX = 20_000
WRITTEN = b"\x00" * 4_096


class ThisMachine:
    """Looks at this machine, and at folders of a lake on it.

    folders: in which a lake keeps things; those that are not there are passed over.
    own: the folder whose files this user is to own; None: there is none.
    memory_bytes: returns how much memory this process may use.
    ahead_seconds: see `Machine.clock_ahead_seconds`.
    find_leftovers, sweep_leftovers: see `Machine`.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        own: Path | None,
        clock: Clock,
        memory_bytes: Callable[[], int],
        ahead_seconds: Callable[[], float | None],
        find_leftovers: Callable[[], list[str]],
        sweep_leftovers: Callable[[], int],
    ) -> None:
        self._folders = folders
        self._own = own
        self._clock = clock
        self._memory_bytes = memory_bytes
        self._ahead_seconds = ahead_seconds
        self._find_leftovers = find_leftovers
        self._sweep_leftovers = sweep_leftovers

    def python(self) -> tuple[int, ...]:
        """Return the version of Python."""
        return sys.version_info[:3]

    def versions(self) -> Mapping[str, str]:
        """Return the versions of what is installed."""
        found = {"sqlite": sqlite3.sqlite_version}
        for package in PACKAGES:
            with suppress(PackageNotFoundError):
                found[package] = version(package)
        return found

    def rooms(self) -> list[Room]:
        """Return what is left in each folder."""
        with translated("looking for free space"):
            return [_room(folder) for folder in self._there()]

    def network_folders(self) -> list[str]:
        """Return the folders that lie on another machine."""
        mounts, found = mounts_of_this_machine(), []
        for folder in self._there():
            mount = mount_of(str(folder.resolve()), mounts)
            if mount is not None and mount.is_network:
                found.append(f"{folder} ({mount.kind})")
        return found

    def write_a_file(self) -> float:
        """Write and sync a file in each folder. Returns the seconds of the slowest."""
        slowest = 0.0
        for folder in self._there():
            began = self._clock.monotonic()
            with translated(f"writing a file in {folder}"), TemporaryFile(dir=folder) as file:
                file.write(WRITTEN)
                file.flush()
                os.fsync(file.fileno())
            slowest = max(slowest, self._clock.monotonic() - began)
        return slowest

    def foreign_files(self) -> list[str]:
        """Return files of the lake that this user may not read and write, of the first ones."""
        if self._own is None:
            return []
        files = islice(_walked(self._own), FILES_LOOKED_AT_MAX)
        refused = (path for path in files if not os.access(path, os.R_OK | os.W_OK))
        return [str(path) for path in refused if os.path.lexists(path)]

    def memory_bytes(self) -> int:
        """Return how much memory this process may use."""
        return self._memory_bytes()

    def files_max(self) -> int | None:
        """Return how many files this process may have open."""
        found = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return None if found == resource.RLIM_INFINITY else found

    def clock_ahead_seconds(self) -> float | None:
        """Return how far the clock is ahead of the store's."""
        return self._ahead_seconds()

    def leftovers(self) -> list[str]:
        """Return what dead processes left."""
        return self._find_leftovers()

    def sweep_leftovers(self) -> int:
        """Remove it."""
        return self._sweep_leftovers()

    def _there(self) -> list[Path]:
        return [folder for folder in self._folders if folder.is_dir()]


def _room(folder: Path) -> Room:
    found = os.statvfs(folder)
    return Room(
        path=str(folder),
        free=found.f_bavail * found.f_frsize,
        size=found.f_blocks * found.f_frsize,
        files_free=found.f_favail if found.f_files else None,
    )


def _walked(root: Path) -> Iterator[Path]:
    """Yield a folder, and the files and folders below it. Others may remove some meanwhile."""
    yield root
    for folder, folders, files in os.walk(root):
        yield from (Path(folder, name) for name in (*folders, *files))
