"""Queues in one SQLite file, with what SQS does: visibility, receive counts, dead letters,
groups."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from lakebed.backends.local.sqlite_database import PROVEN_BYTES_MAX, SqliteDatabase
from lakebed.errors import CorruptError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import (
    MESSAGES_AT_ONCE_MAX,
    ONCE_SECONDS,
    Message,
    Received,
    check_messages,
)

RECEIVES_MAX = 5
_FORMAT = 4
_SCHEMA = """
CREATE TABLE message (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    dead INTEGER NOT NULL DEFAULT 0,
    visible_at INTEGER NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL,
    sent_at INTEGER NOT NULL DEFAULT 0,
    message_group TEXT NOT NULL DEFAULT '',
    checksum INTEGER
) STRICT;
CREATE INDEX message_by_queue ON message (queue, dead, number)"""
_GROUPS = """
CREATE INDEX message_by_group ON message (queue, message_group)
WHERE message_group <> '' AND dead = 0"""
_ONCE = """
CREATE TABLE once (
    queue TEXT NOT NULL,
    text TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (queue, text)
) STRICT, WITHOUT ROWID"""
_PROVEN_ONCE = "ALTER TABLE once ADD COLUMN checksum INTEGER"
_UPGRADES = {
    1: (
        "ALTER TABLE message ADD COLUMN sent_at INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE message ADD COLUMN message_group TEXT NOT NULL DEFAULT ''",
        _GROUPS,
        _ONCE,
    ),
    2: (
        "ALTER TABLE message ADD COLUMN checksum INTEGER",
        "UPDATE message SET checksum = row_checksum(queue, body, sent_at, message_group)",
    ),
    3: (_PROVEN_ONCE, "UPDATE once SET checksum = row_checksum(queue, text, at)"),
}
_PUT = """
INSERT INTO message (queue, visible_at, body, sent_at, message_group, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, row_checksum(?1, ?3, ?4, ?5))"""
_IS_WHOLE = "checksum IS row_checksum(queue, body, sent_at, message_group)"
DAMAGED = b"\x00damaged: "
"""Prefix of the body of a dead letter that contradicts its checksum: no reader takes it for one."""
_FORGET_ONCE = "DELETE FROM once WHERE at <= ?"
_TAKE_ONCE = """
INSERT INTO once VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3))
ON CONFLICT DO UPDATE SET at = excluded.at, checksum = excluded.checksum
WHERE checksum IS NOT row_checksum(queue, text, at)"""
"""A mark that contradicts its checksum hides no message: twice is allowed, never is not."""
MARK_DIGITS = 19
"""Digits of the greatest number that SQLite counts to."""
PAGE_BYTES = 4096
"""The page of a file that SQLite makes."""
HIDDEN_SECONDS_MAX = 43_200
"""A message is out of sight for twelve hours at most, as in SQS."""
HIDDEN_MICROS_MAX = (HIDDEN_SECONDS_MAX + 3_600) * MICROS_PER_SECOND
"""A process that hid a message for longer has a clock that is ahead: the message is visible. An
hour is for clocks that differ."""
_IN_SIGHT = f"visible_at NOT BETWEEN ?3 + 1 AND ?3 + {HIDDEN_MICROS_MAX}"
_IS_HELD = f"""
    message_group <> '' AND EXISTS (
        SELECT 1 FROM message AS other
        WHERE other.queue = message.queue AND other.message_group = message.message_group
            AND other.message_group <> '' AND other.dead = 0
            AND NOT other.{_IN_SIGHT})"""  # noqa: S608 - constant texts
_BURY = f"""
UPDATE message SET dead = 1
WHERE queue = ?1 AND dead = 0 AND {_IN_SIGHT} AND receives >= ?2
    AND NOT ({_IS_HELD})"""  # noqa: S608 - constant texts
_TAKE = f"""
UPDATE message SET receives = receives + 1, visible_at = ?1
WHERE number IN (
    SELECT number FROM message
    WHERE queue = ?2 AND dead = 0 AND {_IN_SIGHT} AND NOT ({_IS_HELD})
    ORDER BY number LIMIT ?4)
RETURNING
    number, receives, body, message_group, sent_at, {_IS_WHOLE}"""  # noqa: S608 - constant texts
_BY_INDEX, _BY_ROW = "message", "message NOT INDEXED"
"""Two ways to look messages up. SQLite proves an index when it opens a file, not when it reads from
the write-ahead file of one that is open: a bit that flips there hides messages."""
_ANY_VISIBLE = {
    messages: f"""
