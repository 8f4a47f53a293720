"""The state of one table at one log number, in SQLite: what is known, and the writes `apply` makes.

Nobody loads a table's state into objects: each method is one or a few statements. Writes belong to
`transactions.py` only, inside the transaction that the head has begun.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.errors import TableMissingError
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import (
    CommitId,
    FileName,
    Generation,
    JobId,
    Micros,
    PartitionId,
    TransactionNumber,
)
from lakebed.model.partitions import Partition, PartitionTree
from lakebed.model.processing import Processing
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.statestore.landed import Landed, landed_of
from lakebed.statestore.layout import DIGESTED, translated
from lakebed.statestore.stored_texts import processing_of, schema_of_text, settings_of

REFERENCE_COLUMNS = (
    "partition, file, rows, exact, min, max, size, tail_offset, checksum, tail_checksum"
)
_REFERENCES = f"SELECT {REFERENCE_COLUMNS} FROM file_references"  # noqa: S608 - constant names
_HELD = _REFERENCES.replace(" FROM", ", (SELECT id FROM jobs WHERE key = job) FROM", 1)
ENTRY_TIME_SPACING = 60_000_000
"""Microseconds between remembered entry times: an age is known to a minute, in 48 hours 2,880
rows."""


class Head(msgspec.Struct, frozen=True):
    """The one row that every transaction looks at. at: log time. root: 0 before creation."""

    number: TransactionNumber
    at: Micros
    floor: TransactionNumber
    generation: Generation
    root: PartitionId
    partition_next: int
    dropped: bool


class Moment(msgspec.Struct, frozen=True):
    """The entry that is being applied: its number and its time."""

    number: TransactionNumber
    at: Micros


class Job(msgspec.Struct, frozen=True):
    """A compaction job that holds a claim. partition: where it was claimed. at: log time of
    that."""

    id: JobId
    partition: PartitionId
    number: TransactionNumber
    at: Micros


class Garbage(msgspec.Struct, frozen=True):
    """A file without references. number, at: of the entry that removed the last one."""

    file: FileName
    number: TransactionNumber
    at: Micros
    size: int


class Pin(msgspec.Struct, frozen=True):
    """A long reader: files of version `number` stay until `until`."""

    id: str
    number: TransactionNumber
    until: Micros


class LeafFigures(msgspec.Struct, frozen=True):
    """What lies in a leaf. rows_unsplittable: rows at which no split point existed; 0: never
    asked."""

    partition: PartitionId
    files: int
    claimed: int
    rows: int
    size: int
    rows_unsplittable: int


class TableState:
    """A table's state. connection: of a database laid out by `layout.py`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.regions: dict[PartitionId, KeyRange] = {}
        """Of partitions: they never change. Emptied when a split was undone."""
        self._run = connection.execute
        # Read in this transaction of SQLite, and not changed since.
        self._head: Head | None = None
        self._partitions: dict[PartitionId, Partition | None] = {}

    # transactions of SQLite

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one version from the first read to the end (H27: close it soon)."""
        if self.connection.in_transaction:
            yield
            return
        try:
            self._run("BEGIN")
            yield
        except sqlite3.Error as error:
            raise translated(error) from error
        finally:
            self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to write; kept at the end, undone by any exception.

        Raises:
            UnavailableError: the database is busy or its disk full; nothing was kept.
            CorruptError: it is damaged; the same.
        """
        assert not self.connection.in_transaction, "writing inside of reading or writing"
        try:
            self._run("BEGIN IMMEDIATE")
            yield
            self._run("COMMIT")
        except BaseException as error:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise translated(error) from error
            raise
        finally:
            self._forget()

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn errors of the database into those that say what to do next."""
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error) from error

    def _forget(self) -> None:
        self._head = None
        self._partitions.clear()

    def _undo(self) -> None:
        self.regions.clear()
        self._roll_back()

    def _roll_back(self) -> None:
        self._forget()
        if self.connection.in_transaction:
            self._run("ROLLBACK")

    @contextmanager
    def tentative(self, name: str) -> Iterator[None]:
        """Undo what was written inside if an exception leaves it. name: an identifier."""
        self._run(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self._forget()
            self.regions.clear()
            if self.connection.in_transaction:  # a full disk undoes the whole transaction
                self._run(f"ROLLBACK TO {name}")
                self._run(f"RELEASE {name}")
            raise
        self._run(f"RELEASE {name}")

    # what is known

    def head(self) -> Head:
        """Return the row that every transaction looks at."""
        if self._head is not None:
            return self._head
        row = self._run(
            "SELECT number, at, floor, generation, root, partition_next, dropped FROM head"
        ).fetchone()
        number, at, floor, generation, root, partition_next, dropped = row
        head = Head(number, at, floor, generation, root, partition_next, bool(dropped))
        if self.connection.in_transaction:
            self._head = head
        return head

    def require_table(self) -> None:
        """Raise TableMissingError if the table was dropped, or is only about to be created."""
        head = self.head()
        if head.dropped or not head.root:
            raise TableMissingError("the table was dropped" if head.dropped else "no such table")

    def schema(self) -> Schema:
        """Return the table's schema. Raises: TableMissingError, if it was dropped."""
        self.require_table()
        return schema_of_text(self._run("SELECT schema FROM head").fetchone()[0])

    def settings(self) -> TableSettings:
        """Return the table's settings."""
        return settings_of(self._run("SELECT settings FROM head").fetchone()[0])

    def processing(self) -> Processing | None:
        """Return what the table does with its rows. Raises: TableMissingError, if it was
        dropped."""
        text = self._run("SELECT settings FROM head").fetchone()[0]
        return processing_of(text, self.schema())

    def landed(self, ids: Sequence[CommitId]) -> Landed:
        """Return which of these commits are in the log."""
        return landed_of(self.connection, ids)

    def number_older_than(self, at: Micros) -> TransactionNumber:
        """Return a number whose entry and all before it were written before `at`; 0: none is
        known."""
        head = self.head()
        if head.at < at:  # of entries in one minute the first is remembered, not the last
            return head.number
        row = self._run("SELECT max(number) FROM entry_times WHERE at < ?", (at,)).fetchone()
        return TransactionNumber(row[0] or 0)

    def tree(self) -> PartitionTree:
        """Return the whole tree of partitions. Raises: TableMissingError, if it was dropped."""
        self.require_table()
        rows = self._run("SELECT id, parent, dimension, point, left, right FROM partitions")
        return PartitionTree(Partition(*row) for row in rows)

    def partition(self, id_: PartitionId) -> Partition | None:
        """Return one partition."""
        if id_ in self._partitions:
            return self._partitions[id_]
        row = self._run(
            "SELECT id, parent, dimension, point, left, right FROM partitions WHERE id = ?", (id_,)
        ).fetchone()
        found = Partition(*row) if row else None
        if self.connection.in_transaction:
            self._partitions[id_] = found
        return found

    def references(self, partition: PartitionId) -> list[tuple[FileReference, JobId | None]]:
        """Return the files of a leaf, oldest base first, each with the job that claimed it."""
        rows = self._run(f"{_HELD} WHERE partition = ? ORDER BY file", (partition,))
        return [(_reference(row), row[10]) for row in rows]

    def all_references(self) -> Iterator[FileReference]:
        """Yield every reference. For inspection; a large table has a million."""
        for row in self._run(f"{_REFERENCES} ORDER BY partition, file"):
            yield _reference(row)

    def references_of(self, file: FileName) -> list[FileReference]:
        """Return all references to a file."""
        rows = self._run(f"{_REFERENCES} WHERE file = ?", (file,))
        return [_reference(row) for row in rows]

    def has_files(self) -> bool:
        """Whether any file is referenced."""
        return bool(self._run("SELECT EXISTS(SELECT 1 FROM file_references)").fetchone()[0])

    def knows_file(self, file: FileName) -> bool:
        """Whether the file is referenced, or garbage that was not yet removed."""
        return bool(
            self._run(
                "SELECT EXISTS(SELECT 1 FROM file_references WHERE file = ?1)"
                " OR EXISTS(SELECT 1 FROM garbage WHERE file = ?1)",
                (file,),
            ).fetchone()[0]
        )

    def leaf_figures(self) -> list[LeafFigures]:
        """Return what lies in each leaf, empty leaves too."""
        rows = self._run(
            "SELECT p.id, count(r.file), count(r.job), coalesce(sum(r.rows), 0),"
            " coalesce(sum(r.size), 0), p.rows_unsplittable FROM partitions p"
            " LEFT JOIN file_references r ON r.partition = p.id WHERE p.left IS NULL GROUP BY p.id"
        )
        return [LeafFigures(*row) for row in rows]

    def file_count(self, partition: PartitionId) -> int:
        """Return how many files a leaf has."""
        query = "SELECT count(*) FROM file_references WHERE partition = ?"
        return int(self._run(query, (partition,)).fetchone()[0])

    def jobs(self) -> list[Job]:
        """Return the jobs that hold claims, oldest first."""
        rows = self._run("SELECT id, partition, number, at FROM jobs ORDER BY key")
        return [Job(*row) for row in rows]

    def job(self, id_: JobId) -> Job | None:
        """Return a job that holds a claim."""
        row = self._run(
            "SELECT id, partition, number, at FROM jobs WHERE id = ?", (id_,)
        ).fetchone()
        return Job(*row) if row else None

    def claimed(self, id_: JobId) -> list[FileReference]:
        """Return the references a job holds, on whatever leaves they lie by now."""
        job = "(SELECT key FROM jobs WHERE id = ?)"
        rows = self._run(f"{_REFERENCES} WHERE job = {job} ORDER BY partition, file", (id_,))
        return [_reference(row) for row in rows]

    def garbage(self, *, before: Micros | None = None, files_max: int = -1) -> list[Garbage]:
        """Return files without references, oldest first. before: only if removed earlier."""
        rows = self._run(
            "SELECT file, number, at, size FROM garbage WHERE ?1 IS NULL OR at <= ?1"
            " ORDER BY number, file LIMIT ?2",
            (before, files_max),
        )
        return [Garbage(*row) for row in rows]

    def pins(self) -> list[Pin]:
        """Return all pins, run out or not."""
        return [Pin(*row) for row in self._run("SELECT id, number, until FROM pins ORDER BY id")]

    def position(self, name: str) -> tuple[bytes, int] | None:
        """Return a source's position and the number of its owner."""
        row = self._run("SELECT value, owner FROM positions WHERE name = ?", (name,)).fetchone()
        return (row[0], row[1]) if row else None

    def digest(self) -> bytes:
        """Return 16 bytes that stand for all that is known, whatever SQLite's build or file
        layout."""
        digest = hashlib.blake2b(digest_size=16)
        for table in DIGESTED:
            digest.update(table.encode())
            query = f"SELECT * FROM {table} ORDER BY 1, 2"  # noqa: S608 - constant names
            for row in self._run(query):
                digest.update(repr(row).encode())
        return digest.digest()

    # what `apply` writes

    def write(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement that changes the state. For `transactions.py` and the head only."""
        if "head" in statement:
            self._head = None
        elif "partitions" in statement:
            self._partitions.clear()
        return self._run(statement, values)

    def put_references(self, references: Iterable[FileReference], job: int | None = None) -> None:
        """Write references to leaves. job: key of the job that holds them."""
        self.connection.executemany(
            f"INSERT INTO file_references({REFERENCE_COLUMNS}, job)"  # noqa: S608 - constant names
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    r.partition,
                    r.file.name,
                    r.rows,
                    r.exact,
                    r.bounds.min,
                    r.bounds.max,
                    r.file.size,
                    r.file.tail_offset,
                    _signed(r.file.checksum),
                    r.file.tail_checksum,
                    job,
                )
                for r in references
            ),
        )


def _reference(row: Sequence[Any]) -> FileReference:
    partition, name, rows, exact, least, most, size, tail_offset, checksum, tail_checksum = row[:10]
    return FileReference(
        StoredFile(name, size, tail_offset, checksum & 0xFFFF_FFFF_FFFF_FFFF, tail_checksum),
        partition,
        rows,
        KeyBounds(least, most),
        bool(exact),
    )


def _signed(checksum: int) -> int:
    """SQLite's integers have 63 bits and a sign."""
    return checksum - (1 << 64) if checksum >= 1 << 63 else checksum
