"""A machine in memory, which a test sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from lakebed.ports.examined.machine import Room

GIB = 1 << 30
GOOD = {"pyarrow": "26.0.1", "sqlite": "3.46.0", "boto3": "1.40", "obstore": "0.8", "numba": "0.68"}


class MachineFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of a simulated machine; by default all is well. Named as the methods of
    `Machine`."""

    python: tuple[int, ...] = (3, 12, 1)
    versions: Mapping[str, str] = MappingProxyType(GOOD)
    rooms: Sequence[Room] = (Room(path="/lake", free=50 * GIB, size=100 * GIB, files_free=10**6),)
    network_folders: Sequence[str] = ()
    write_seconds: float = 0.01
    foreign_files: Sequence[str] = ()
    memory_bytes: int = 8 * GIB
    files_max: int | None = 1_024
    clock_ahead_seconds: float | None = 0.0
    leftovers: Sequence[str] = ()


ALL_WELL = MachineFigures()


class MemoryMachine:
    """Answers what it was given.

    asked: is called before each answer with the name of the method: what it raises, the machine
        raises.
    """

    def __init__(
        self,
        figures: MachineFigures = ALL_WELL,
        *,
        asked: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._figures = figures
        self._leftovers = list(figures.leftovers)
        self._asked = asked

    def python(self) -> tuple[int, ...]:
        """Return the version of Python."""
        self._asked("python")
        return self._figures.python

    def versions(self) -> Mapping[str, str]:
        """Return the versions of what is installed."""
        self._asked("versions")
        return self._figures.versions

    def rooms(self) -> list[Room]:
        """Return what is left in each folder."""
        self._asked("rooms")
        return list(self._figures.rooms)

    def network_folders(self) -> list[str]:
        """Return the folders that lie on another machine."""
        self._asked("network_folders")
        return list(self._figures.network_folders)

    def write_a_file(self) -> float:
        """Return the seconds that it takes to write a file."""
        self._asked("write_a_file")
        return self._figures.write_seconds

    def foreign_files(self) -> list[str]:
        """Return files that this user may not read and write."""
        self._asked("foreign_files")
        return list(self._figures.foreign_files)

    def memory_bytes(self) -> int:
        """Return how much memory there is."""
        self._asked("memory_bytes")
        return self._figures.memory_bytes

    def files_max(self) -> int | None:
        """Return how many files may be open."""
        self._asked("files_max")
        return self._figures.files_max

    def clock_ahead_seconds(self) -> float | None:
        """Return how far the clock is ahead."""
        self._asked("clock_ahead_seconds")
        return self._figures.clock_ahead_seconds

    def leftovers(self) -> list[str]:
        """Return what dead processes left."""
        self._asked("leftovers")
        return list(self._leftovers)

    def sweep_leftovers(self) -> int:
        """Remove it."""
        self._asked("sweep_leftovers")
        count = len(self._leftovers)
        self._leftovers.clear()
        return count
