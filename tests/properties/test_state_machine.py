"""Random transactions, good and bad, through three heads over one log: the state stays whole
(H4)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakebed.backends.memory import MemoryTransactionLog, VirtualClock
from lakebed.errors import ConflictError, FencedError, InvalidError, LakebedError
from lakebed.model.files import BOUND_BYTES, FileReference, KeyBounds, StoredFile, bounds_of
from lakebed.model.keys import encode_field, encode_key
from lakebed.model.names import (
    CommitId,
    FileName,
    Generation,
    JobId,
    Micros,
    PartitionId,
    TransactionNumber,
    digest_of,
    entry_checksum,
    file_name,
)
from lakebed.model.partitions import splits
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_of
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import (
    AddFiles,
    ClaimFiles,
    RaiseFloor,
    ReleaseClaim,
    RemoveGarbage,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.table_changes import (
    ChangeSettings,
    Clear,
    DropPin,
    MarkUnsplittable,
    PutPin,
    Split,
    create_table,
)
from lakebed.statestore.log_entries.transactions import (
    Change,
    Transaction,
    finish_entry,
)
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.sums import verify_all
from tests.dsl.table_story import next_position

STRING, INT = type_of("string"), type_of("int32")
SCHEMA = Schema(
    row_keys=(
        Field(name="key", type=STRING, number=1),
        Field(name="more", type=INT, number=2),
    )
)
LETTERS = "abcdefghijklmnop"
LONG = "k" * 26  # keys that begin alike for longer than bounds are


class Writers:
    """Three heads that lag behind each other, and what they may try."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.log = MemoryTransactionLog(self.clock)
        self.heads = [self.head() for _ in range(3)]
        self.sent: list[Transaction] = []
        points = self.points() if self.rng.random() < 0.5 else ()
        creation = create_table(SCHEMA, {}, tuple(sorted(set(points))))
        self.heads[0].commit(self.transaction(self.heads[0].state, creation))

    def head(self) -> TableHead:
        state = TableState(open_memory())
        return TableHead(self.log, state, clock=self.clock, rng=self.rng)

    def step(self, kinds: list[int]) -> None:
        """Plan a group on what one head knows and commit it through another."""
        self.clock.advance(self.rng.choice([0, 30, 90]))
        state = self.rng.choice(self.heads).state
        if state.head().number == 0:
            return
        group = [self.planned(state, kind) for kind in kinds]
        self.sent += group
        for answer in self.rng.choice(self.heads).commit_group(group):
            expected = (ConflictError, InvalidError, FencedError, int)
            assert isinstance(answer, expected), answer
        if self.rng.random() < 0.3:
            self.rng.choice(self.heads).follow()

    def planned(self, state: TableState, kind: int) -> Transaction:
        if self.sent and self.rng.random() < 0.05:
            return self.rng.choice(self.sent)
        made = KINDS[kind % len(KINDS)](self, state)
        return self.transaction(state, *(made if isinstance(made, tuple) else (made,) * bool(made)))

    def transaction(self, state: TableState, *changes: Change) -> Transaction:
        known = state.head()
        odd = self.rng.random()
        generation = known.generation + (1 if self.sent and odd < 0.02 else 0)
        id_ = f"{self.rng.getrandbits(64):x}"
        found = (state.position("topic") or (None, 0))[0]
        moved = next_position("topic", found, int.from_bytes(self.rng.randbytes(2), "big"))
        positions = (moved,) if odd > 0.9 else ()
        return Transaction(
            CommitId(id_),
            digest_of(id_.encode()),
            known.number,
            Generation(generation),
            changes,
            positions,
            self.rng.random() < 0.5,
        )

    def key(self) -> bytes:
        text = self.rng.choice([*LETTERS, LONG + self.rng.choice(LETTERS)])
        return encode_key(SCHEMA.row_keys, (text, self.rng.randrange(-3, 4)))

    def points(self) -> tuple[bytes, ...]:
        some = self.rng.randrange(1, 5)
        if self.rng.random() < 0.3:  # of whole keys, some of which share the first field
            encoded = list({self.key() for _ in range(some)})
        else:
            values = self.rng.sample([*LETTERS, *(LONG + c for c in LETTERS)], some)
            encoded = [encode_field(STRING, value) for value in values]
        return tuple(encoded if self.rng.random() < 0.1 else sorted(encoded))

    def partition(self, state: TableState) -> PartitionId:
        """Return any partition that ever was, or will be."""
        if self.rng.random() < 0.7:
            return self.rng.choice(state.leaf_figures()).partition
        return PartitionId(self.rng.randrange(1, state.head().partition_next + 1))

    def reference(self, state: TableState, partition: PartitionId) -> FileReference:
        run = self.rng.getrandbits(32)
        name = file_name(base=state.head().number, job=JobId("j"), run=run, sequence=0)
        least, most = sorted([self.key(), self.key()])
        bounds = bounds_of(least, most)
        key_range = own_key_range(state, partition)
        if key_range.overlaps(bounds.as_range()) and self.rng.random() < 0.5:
            bounds = bounds.inside(key_range)
        stored = StoredFile(name, 100, 50, self.rng.getrandbits(64), 1)
        return FileReference(stored, partition, self.rng.randrange(1000), bounds)

    # one method for each kind of change

    def add(self, state: TableState) -> Change:
        first = self.reference(state, self.partition(state))
        others = []
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            other = self.reference(state, self.partition(state))
            same = FileReference(first.file, other.partition, other.rows, other.bounds)
            others.append(self.rng.choice([other, same]))
        return AddFiles((first, *others))

    def claim(self, state: TableState) -> Change:
        partition = self.partition(state)
        files = [r.file.name for r, _ in state.references(partition)]
        some = self.rng.sample(files, self.rng.randrange(len(files) + 1))
        return ClaimFiles(JobId(f"job-{self.rng.randrange(9)}"), partition, tuple(some))

    def replace(self, state: TableState) -> Change | None:
        jobs = state.jobs()
        if not jobs:
            return None
        job = self.rng.choice(jobs)
        inputs = {r.file.name for r in state.claimed(job.id)}
        output = self.rng.choice([None, self.reference(state, job.partition)])
        return ReplaceFiles(job.id, job.partition, tuple(inputs), output)

    def give_up(self, state: TableState) -> Change:
        return ReleaseClaim(JobId(f"job-{self.rng.randrange(9)}"))

    def split(self, state: TableState) -> Change:
        partition = self.partition(state)
        points = self.points()
        weights = tuple(self.rng.randrange(4) for _ in range(len(points) + 1))
        shares = tuple((r.file.name, weights) for r, _ in state.references(partition)[::2])
        return Split(partition, points, shares)

    def presplit(self, state: TableState) -> tuple[Change, ...]:
        """Split a leaf and add a file for each new one, as a bulk import does."""
        partition = self.partition(state)
        key_range = own_key_range(state, partition)
        points = sorted({p for p in self.points() if splits(key_range, p)})
        files = []
        for low, high in pairwise((key_range.min, *points, key_range.max)):
            whole = self.reference(state, partition)
            own = msgspec.structs.replace(whole, bounds=KeyBounds(low or b"", high))
            files.append(own)
        return Split(partition, tuple(points)), AddFiles(tuple(files))

    def unsplittable(self, state: TableState) -> Change:
        return MarkUnsplittable(self.partition(state), 5)

    def remove(self, state: TableState) -> Change:
        files = [g.file for g in state.garbage()] + [r.file.name for r in state.all_references()]
        return RemoveGarbage(tuple(files[:1]))

    def floor(self, state: TableState) -> Change:
        number = state.head().number
        below = TransactionNumber(self.rng.randrange(number + 1))
        return RaiseFloor(TransactionNumber(max(0, number - self.rng.randrange(4))), below)

    def clear(self, state: TableState) -> Change:
        return Clear(self.rng.choice([None, (), self.points()]))

    def settle(self, state: TableState) -> Change:
        return ChangeSettings({"job_files_max": self.rng.randrange(4)})

    def pin(self, state: TableState) -> Change:
        until = Micros(self.clock.now() + self.rng.randrange(200_000_000))
        return self.rng.choice([PutPin("p", until), PutPin("q", until), DropPin("p")])


