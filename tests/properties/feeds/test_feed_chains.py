"""Workers that stall, repeat themselves and believe old leases take each record of a source once
(R1 to R3, R8, R12, R17)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lakebed.backends.memory import MemoryTransactionLog, VirtualClock
from lakebed.errors import ConflictError, FencedError, InvalidError
from lakebed.model.feeds.positions import Position, decode_position, encode_position, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import (
    CommitId,
    ConnectionId,
    FileName,
    JobId,
    PartitionId,
    TransactionNumber,
    digest_of,
    file_name,
)
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.feed_changes import Count, Define, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor
from lakebed.statestore.log_entries.table_changes import create_table
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.table_state.feed_records import connection_of, ledger_of, positions_of
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState
from tests.dsl.table_story import SCHEMA

FEED = ConnectionId("feed")
SPLITS = ("topic/0", "topic/1")
QUEUE = "queue"
Record = tuple[str, int]


class Feeds:
    """A source of records without end, a queue, and workers whose heads lag behind.

    stored: records of each file. sent: transactions that may be sent again at any time.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.log = MemoryTransactionLog(self.clock)
        self.heads = [self.head() for _ in range(3)]
        self.stored: dict[FileName, list[Record]] = {}
        self.sent: list[Transaction] = []
        self.owners = Counter[str]()
        self.answers = Counter[str]()
        first = self.heads[0]
        self.commit(first, self.transaction(first, create_table(SCHEMA, {}, ())))
        self.commit(first, self.transaction(first, Define(FEED, 1)))

    def head(self) -> TableHead:
        return TableHead(self.log, TableState(open_memory()), clock=self.clock, rng=self.rng)

    def step(self) -> None:
        self.clock.advance(self.rng.choice([0, 60, 4_000]))
        head = self.rng.choice(self.heads)
        if self.rng.random() < 0.4 or head.state.head().number < 2:
            head.follow()
        does = self.rng.random()
        if does < 0.1:
            again = self.rng.sample(self.sent, min(3, len(self.sent)))
            self.commit(head, *again)
        elif does < 0.15:
            version = self.version(head) + self.rng.randrange(2)
            self.commit(head, self.transaction(head, Define(FEED, version)))
        elif does < 0.2:
            floor = TransactionNumber(max(0, head.state.head().number - 3))
            self.commit(head, self.transaction(head, RaiseFloor(floor)))
        elif does < 0.4:
            self.commit(head, self.of_queue(head))
        else:
            self.commit(self.rng.choice(self.heads), *self.of_splits(head))

    def commit(self, head: TableHead, *transactions: Transaction) -> None:
        for answer in head.commit_group(transactions):
            assert isinstance(answer, (int, ConflictError, FencedError, InvalidError)), answer
            self.answers["done" if isinstance(answer, int) else type(answer).__name__] += 1

    def version(self, head: TableHead) -> int:
        known = connection_of(head.state, FEED)
        return known.version if known else 1

    def of_splits(self, head: TableHead) -> list[Transaction]:
        """Return batches in flight of one source split, each behind the one before."""
        split = self.rng.choice(SPLITS)
        if self.rng.random() < 0.3:
            self.owners[split] += 1
        owner = max(0, self.owners[split] - self.rng.randrange(2))
        name = position_name(FEED, split)
        known = head.state.position(name)
        before = known[0] if known else None
        batches = []
        for _ in range(self.rng.randrange(1, 4)):
            at = Position(0, 0) if before is None else decode_position(before)
            begin = at.next
            assert isinstance(begin, int)
            end = begin + self.rng.randrange(1, 5)
            value = encode_position(Position(at.revision + 1, end))
            moved = PositionChange(name, before, value, owner)
            records = [(split, number) for number in range(begin, end)]
            batches.append(self.taking(head, split, records, moved))
            before = value
        return batches

    def of_queue(self, head: TableHead) -> Transaction:
        numbers = self.rng.sample(range(60), self.rng.randrange(1, 4))
        taken = TakeItems(FEED, tuple(number.to_bytes(16, "big") for number in numbers))
        return self.taking(head, QUEUE, [(QUEUE, number) for number in numbers], taken)

    def taking(
        self, head: TableHead, split: str, records: list[Record], by: PositionChange | TakeItems
    ) -> Transaction:
        stored = [record for record in records if record[1] % 5]
        filtered = len(records) - len(stored)
        tally = Tally(read=len(records), stored=len(stored), filtered=filtered)
        changes: list[Change] = [Count(FEED, self.version(head), split, tally)]
        if stored:
            changes.append(AddFiles((self.file(head, stored),)))
        if isinstance(by, TakeItems):
            return self.transaction(head, by, *changes)
        return self.transaction(head, *changes, moved=by)

    def file(self, head: TableHead, stored: list[Record]) -> FileReference:
        job = JobId(f"job-{len(self.stored)}")
        name = file_name(base=head.state.head().number, job=job, run=0, sequence=0)
        self.stored[name] = stored
        root = head.state.head().root or PartitionId(1)
        return FileReference(StoredFile(name, 10, 5, 1, 1), root, len(stored), KeyBounds(b"", None))

    def transaction(
        self, head: TableHead, *changes: Change, moved: PositionChange | None = None
    ) -> Transaction:
        known, id_ = head.state.head(), f"{self.rng.getrandbits(64):x}"
        made = Transaction(
            CommitId(id_),
            digest_of(id_.encode()),
            known.number,
            known.generation,
            changes,
            () if moved is None else (moved,),
        )
        self.sent.append(made)
        return made


