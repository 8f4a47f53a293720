"""A program that asks the kernel which process writes to a database of SQLite, and prints its id.

It runs in a process of its own: closing a file gives up all locks that the process has on it
(POSIX), those of SQLite too.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from contextlib import suppress

WRITE_LOCK_BYTE = 120
"""Offset of the write lock in the shared memory of a write-ahead log (SQLite, "WAL-mode File
Format", 2.3.1)."""
_IS_MACOS = sys.platform == "darwin"
_FLOCK = "qqihh" if _IS_MACOS else "hhqqi4x"
"""The C struct `flock`: start, length, process, type, whence; on Linux the last two come first."""


def process_that_locks(path: str, start: int, length: int) -> int:
    """Return which process may alone write to bytes of a file; 0: none. length: 0: to its end."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        asked = (start, length, 0, fcntl.F_RDLCK, os.SEEK_SET)
        fields = asked if _IS_MACOS else (*asked[3:], *asked[:3])
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(_FLOCK, *fields))
    finally:
        os.close(descriptor)
    fields = struct.unpack(_FLOCK, answer)
    (process, kind) = (fields[2], fields[3]) if _IS_MACOS else (fields[4], fields[0])
    return 0 if kind == fcntl.F_UNLCK else int(process)


def main(path: str) -> None:
    """Print the process that writes to a database, or else has it for itself; 0: none."""
    process = 0
    for name, start, length in ((f"{path}-shm", WRITE_LOCK_BYTE, 1), (path, 0, 0)):
        with suppress(FileNotFoundError):
            process = process or process_that_locks(name, start, length)
    print(process)  # noqa: T201  its answer


if __name__ == "__main__":
    main(sys.argv[1])