SELECT 1 FROM {messages}
WHERE queue = ?2 AND dead = 0 AND {_IN_SIGHT} LIMIT 1"""  # noqa: S608 - constant texts
    for messages in (_BY_INDEX, _BY_ROW)
}
_DELETE = """
DELETE FROM message
WHERE number = ? AND receives = ? AND visible_at > ? AND queue = ? AND dead = 0"""
_EXTEND = """
UPDATE message SET visible_at = ?
WHERE number = ? AND receives = ? AND visible_at > ? AND queue = ? AND dead = 0"""
_GIVE_UP = """
UPDATE message SET dead = 1
WHERE number = ? AND receives = ? AND visible_at > ? AND queue = ? AND dead = 0"""
_DELETE_DEAD = "DELETE FROM message WHERE number = ? AND queue = ? AND dead = 1"
_LAST = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'message'"
_CHANGED = f"SELECT count(*) FROM message WHERE NOT {_IS_WHOLE}"  # noqa: S608 - constant texts
_BURY_DAMAGED = "UPDATE message SET dead = 1 WHERE number = ?"
_DEAD = {
    messages: f"""
SELECT number, receives, body, message_group, sent_at, {_IS_WHOLE} FROM {messages}
WHERE queue = ? AND dead = 1 ORDER BY number LIMIT ?"""  # noqa: S608 - constant texts
    for messages in (_BY_INDEX, _BY_ROW)
}
_DEPTH = {
    messages: f"""
