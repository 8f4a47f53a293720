"""The state of one table at one log number, in SQLite: what is known, and the writes `apply` makes.

A table's state is never loaded into objects: each method is one or a few statements. Writes belong
to `transactions.py` only, inside the transaction that the head has begun.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference
from lakebed.model.names import (
    CommitId,
    EntryChecksum,
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
from lakebed.statestore.table_state.landed import Landed, landed_of
from lakebed.statestore.table_state.layout import digested
from lakebed.statestore.table_state.no_table import no_table
from lakebed.statestore.table_state.proven_state import ProvenState
from lakebed.statestore.table_state.reference_rows import (
    INSERT_REFERENCE,
    REFERENCE_COLUMNS,
    reference_of,
    row_of,
)
from lakebed.statestore.table_state.state_json import processing_of, schema_of_text, settings_of
from lakebed.statestore.table_state.sums import damaged, sum_of, verify_node

_REFERENCES = f"SELECT {REFERENCE_COLUMNS} FROM file_references"  # noqa: S608 - constant names
_HELD = _REFERENCES.replace(" FROM", ", (SELECT id FROM jobs WHERE key = job) FROM", 1)
_HEAD = (
    "SELECT only, number, at, floor, generation, root, partition_next, dropped, schema, settings,"
    " (SELECT total FROM row_sums WHERE name = 'head'),"
    " (SELECT checksum FROM last_entry l WHERE l.number = head.number),"
    " (SELECT at FROM entry_times ORDER BY entry_times.number DESC LIMIT 1) FROM head"
)
_NODES = "SELECT id, parent, dimension, point, left, right, rows_unsplittable FROM partitions"
_NODE = (
    "SELECT p.id, p.parent, p.dimension, p.point, p.left, p.right, p.rows_unsplittable, s.node"
    " FROM partitions p LEFT JOIN partition_sums s ON s.partition = p.id WHERE p.id = ?"
)
ENTRY_TIME_SPACING = 60_000_000
"""Microseconds between remembered entry times: an age is known to a minute, in 48 hours 2,880
rows."""


class TableVersion(msgspec.Struct, frozen=True):
    """The one row that every transaction looks at.

    at: log time.
    root: 0 before creation.
    """

    number: TransactionNumber
    at: Micros
    floor: TransactionNumber
    generation: Generation
    root: PartitionId
    partition_next: int
    dropped: bool


class LogEnd(msgspec.Struct, frozen=True):
    """The end of the log beside the head, as far as it is known.

    checksum: of the last entry; None: not known.
    time: the newest that is remembered of an entry; None: of none.
    """

    checksum: EntryChecksum | None
    time: Micros | None


class Moment(msgspec.Struct, frozen=True):
    """The entry that is being applied: its number and its time."""

    number: TransactionNumber
    at: Micros


class CompactionJob(msgspec.Struct, frozen=True):
    """A compaction job that holds a claim.

    partition: where it was claimed.
    at: log time of that.
    """

    id: JobId
    partition: PartitionId
    number: TransactionNumber
    at: Micros


class Garbage(msgspec.Struct, frozen=True):
    """A file without references.

    number, at: of the entry that removed the last one.
    """

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
    """The figures of a leaf's contents.

    rows_unsplittable: rows at which no split point existed; 0: never asked.
    """

    partition: PartitionId
    files: int
    claimed: int
    rows: int
    size: int
    rows_unsplittable: int


class TableState(ProvenState):
    """A table's state. connection: of a database laid out by `layout.py`.

    Whatever is read of a partition proves itself, too, or is a CacheDamagedError (H37).
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.key_ranges: dict[PartitionId, KeyRange] = {}
        """Of partitions: they never change. Emptied when a split was undone."""
        # Read in this transaction of SQLite, and not changed since.
        self._head: TableVersion | None = None
        self._texts: tuple[str, str] | None = None
        self._log_end: LogEnd | None = None
        self._partitions: dict[PartitionId, Partition | None] = {}

    def _forget(self) -> None:
        self._head = self._texts = self._log_end = None
        self._partitions.clear()

    def _undo(self) -> None:
        self.key_ranges.clear()
        super()._undo()

    @contextmanager
    def tentative(self, name: str) -> Iterator[None]:
        """Undo what was written inside if an exception leaves it. name: an identifier."""
        try:
            with super().tentative(name):
                yield
        except BaseException:
            self.key_ranges.clear()
            raise

    # what is known

    def head(self) -> TableVersion:
        """Return the row that every transaction looks at."""
        return self._head or self._read_head()[0]

    def log_end(self) -> LogEnd:
        """Return what is known of the end of the log, of one version with the head."""
        return self._log_end or self._read_head()[1]

    def log_ends(self, end: LogEnd) -> None:
        """Keep what was written of the end of the log in this transaction of SQLite."""
        self._log_end = end if self.connection.in_transaction else None

    def _read_head(self) -> tuple[TableVersion, LogEnd]:
        *row, total, checksum, time = self._run(_HEAD).fetchone() or (None, None, None)
        if (1, total) != sum_of((row,)):
            raise damaged("head")
        _, number, at, floor, generation, root, partition_next, dropped, *texts = row
        head = TableVersion(number, at, floor, generation, root, partition_next, bool(dropped))
        end = LogEnd(checksum, time)
        if self.connection.in_transaction:
            self._head, self._texts, self._log_end = head, (texts[0], texts[1]), end
        return head, end

    def require_table(self) -> None:
        """Raise TableMissingError or LogMissingError if this state holds no table."""
        head = self.head()
        if head.dropped or not head.root:
            raise no_table(head.number, dropped=head.dropped)

    def schema(self) -> Schema:
        """Return the table's schema. Raises: TableMissingError, if it was dropped."""
        self.require_table()
        return schema_of_text(self._text(0))

    def settings(self) -> TableSettings:
        """Return the table's settings."""
        return settings_of(self._text(1))

    def processing(self) -> Processing | None:
        """Return what the table does with its rows. Raises: TableMissingError, if it was
        dropped."""
        return processing_of(self._text(1), self.schema())

    def _text(self, index: int) -> str:
        """Return the text of the schema, 0, or of the settings, 1."""
        self.head()
        texts = self._texts or self._run("SELECT schema, settings FROM head").fetchone()
        return str(texts[index])

    def landed(self, ids: Sequence[CommitId]) -> Landed:
        """Return which of these commits are in the log."""
        self.prove_once("commits")
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
        self.prove("partitions")
        return PartitionTree(Partition(*row[:6]) for row in self._run(_NODES))

    def partition(self, id_: PartitionId) -> Partition | None:
        """Return one partition."""
        if id_ in self._partitions:
            return self._partitions[id_]
        row = self._run(_NODE, (id_,)).fetchone()
        if row:
            verify_node(id_, row[7], row[:7])
        found = Partition(*row[:6]) if row else None
        if self.connection.in_transaction:
            self._partitions[id_] = found
        return found

    def references(self, partition: PartitionId) -> list[tuple[FileReference, JobId | None]]:
        """Return the files of a leaf, oldest base first, each with the job that claimed it."""
        rows = self._run(f"{_HELD} WHERE partition = ? ORDER BY file", (partition,)).fetchall()
        self._verify_references(partition, rows)
        if any(row[10] is not None and row[11] is None for row in rows):
            raise damaged("jobs", partition=partition)  # else what a job holds would look free
        return [(reference_of(row), row[11]) for row in rows]

    def _verify_references(self, partition: PartitionId, rows: Sequence[Sequence[Any]]) -> None:
        """Raise CacheDamagedError unless these are all references that were put on a partition."""
        kept = self._run(
            "SELECT files, total FROM partition_sums WHERE partition = ?", (partition,)
        ).fetchone() or (0, 0)
        pending = self._pending.of_partition(partition)
        if sum_of(row[:11] for row in rows) != (kept[0] + pending[0], kept[1] + pending[1]):
            raise damaged("file_references", partition=partition)

    def all_references(self) -> Iterator[FileReference]:
        """Yield every reference. For inspection; a large table has a million."""
        for row in self._run(f"{_REFERENCES} ORDER BY partition, file"):
            yield reference_of(row)

    def references_of(self, file: FileName) -> list[FileReference]:
        """Return all references to a file."""
        rows = self._run(f"{_REFERENCES} WHERE file = ?", (file,))
        return [reference_of(row) for row in rows]

    def has_files(self) -> bool:
        """Return whether any file is referenced."""
        return bool(self._run("SELECT EXISTS(SELECT 1 FROM file_references)").fetchone()[0])

    def knows_file(self, file: FileName) -> bool:
        """Return whether the file is referenced, or garbage that was not yet removed."""
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

    def jobs(self) -> list[CompactionJob]:
        """Return the jobs that hold claims, oldest first."""
        rows = self._run("SELECT id, partition, number, at FROM jobs ORDER BY key")
        return [CompactionJob(*row) for row in rows]

    def job(self, id_: JobId) -> CompactionJob | None:
        """Return a job that holds a claim."""
        row = self._run(
            "SELECT id, partition, number, at FROM jobs WHERE id = ?", (id_,)
        ).fetchone()
        return CompactionJob(*row) if row else None

    def claimed(self, id_: JobId) -> list[FileReference]:
        """Return the references a job holds, on whatever leaves they lie by now."""
        job = self.job(id_)
        found: list[FileReference] = []
        below = [] if job is None else [job.partition]
        while below:  # and not by an index, which does not prove that it is whole
            node = self.partition(below.pop())
            if node is None:
                raise damaged("partitions", job=id_)
            if node.left is None or node.right is None:
                found += [r for r, holder in self.references(node.id) if holder == id_]
            else:
                below += [node.left, node.right]
        return sorted(found, key=lambda r: (r.partition, r.file.name))

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
        self.prove_once("positions")
        row = self._run("SELECT value, owner FROM positions WHERE name = ?", (name,)).fetchone()
        return (row[0], row[1]) if row else None

    def digest(self) -> bytes:
        """Return 16 bytes that stand for all that is known, whatever SQLite's build or file
        layout."""
        digest = hashlib.blake2b(digest_size=16)
        for table in digested(self.connection):
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
        elif "entry" in statement:
            self._log_end = None
        elif "partitions" in statement:
            self._partitions.clear()
        self._triggers.keep(statement)
        return self._run(statement, values)

    def put_references(self, references: Iterable[FileReference], job: int | None = None) -> None:
        """Write references to leaves. job: key of the job that holds them."""
        rows = [row_of(reference, job) for reference in references]
        self.connection.executemany(INSERT_REFERENCE, rows)
        self._add_sums("file_references", rows)

    def put_commit(self, *row: Any) -> None:  # noqa: ANN401 - id, digest, number, base, user
        """Remember a commit. row: in the order of its table's columns."""
        self._run("INSERT INTO commits VALUES (?, ?, ?, ?, ?)", row)
        self._add_sums("commits", (row,))