@pytest.mark.parametrize("seed", range(40))
def test_each_record_is_taken_once_and_the_ranges_tile(seed: int) -> None:
    feeds = Feeds(seed)
    for _ in range(80):
        feeds.step()
    reader = feeds.head()
    reader.follow()
    check_log(feeds, reader.state)
    for head in feeds.heads:
        head.follow()
        assert head.state.digest() == reader.state.digest()


def check_log(feeds: Feeds, state: TableState) -> None:
    """Hold the log against the source: what was read, what is stored, and the ledger."""
    reached, stored, tallies = Counter[str](), Counter[Record](), dict[str, Tally]()
    items, version = Counter[bytes](), 0
    for number, body in feeds.log.read_after(TransactionNumber(0)):
        for transaction in decode_entry(body, number).transactions:
            for moved in transaction.positions:
                begin = 0 if moved.expected is None else decode_position(moved.expected).next
                assert reached[moved.name] == begin, "a range begins where the one before ended"
                end = decode_position(moved.value).next
                assert isinstance(end, int)
                reached[moved.name] = end
            for change in transaction.changes:
                match change:
                    case Define():
                        assert change.version >= version
                        version = change.version
                    case Count():
                        assert change.version == version, "made by the newest definition"
                        before = tallies.get(change.source_split, Tally())
                        tallies[change.source_split] = before.plus(change.tally)
                    case TakeItems():
                        items.update(change.items)
                    case AddFiles():
                        stored.update(r for f in change.files for r in feeds.stored[f.file.name])
                    case _:
                        pass
    wanted = {
        (split, number)
        for split in SPLITS
        for number in range(reached[position_name(FEED, split)])
        if number % 5
    }
    wanted |= {(QUEUE, n) for n in (int.from_bytes(item, "big") for item in items) if n % 5}
    assert stored == Counter(wanted), "each record once"
    assert set(items.values()) <= {1}
    known = connection_of(state, FEED)
    assert known is not None
    ledger = Counter[str]()
    for split, _, tally in ledger_of(state, known):
        ledger[split] += tally.read
    assert ledger == {split: tally.read for split, tally in tallies.items()}
    for split, position, _ in positions_of(state, FEED):
        assert position.next == reached[position_name(FEED, split)] == ledger[split]


def test_the_workers_are_accepted_and_refused_often_enough() -> None:
    answers = Counter[str]()
    for seed in range(10):
        feeds = Feeds(seed)
        for _ in range(80):
            feeds.step()
        answers.update(feeds.answers)
    refusals = (
        "PositionMovedError",
        "OwnerFencedError",
        "DefinitionMovedError",
        "ItemsTakenError",
        "FencedError",
    )
    assert answers["done"] > 200, answers
    assert all(answers[refusal] > 10 for refusal in refusals), answers
