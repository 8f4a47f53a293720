"""A DuckDB that reaches nothing but what it is given: no file, no network, no variable of ours."""

from __future__ import annotations

import atexit
import os
import shutil
import threading
from pathlib import Path
from weakref import WeakSet

import duckdb

from lakebed.errors import InvalidError, LakebedError
from lakebed.model.disk_errors import out_of_memory, translated

MEMORY_FRACTION = 2
"""Divisor of the machine's memory: half is for SQL, as tables' own buffers need some, too."""
SPILL_FOLDER = "sql"
SPILL_FRACTION = 2
"""Divisor of the disk's free space: half is for what does not fit in memory."""


def new_engine(spill: Path, *, memory_bytes: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new engine without tables, whose settings can still be changed.
    The caller closes it.

    spill: a folder on local disk for what does not fit in memory.
    memory_bytes: what it may hold; None: half of the machine's.
    """
    with translated("looking at the disk"):
        room = shutil.disk_usage(spill).free // SPILL_FRACTION
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    connection = duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "memory_limit": f"{memory_bytes or machine // MEMORY_FRACTION}B",
            "threads": f"{os.cpu_count() or 1}",
            # The engine may read what is in there, so nothing else is.
            "temp_directory": str(spill / SPILL_FOLDER),
            "max_temp_directory_size": f"{room}B",
        },
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'").fetchall()
    return connection


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Let no statement change a setting of an engine from here on."""
    connection.execute("SET lock_configuration = true").fetchall()


class ShutEngine:
    """An engine that many statements share: making one takes 60 ms. Safe to share among threads.
    Arguments: as `new_engine`."""

    def __init__(self, spill: Path, *, memory_bytes: int | None = None) -> None:
        self.spill = spill
        self.memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._first: list[duckdb.DuckDBPyConnection] = []
        _ENGINES.add(self)

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own for a statement: it sees no tables of others."""
        with self._lock:
            if not self._first:
                made = new_engine(self.spill, memory_bytes=self.memory_bytes)
                lock(made)
                self._first.append(made)
            return self._first[0].cursor()

    def close(self) -> None:
        """Close it, when no statement needs it any more; the next one makes another."""
        with self._lock:
            while self._first:
                self._first.pop().close()


_ENGINES: WeakSet[ShutEngine] = WeakSet()
"""DuckDB tells of what is left open when a process ends."""


@atexit.register
def _close_all() -> None:
    for engine in list(_ENGINES):
        engine.close()


def engine_error(error: Exception, *, lines_before: int = 0) -> LakebedError:
    """Return what an error of the engine means to who asked. lines_before: of ours, before the
    text."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return out_of_memory(error)
    problem, location = _problem_of(str(error), lines_before)
    facts = {"place": location} if location else {}
    if isinstance(error, duckdb.InterruptException):
        return interrupted(problem)
    hint = "mend the statement, or the values that it meets"
    return InvalidError("the SQL cannot be run", problem=problem, **facts, hint=hint)


def interrupted(problem: str) -> InvalidError:
    """Return what a statement that was ended from outside means to who waits for its rows."""
    return InvalidError("the SQL was interrupted", problem=problem, hint="run it again")


def _problem_of(message: str, lines_before: int) -> tuple[str, str]:
    """Return the message of an error as one line, and where in the text, as far as it is told."""
    text, _, pointed = message.partition("\n\nLINE ")
    number, _, rest = pointed.partition(": ")
    line, _, marks = rest.partition("\n")
    number = str(int(number) - lines_before) if number.isdigit() else ""
    problem = " ".join(part.strip() for part in text.splitlines() if part.strip())
    if not number:
        return problem, ""
    column = marks.find("^") - len(f"LINE {int(number) + lines_before}: ") + 1
    if line.startswith("...") or column < 1:  # a part of a long line
        return problem, f"line {number}"
    return problem, f"line {number}, column {column}"
