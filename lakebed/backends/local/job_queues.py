"""Queues in one SQLite file, with what SQS does: visibility, receive counts, dead letters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import Received

RECEIVES_MAX = 5
_SCHEMA = """
CREATE TABLE message (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0,
    visible_at INTEGER NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX message_by_queue ON message (queue, dead, number)"""
_BURY = """
UPDATE message SET dead = 1
WHERE queue = ? AND dead = 0 AND visible_at <= ? AND receives >= ?"""
_TAKE = """
UPDATE message SET receives = receives + 1, visible_at = ?
WHERE number IN (
    SELECT number FROM message WHERE queue = ? AND dead = 0 AND visible_at <= ?
    ORDER BY number LIMIT ?)
RETURNING number, receives, body"""
_ANY_VISIBLE = "SELECT 1 FROM message WHERE queue = ? AND dead = 0 AND visible_at <= ? LIMIT 1"
_DELETE = """
DELETE FROM message
WHERE number = ? AND receives = ? AND visible_at > ? AND queue = ? AND dead = 0"""
_EXTEND = """
UPDATE message SET visible_at = ?
WHERE number = ? AND receives = ? AND visible_at > ? AND queue = ? AND dead = 0"""
_DELETE_DEAD = "DELETE FROM message WHERE number = ? AND queue = ? AND dead = 1"
_DEAD = """
SELECT number, receives, body FROM message WHERE queue = ? AND dead = 1 ORDER BY number LIMIT ?"""


class SqliteJobQueue:
    """A queue: the messages of one name."""

    def __init__(
        self, database: SqliteDatabase, name: str, clock: Clock, *, receives_max: int
    ) -> None:
        self._database = database
        self._name = name
        self._clock = clock
        self._receives_max = receives_max

    def send(self, bodies: Sequence[bytes]) -> None:
        """Put messages in: all or none, durably."""
        now = self._clock.now()
        rows = [(self._name, now, bytes(body)) for body in bodies]
        if rows:
            with self._database.transaction() as connection:
                connection.executemany(
                    "INSERT INTO message (queue, visible_at, body) VALUES (?, ?, ?)", rows
                )

    def receive(self, *, messages_max: int, hidden_seconds: float) -> list[Received]:
        """Take messages out of sight for so long, in the order they were sent."""
        now = self._clock.now()
        with self._database.reading() as connection:
            # An idle queue is asked often; asking costs no write.
            if connection.execute(_ANY_VISIBLE, (self._name, now)).fetchone() is None:
                return []
        with self._database.transaction() as connection:
            connection.execute(_BURY, (self._name, now, self._receives_max))
            hidden_until = now + round(hidden_seconds * MICROS_PER_SECOND)
            taken = (hidden_until, self._name, now, messages_max)
            rows = sorted(connection.execute(_TAKE, taken).fetchall())
        return [Received(body, f"{number}/{receives}", receives) for number, receives, body in rows]

    def delete(self, receipt: str) -> None:
        """Remove a message or a dead letter for good."""
        number, _, receives = receipt.partition("/")
        if receives == "dead":
            with self._database.writing() as connection:
                connection.execute(_DELETE_DEAD, (int(number), self._name))
            return
        with self._database.writing() as connection:
            connection.execute(_DELETE, self._held(receipt))

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now."""
        held = self._held(receipt)
        until = self._clock.now() + round(hidden_seconds * MICROS_PER_SECOND)
        with self._database.writing() as connection:
            connection.execute(_EXTEND, (until, *held))

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up."""
        with self._database.reading() as connection:
            rows = connection.execute(_DEAD, (self._name, messages_max)).fetchall()
        return [Received(body, f"{number}/dead", receives) for number, receives, body in rows]

    def depth(self) -> tuple[int, int]:
        """Return how many messages are waiting or in hand, and how many dead."""
        statement = "SELECT dead, count(*) FROM message WHERE queue = ? GROUP BY dead"
        with self._database.reading() as connection:
            counts = dict(connection.execute(statement, (self._name,)).fetchall())
        return counts.get(0, 0), counts.get(1, 0)

    def _held(self, receipt: str) -> tuple[int, int, int, str]:
        number, _, receives = receipt.partition("/")
        return int(number), int(receives), self._clock.now(), self._name


class SqliteJobQueues:
    """Queues by name, in the file `queues.sqlite` of a folder. clock: the store's own."""

    def __init__(
        self, root: str | os.PathLike[str], clock: Clock, *, receives_max: int = RECEIVES_MAX
    ) -> None:
        self._database = SqliteDatabase(Path(root) / "queues.sqlite", _SCHEMA)
        self._clock = clock
        self._receives_max = receives_max

    def open(self, name: str) -> SqliteJobQueue:
        """Return the queue called `name`."""
        return SqliteJobQueue(self._database, name, self._clock, receives_max=self._receives_max)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()