KINDS: list[Callable[[Writers, TableState], Change | tuple[Change, ...] | None]] = [
    *[Writers.add] * 6,
    *[Writers.claim] * 4,
    *[Writers.replace] * 3,
    *[Writers.split] * 3,
    *[Writers.presplit] * 2,
    Writers.give_up,
    Writers.unsplittable,
    Writers.remove,
    Writers.floor,
    Writers.settle,
    Writers.pin,
    Writers.clear,
]


@settings(max_examples=150)
@given(
    st.integers(0, 1 << 32),
    st.lists(st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=4), max_size=40),
)
@example(1, [[place % len(KINDS)] for place in range(150)])
@example(2, [[place * 7 % len(KINDS), place * 5 % len(KINDS)] for place in range(150)])
def test_the_state_stays_whole(seed: int, groups: list[list[int]]) -> None:
    writers = Writers(seed)
    for kinds in groups:
        writers.step(kinds)
    replay = replayed(writers.log)
    for head in [*writers.heads, writers.head()]:
        head.follow()
        assert head.state.digest() == replay.digest()
        with head.state.reading():
            verify_all(head.state.connection)


def replayed(log: MemoryTransactionLog) -> TableState:
    """Apply a log and look at the state after each transaction."""
    state = TableState(open_memory())
    added: set[FileName] = set()
    for number, body in log.read_after(TransactionNumber(0)):
        entry = decode_entry(body, number)
        moment = Moment(number, entry.at)
        for transaction in entry.transactions:
            for change in transaction.changes:
                check_before(state, change)
            rows = rows_of(state)
            transaction.apply(state, moment)
            check_after(state, added, transaction, rows)
        finish_entry(state, moment, entry_checksum(body))
    return state


