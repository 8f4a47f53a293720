"""Stories about one table: given_... when_..., and a summary of what is true then.

The table has one string key. Leaves, files and jobs have the names that the story gives them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lakebed.backends.memory import MemoryObjectStore, MemoryTransactionLog, VirtualClock
from lakebed.model.feeds.positions import Position, decode_position, encode_position
from lakebed.model.files import FileReference, KeyBounds, StoredFile, bounds_of
from lakebed.model.keys import encode_field
from lakebed.model.names import (
    CommitId,
    FileName,
    Generation,
    JobId,
    PartitionId,
    TransactionNumber,
    digest_of,
    file_name,
)
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_of
from lakebed.ports.clock import Clock
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import SnapshotSource, TableHead
from lakebed.statestore.log_entries.file_changes import (
    AddFiles,
    ClaimFiles,
    ReleaseClaim,
    RemoveGarbage,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.table_changes import Clear, Split, create_table
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import TableState
from tests.dsl.scripted_log import ScriptedLog
from tests.dsl.state_summary import summary_of

STRING = type_of("string")
SCHEMA = Schema(
    row_keys=(Field(name="key", type=STRING, number=1),),
    values=(Field(name="value", type=STRING, number=2),),
)
FILE_BYTES = 1000


def point(text: str) -> bytes:
    """Return a split point: the encoding of a string key."""
    return encode_field(STRING, text)


def next_position(name: str, before: bytes | None, next_: int, *, owner: int = 0) -> PositionChange:
    """Return the change of a position to the next record. before: the one that it starts from."""
    revision = 0 if before is None else decode_position(before).revision
    return PositionChange(name, before, encode_position(Position(revision + 1, next_)), owner)


def bounds(smallest: str, largest: str) -> KeyBounds:
    """Return the bounds of a file with these keys."""
    return bounds_of(point(smallest), point(largest))


class TableStory:
    """One table, its log and one head; `another_head` gives more of them.

    leaves: names and split points in key order, such as "L | m | R".
    """

    def __init__(
        self,
        leaves: str = "all",
        *,
        log: TransactionLog | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        self._given = log
        self.log = ScriptedLog(MemoryTransactionLog(self.clock))
        self.objects = MemoryObjectStore(self.clock)
        self.rng = random.Random(0)
        self.head = self.another_head()
        self.partitions: dict[str, PartitionId] = {}
        self.files: dict[str, StoredFile] = {}
        self._commits = 0
        names, points = _parts(leaves)
        self.when_committed(create_table(SCHEMA, {}, points))
        self._name_leaves(names, self.state.head().root)

    @property
    def state(self) -> TableState:
        """The state of the story's own head."""
        return self.head.state

    # what is there

    def given_files(
        self, leaf: str, *, keys: tuple[str, str] | None = None, **rows: int
    ) -> TransactionNumber:
        """Commit new files, by name their number of rows. keys: of each; the leaf's if not told."""
        return self.when_committed(AddFiles(self.new_files(leaf, keys=keys, **rows)))

    def new_files(
        self, leaf: str, *, keys: tuple[str, str] | None = None, **rows: int
    ) -> tuple[FileReference, ...]:
        """Return references to new files of a leaf, not yet committed."""
        partition = self.partitions[leaf]
        reach = bounds(*keys) if keys else KeyBounds(b"", None)
        key_range = own_key_range(self.state, partition)
        return tuple(
            FileReference(self.stored(name), partition, count, reach.inside(key_range))
            for name, count in rows.items()
        )

    def stored(self, name: str) -> StoredFile:
        """Return the file of that name; a new one begins at the newest entry this head knows."""
        if name not in self.files:
            base = self.state.head().number
            own = file_name(base=base, job=JobId(name), run=len(self.files), sequence=0)
            checksum = (1 << 64) - 1 - len(self.files)  # as large as checksums get
            self.files[name] = StoredFile(own, FILE_BYTES, FILE_BYTES // 2, checksum, 7)
        return self.files[name]

    def file(self, name: str) -> FileName:
        """Return the stored name of a file."""
        return self.stored(name).name

    # what happens

    def when_committed(self, *changes: Change, head: TableHead | None = None) -> TransactionNumber:
        """Commit changes as one transaction under a fresh id."""
        return (head or self.head).commit(self.transaction(*changes))

    def when_claimed(self, job: str, leaf: str, *files: str) -> TransactionNumber:
        """Let a compaction job claim files."""
        names = tuple(map(self.file, files))
        return self.when_committed(ClaimFiles(JobId(job), self.partitions[leaf], names))

    def when_replaced(
        self, job: str, leaf: str, *files: str, keys: tuple[str, str] | None = None, **output: int
    ) -> TransactionNumber:
        """Let a job replace its files by at most one output. leaf: where it claimed."""
        new = self.new_files(leaf, keys=keys, **output)
        names = tuple(map(self.file, files))
        change = ReplaceFiles(JobId(job), self.partitions[leaf], names, new[0] if new else None)
        return self.when_committed(change)

    def when_given_up(self, job: str) -> TransactionNumber:
        """Let a claim end without a commit."""
        return self.when_committed(ReleaseClaim(JobId(job)))

    def when_split(
        self, leaf: str, into: str, shares: dict[str, tuple[int, ...]] | None = None
    ) -> TransactionNumber:
        """Split a leaf. into: new names and points, such as "A | d | B"."""
        names, points = _parts(into)
        weights = tuple((self.file(name), w) for name, w in (shares or {}).items())
        number = self.when_committed(Split(self.partitions[leaf], points, weights))
        self._name_leaves(names, self.partitions[leaf])
        return number

    def when_cleared(self, leaves: str | None = None) -> TransactionNumber:
        """Clear the table. leaves: a new tree; None keeps the leaves."""
        if leaves is None:
            return self.when_committed(Clear())
        names, points = _parts(leaves)
        number = self.when_committed(Clear(points))
        self._name_leaves(names, self.state.head().root)
        return number

    def when_garbage_is_removed(self, *files: str) -> TransactionNumber:
        """Let the collector have deleted objects."""
        return self.when_committed(RemoveGarbage(tuple(map(self.file, files))))

    # the makings of transactions

    def transaction(
        self,
        *changes: Change,
        id_: str | None = None,
        digest: str | None = None,
        base: int | None = None,
        generation: int | None = None,
        positions: Sequence[PositionChange] = (),
        user: bool = False,
    ) -> Transaction:
        """Return a transaction planned on what the story's head knows."""
        self._commits += 1
        known = self.state.head()
        name = id_ or f"commit-{self._commits}"
        return Transaction(
            CommitId(name),
            digest_of((digest or name).encode()),
            known.number if base is None else TransactionNumber(base),
            known.generation if generation is None else Generation(generation),
            changes,
            tuple(positions),
            user,
        )

    def another_head(
        self,
        *,
        state: TableState | None = None,
        log: TransactionLog | None = None,
        clock: Clock | None = None,
        snapshots: SnapshotSource | None = None,
        retry: Retry | None = None,
    ) -> TableHead:
        """Return another process's head, new and empty unless told."""
        return TableHead(
            log or self._given or self.log,
            state or TableState(open_memory()),
            clock=clock or self.clock,
            rng=self.rng,
            snapshots=snapshots,
            retry=retry,
        )

    # what is true then

    def summary(self) -> str:
        """Return leaves with their files, rows and claims in key order, then the garbage."""
        files = {file.name: name for name, file in self.files.items()}
        leaves = {id_: name for name, id_ in self.partitions.items()}
        with self.head.reading() as state:
            return summary_of(state, leaves, files)

    def _name_leaves(self, names: Sequence[str], under: PartitionId) -> None:
        found = list(self.state.tree().leaves(under))
        assert len(found) == len(names), f"{len(found)} leaves have {len(names)} names"
        self.partitions |= dict(zip(names, found, strict=True))


def _parts(leaves: str) -> tuple[list[str], tuple[bytes, ...]]:
    parts = [part.strip() for part in leaves.split("|")]
    return parts[::2], tuple(map(point, parts[1::2]))
