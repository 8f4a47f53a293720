"""The door to the machine that this process runs on: what it has and how it is set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """The room that is left in a folder where a lake keeps things on this machine.

    path: the folder.
    free, size: bytes.
    files_free: how many more files it takes; None: any number.
    """

    path: str
    free: int
    size: int
    files_free: int | None = None


class Machine(Protocol):
    """This machine, looked at. Nothing is changed but a file that is written and removed again.

    Every implementation passes `tests/contracts/examined/test_machine.py`.

    Each method raises LakebedError where it cannot be told.
    """

    def python(self) -> tuple[int, ...]:
        """Return the version of Python."""
        ...

    def versions(self) -> Mapping[str, str]:
        """Return the versions of `pyarrow`, `sqlite`, `boto3`, `obstore` and `numba` here; those
        that are not installed are left out."""
        ...

    def rooms(self) -> list[Room]:
        """Return what is left in each folder that the lake uses here."""
        ...

    def network_folders(self) -> list[str]:
        """Return those of the folders that lie on another machine, each with its file system."""
        ...

    def write_a_file(self) -> float:
        """Write and sync a file in each of the folders, and remove it. Returns the seconds of the
        slowest.

        Raises:
            LakebedError: a folder takes no file.
        """
        ...

    def foreign_files(self) -> list[str]:
        """Return files of the lake on this machine that this process's user may not read and
        write."""
        ...

    def memory_bytes(self) -> int:
        """Return how much memory this process may use."""
        ...

    def files_max(self) -> int | None:
        """Return how many files this process may have open; None: any number."""
        ...

    def clock_ahead_seconds(self) -> float | None:
        """Return how far the wall clock is ahead of the store's; negative: behind; None: the store
        has no clock of its own."""
        ...

    def leftovers(self) -> list[str]:
        """Return what dead processes left here."""
        ...

    def sweep_leftovers(self) -> int:
        """Remove what dead processes left here. Returns how many things."""
        ...