def check_before(state: TableState, change: Change) -> None:
    if isinstance(change, ClaimFiles):
        held = {r.file.name: job for r, job in state.references(change.partition)}
        assert all(held[name] is None for name in change.inputs), "claimed twice"


def check_after(
    state: TableState, added: set[FileName], transaction: Transaction, before: Counter[FileName]
) -> None:
    references = list(state.all_references())
    leaves = list(state.tree().leaves())  # making the tree checks that leaves tile
    assert {r.partition for r in references} <= set(leaves), "files lie on leaves only"
    for r in references:
        assert own_key_range(state, r.partition).overlaps(r.bounds.as_range()), (
            "bounds reach the leaf"
        )
        assert r.rows >= 0
    referenced, garbage = {r.file.name for r in references}, {g.file for g in state.garbage()}
    assert not referenced & garbage, "referenced or garbage, never both"
    for change in transaction.changes:
        if isinstance(change, AddFiles):
            added |= {r.file.name for r in change.files}
        elif isinstance(change, ReplaceFiles) and change.output is not None:
            added.add(change.output.file.name)
        elif isinstance(change, RemoveGarbage):
            added -= set(change.files)
        elif isinstance(change, Split):
            after = rows_of(state)
            assert {name: after[name] for name in before} == before, "a split loses no rows"
    if [type(change) for change in transaction.changes] == [Split, AddFiles]:
        check_own_leaves(references, transaction.changes[-1])
    assert referenced | garbage == added, "every file is referenced or garbage"
    jobs = {job.id for job in state.jobs()}
    holding = {job for leaf in leaves for _, job in state.references(leaf) if job is not None}
    assert holding == jobs, "a job lives with its claim"


def check_own_leaves(references: Sequence[FileReference], change: Change) -> None:
    assert isinstance(change, AddFiles)
    for sent in change.files:
        mine = [r for r in references if r.file.name == sent.file.name]
        assert [(r.rows, r.exact) for r in mine] == [(sent.rows, True)], "in its own leaf, exactly"
        assert len(mine[0].bounds.min) <= BOUND_BYTES
        assert len(mine[0].bounds.max or b"") <= BOUND_BYTES


def rows_of(state: TableState) -> Counter[FileName]:
    rows: Counter[FileName] = Counter()
    for r in state.all_references():
        rows[r.file.name] += r.rows
    return rows


def test_the_writers_are_accepted_and_refused_often_enough() -> None:
    answers: Counter[str] = Counter()
    for seed in range(10):
        writers = Writers(seed)
        commit_group = TableHead.commit_group
        for place in range(60):
            state = writers.heads[0].state
            group = [writers.planned(state, place * 7)]
            (answer,) = commit_group(writers.heads[0], group)
            kind = "done" if isinstance(answer, int) else type(answer).__name__
            assert isinstance(answer, (int, LakebedError))
            answers[kind] += 1
    assert answers["done"] > 200, answers
    assert answers["InvalidError"] > 20, answers
    assert answers["ConflictError"] > 20, answers
