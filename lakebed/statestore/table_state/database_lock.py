"""The lock of a database that processes share: who waits long for it learns which process holds it.

The kernel says who: it never names a process that is gone. What runs there, and since when, is
asked of `ps`. Databases lie on local disks only, so the holder runs on this machine.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import msgspec

from lakebed.errors import UnavailableError
from lakebed.observe import events
from lakebed.statestore.table_state import lock_probe

NOTICE_SECONDS = 2.0
"""Seconds of waiting after which an event says who holds the lock."""
_PROBE_SECONDS_MAX = 5.0
_ALONE_PAUSE_SECONDS = 0.01
_PROCESS_DIGITS_MAX = 20
_STARTED = "%a %b %d %H:%M:%S %Y"
_STARTED_LENGTH = 24


class LockHolder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The process that holds a lock. None: not known.

    command: what it runs, without arguments, which may be keys.
    started: when the process began, in UTC.
    """

    process: int | None = None
    host: str | None = None
    command: str | None = None
    started: str | None = None


def begin_writing(connection: sqlite3.Connection, *, seconds_max: float) -> None:
    """Begin a transaction that holds the only right to write to a database.

    Raises:
        UnavailableError: another connection held that right for `seconds_max`; it says whose.
        sqlite3.Error: anything else.
    """
    notice_seconds = min(NOTICE_SECONDS, seconds_max)
    try:
        if _has_begun(connection, notice_seconds):
            return
        path = _path_of(connection)
        holder = lock_holder(path)
        events.emit(
            events.LOCK_AWAITED,
            level=logging.WARNING,
            database=path,
            process=holder.process,
            host=holder.host,
            command=holder.command,
            started=holder.started,
            waited_seconds=notice_seconds,
        )
        if _has_begun(connection, seconds_max - notice_seconds):
            return
    finally:
        _set_patience(connection, seconds_max)
    raise _busy(path, lock_holder(path), seconds_max)


def execute_alone(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any], *, seconds_max: float
) -> sqlite3.Cursor:
    """Run one statement that is a transaction of its own. Returns its cursor.

    Raises:
        UnavailableError, sqlite3.Error: as `begin_writing`; nothing was written.
    """
    _set_patience(connection, min(NOTICE_SECONDS, seconds_max))
    try:
        return connection.execute(statement, values)
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
    finally:
        _set_patience(connection, seconds_max)
    begin_writing(connection, seconds_max=seconds_max)
    try:
        cursor = connection.execute(statement, values)
        connection.execute("COMMIT")
        return cursor
    finally:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to raise
                connection.execute("ROLLBACK")


def hold_alone(lock: TextIO, path: Path, *, seconds_max: float) -> None:
    """Hold the lock of a file, with this process's id in it, until the file is closed. For what
    SQLite cannot share, such as making the database at `path`.

    Raises:
        UnavailableError: another process held it for `seconds_max`; it says which. One that is
            stopped holds it as long as it is.
    """
    pause = threading.Event()
    for _ in range(1 + round(seconds_max / _ALONE_PAUSE_SECONDS)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pause.wait(_ALONE_PAUSE_SECONDS)
        else:
            lock.truncate(0)
            lock.write(f"{os.getpid()}")
            lock.flush()
            return
    lock.seek(0)
    text = lock.read(_PROCESS_DIGITS_MAX)
    holder = LockHolder()
    if text.isdecimal():
        holder = LockHolder(int(text), platform.node(), *_running(int(text)))
    raise _busy(path, holder, seconds_max)


def lock_holder(path: Path) -> LockHolder:
    """Return which process writes to a database, as far as the kernel knows one now."""
    process = _process_of(path)
    if process is None:
        return LockHolder()
    command, started = _running(process)
    return LockHolder(process, platform.node(), command, started)


def _has_begun(connection: sqlite3.Connection, patience_seconds: float) -> bool:
    _set_patience(connection, patience_seconds)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
        return False
    return True


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _set_patience(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout={round(seconds * 1_000)}")


def _path_of(connection: sqlite3.Connection) -> Path:
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    return Path(path)


def _busy(path: Path, holder: LockHolder, waited_seconds: float) -> UnavailableError:
    hint = "wait until it is done, then try again"
    if holder.process == os.getpid():
        hint = "this process itself does, by another connection: close that, then try again"
    elif holder.process:
        hint += f"; if it hangs, end process {holder.process}"
    return UnavailableError(
        "the database is busy: another process writes to it",
        path=path,
        **msgspec.to_builtins(holder),
        waited_seconds=waited_seconds,
        hint=hint,
    )


def _process_of(path: Path) -> int | None:
    is_python = Path(sys.executable or "").name.startswith("python")  # or a program that embeds it
    if not is_python:
        return None
    output = _output_of(sys.executable, "-I", "-S", lock_probe.__file__, str(path)).strip()
    return int(output) if output.isdecimal() and int(output) > 0 else None


def _running(process: int) -> tuple[str | None, str | None]:
    """Return what a process runs, and since when."""
    output = _output_of("ps", "-o", "lstart=,args=", "-p", str(process)).strip()
    try:
        began = datetime.strptime(f"{output[:_STARTED_LENGTH]} +0000", f"{_STARTED} %z")
    except ValueError:
        return None, None
    return _command(output[_STARTED_LENGTH:].split()), f"{began:%Y-%m-%dT%H:%M:%SZ}"


def _command(words: list[str]) -> str | None:
    """Return a command of ours by its name (`lakebed run`), of other programs only which it is."""
    for word, following in pairwise([*words, ""]):
        if Path(word).name == "lakebed":
            return f"lakebed {following}" if following[:1].isalpha() else "lakebed"
    return Path(words[0]).name if words else None


def _output_of(*command: str) -> str:
    """Return what a program prints; "" where it cannot be had."""
    try:
        done = subprocess.run(  # noqa: S603  our own words, without a shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=_PROBE_SECONDS_MAX,
            env=os.environ | {"TZ": "UTC", "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