SELECT dead, count(*) FROM {messages}
WHERE queue = ? GROUP BY dead"""  # noqa: S608 - constant texts
    for messages in (_BY_INDEX, _BY_ROW)
}


class SqliteJobQueue:
    """A queue: the messages of one name."""

    def __init__(
        self,
        database: SqliteDatabase,
        name: str,
        clock: Clock,
        *,
        receives_max: int,
        sent: SentMark,
    ) -> None:
        self._database = database
        self._sent = sent
        self._name = name
        self._clock = clock
        self._receives_max = receives_max

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages in: all or none, durably."""
        check_messages(messages)
        now, number = self._clock.now(), 0
        if not messages:
            return
        with self._database.writing() as connection:
            self._sent.check(connection)  # new messages take the numbers of those that are lost
            connection.execute(_FORGET_ONCE, (now - ONCE_SECONDS * MICROS_PER_SECOND,))
            for message in messages:
                once = (self._name, message.once, now)
                if message.once and not connection.execute(_TAKE_ONCE, once).rowcount:
                    continue
                sent_at = message.sent_at or now
                row = (self._name, now, bytes(message.body), sent_at, message.message_group)
                number = connection.execute(_PUT, row).lastrowid or 0
        self._sent.remember(number)

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Take messages out of sight for so long, in the order they were sent. Never waits.

        One that contradicts its checksum is put among the dead letters."""
        now = self._clock.now()
        with self._database.reading() as connection:
            self._sent.check(connection)
            # An idle queue is asked often; asking costs no write.
            by_index, by_row = self._are_visible(connection, now)
            if not (by_index or by_row):
                return []
        with self._database.writing() as connection:
            if not by_index:
                self._mend_index(connection, now)
            connection.execute(_BURY, (self._name, self._receives_max, now))
            taken = (
                self._hidden_until(hidden_seconds),
                self._name,
                now,
                min(messages_max, MESSAGES_AT_ONCE_MAX),
            )
            rows = sorted(connection.execute(_TAKE, taken).fetchall())
            damaged = [row[:1] for row in rows if not row[5]]
            connection.executemany(_BURY_DAMAGED, damaged)
        return [_received(row, str(row[1])) for row in rows if row[5]]

    def delete(self, *receipts: str) -> None:
        """Remove messages or dead letters for good."""
        with self._database.writing() as connection:
            for receipt in receipts:
                number, _, receives = receipt.partition("/")
                if receives == "dead":
                    connection.execute(_DELETE_DEAD, (int(number), self._name))
                else:
                    connection.execute(_DELETE, self._held(receipt))

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now. Dead letters always are in sight."""
        if receipt.endswith("/dead"):
            return
        held = self._held(receipt)
        until = self._hidden_until(hidden_seconds)
        with self._database.writing() as connection:
            connection.execute(_EXTEND, (until, *held))

    def give_up(self, message: Received) -> None:
        """Put a message in hand among the dead letters."""
        with self._database.writing() as connection:
            connection.execute(_GIVE_UP, self._held(message.receipt))

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up."""
        with self._database.reading() as connection:
            asked = _DEAD[_looked_up(connection)]
            rows = connection.execute(asked, (self._name, messages_max)).fetchall()
        return [_received(row, "dead") for row in rows]

    def depth(self) -> tuple[int, int]:
        """Return how many messages are waiting or in hand, and how many dead."""
        with self._database.reading() as connection:
            asked = _DEPTH[_looked_up(connection)]
            counts = dict(connection.execute(asked, (self._name,)).fetchall())
        return counts.get(0, 0), counts.get(1, 0)

    def _are_visible(self, connection: sqlite3.Connection, now: Micros) -> tuple[bool, bool]:
        """Return whether messages are in sight: as an index says, and as the rows say."""
        asked = (None, self._name, now)
        by_index = connection.execute(_ANY_VISIBLE[_BY_INDEX], asked).fetchone() is not None
        if by_index:
            return True, True
        by_row = _ANY_VISIBLE[_looked_up(connection)]
        return False, connection.execute(by_row, asked).fetchone() is not None

    def _mend_index(self, connection: sqlite3.Connection, now: Micros) -> None:
        """Make the indexes anew if they hide messages, now that no other process writes."""
        if self._are_visible(connection, now) == (False, True):
            connection.execute("REINDEX message")
            events.emit(events.QUEUES_REINDEXED, level=logging.WARNING, queue=self._name)

    def _hidden_until(self, seconds: float) -> Micros:
        hidden = round(min(seconds, HIDDEN_SECONDS_MAX) * MICROS_PER_SECOND)
        return Micros(self._clock.now() + hidden)

    def _held(self, receipt: str) -> tuple[int, int, int, str]:
        number, _, receives = receipt.partition("/")
        return int(number), int(receives), self._clock.now(), self._name


class SentMark:
    """The number of the last message that was sent, in a file beside the queues.

    If the database forgets messages that SQLite had written ahead, it reports that they are lost.
    Processes write the file at the same time. So all numbers are of one length, and written in one
    piece with a checksum: a mix of two is no number. Older releases wrote bare digits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked: sqlite3.Connection | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Log how many messages are lost, if any: when a database was opened, before new messages
        take their numbers, and before a reader takes for all what is left."""
        if connection is self._checked:
            return
        if lost := self.lost(connection):
            events.emit(events.MESSAGES_LOST, level=logging.ERROR, messages=lost, file=self._path)
        self._checked = connection

    def lost(self, connection: sqlite3.Connection) -> int:
        """Return how many messages the database has forgotten."""
        return max(0, self.last() - (connection.execute(_LAST).fetchone()[0] or 0))

    def remember(self, number: int) -> None:
        """Note that a message was sent. Best effort: the database is what counts."""
        if number > self.last():
            with suppress(OSError):
                file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
                try:
                    os.pwrite(file, _mark_of(number), 0)
                finally:
                    os.close(file)

    def last(self) -> int:
        """Return the number of the last message that was sent; 0: not known."""
        try:
            text = self._path.read_bytes()
        except OSError:
            return 0
        digits = text[:MARK_DIGITS]
        is_whole = digits.isdigit() and text in (_mark_of(int(digits)), b"%d" % int(digits))
        return int(digits) if is_whole else 0


class SqliteJobQueues:
    """Queues by name, in the file `queues.sqlite` of a folder. clock: the store's own."""

    def __init__(
        self, root: str | os.PathLike[str], clock: Clock, *, receives_max: int = RECEIVES_MAX
    ) -> None:
        path = Path(root) / "queues.sqlite"
        self._database = SqliteDatabase(
            path, f"{_SCHEMA};{_GROUPS};{_ONCE};{_PROVEN_ONCE}", format=_FORMAT, upgrades=_UPGRADES
        )
        self._clock = clock
        self._receives_max = receives_max
        self._sent = SentMark(path.with_suffix(".sent"))

    def problems(self) -> list[str]:
        """Return what is wrong with the messages, in words: lost, changed."""
        try:
            with self._database.reading() as connection:
                lost = self._sent.lost(connection)
                changed = connection.execute(_CHANGED).fetchone()[0]
        except CorruptError as error:
            return [str(error)]
        counts = {
            "messages that were sent are lost": lost,
            "messages contradict their checksums": changed,
        }
        return [f"{count} {what}" for what, count in counts.items() if count > 0]

    def open(self, name: str) -> SqliteJobQueue:
        """Return the queue called `name`."""
        return SqliteJobQueue(
            self._database, name, self._clock, receives_max=self._receives_max, sent=self._sent
        )

    def names(self) -> list[str]:
        """Return the names of queues that hold messages or dead letters."""
        with self._database.reading() as connection:
            asked = f"SELECT DISTINCT queue FROM {_BY_ROW}"  # noqa: S608 - constant texts
            rows = connection.execute(asked).fetchall()
        return sorted(name for (name,) in rows)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()


def _mark_of(number: int) -> bytes:
    digits = b"%0*d" % (MARK_DIGITS, number)
    return digits + b" %08x" % crc32(digits)


def _looked_up(connection: sqlite3.Connection) -> str:
    """Return how to look up messages: in a small file by the rows themselves, whatever an index
    hides."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    return _BY_ROW if pages * PAGE_BYTES <= PROVEN_BYTES_MAX else _BY_INDEX


def _received(row: tuple[int, int, bytes, str, Micros, int], receipt: str) -> Received:
    number, receives, body, message_group, sent_at, is_whole = row
    if not is_whole:
        body = DAMAGED + body
    return Received(body, f"{number}/{receipt}", receives, message_group, sent_at)
