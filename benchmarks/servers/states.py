"""States and commits of tables with very many files, made up, without the files themselves."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from lakebed.backends.system.clock import SystemClock
from lakebed.model.files import FileReference, StoredFile, bounds_of
from lakebed.model.keys import TERMINATOR
from lakebed.model.names import (
    CommitId,
    FileName,
    JobId,
    PartitionId,
    TableId,
    TransactionNumber,
    digest_of,
    file_name,
)
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_of
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import CreateTable, create_table
from lakebed.statestore.log_entries.transactions import Change, Transaction, finish_entry
from lakebed.statestore.table_state.placing import own_key_range, reached_leaves
from lakebed.statestore.table_state.state import Moment, TableState

FILES, LEAVES = 1_000_000, 50_000
KEY_DIGITS = 36
TABLE = TableId("t")


def fill(
    state: TableState, *, files: int = FILES, leaves: int = LEAVES, **settings: int | str
) -> list[PartitionId]:
    """Write so many files in so many leaves to a new state; return the leaves."""
    rng = random.Random(1)
    points = sorted({key_of(rng.getrandbits(4 * KEY_DIGITS)) for _ in range(leaves - 1)})
    with state.writing():
        moment = Moment(TransactionNumber(1), SystemClock().now())
        creation(tuple(points), **settings).apply(state, moment)
        finish_entry(state, moment, None)
        key_ranges = reached_leaves(state, state.head().root, (KeyRange(),))
        for leaf, key_range in key_ranges:
            state.put_references(references(rng, leaf, key_range, files // len(key_ranges)))
    return [leaf for leaf, _ in key_ranges]


def log_beginning(log: TransactionLog) -> None:
    """Write the entry that made such a state: a state that is newer than its log is refused."""
    log.append(TransactionNumber(1), b"made up")


def references(
    rng: random.Random, leaf: PartitionId, key_range: KeyRange, files: int
) -> Iterator[FileReference]:
    """Yield made-up files of a leaf."""
    least = _number(key_range.min) if key_range.min else 0
    most = _number(key_range.max) if key_range.max else 1 << (4 * KEY_DIGITS)
    for _ in range(files):
        ends = sorted(rng.randrange(least, most) for _ in range(2))
        name = FileName(rng.randrange(1_000_000).to_bytes(5, "big") + rng.randbytes(8) + bytes(3))
        size = rng.randrange(10_000_000, 500_000_000)
        checksums = rng.getrandbits(64), rng.getrandbits(32)
        yield FileReference(
            StoredFile(name, size, size - 100_000, *checksums),
            leaf,
            rng.randrange(100_000, 5_000_000),
            bounds_of(key_of(ends[0]), key_of(ends[1])),
        )


def adding(head: TableHead, rng: random.Random, leaves: list[PartitionId]) -> Transaction:
    """Return a transaction that adds one file to one leaf."""
    leaf = rng.choice(leaves)
    key_range = own_key_range(head.state, leaf)
    (reference,) = references(rng, leaf, key_range, 1)
    base = head.state.head().number
    name = file_name(base=base, job=JobId("bench"), run=rng.getrandbits(32), sequence=0)
    stored = msgspec.structs.replace(reference.file, name=name)
    reference = msgspec.structs.replace(reference, file=stored)
    return commit_of(head, rng.getrandbits(128), AddFiles((reference,)))


def commit_of(head: TableHead, id_: int, change: Change) -> Transaction:
    """Return a commit that was planned on what a head knows."""
    known = head.state.head()
    name = f"{id_:032x}"
    return Transaction(
        CommitId(name), digest_of(name.encode()), known.number, known.generation, (change,)
    )


def creation(points: tuple[bytes, ...], **settings: int | str) -> CreateTable:
    """Return the first change of a table."""
    key = Field(name="key", type=type_of("string"), number=1)
    value = Field(name="value", type=type_of("string"), number=2)
    return create_table(Schema(row_keys=(key,), values=(value,)), settings, points)


def key_of(number: int) -> bytes:
    """Return the encoding of a string key: 36 hexadecimal digits."""
    return f"{number:0{KEY_DIGITS}x}".encode() + TERMINATOR


def _number(key: bytes) -> int:
    return int(key[:KEY_DIGITS], 16)
