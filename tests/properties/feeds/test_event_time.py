"""Whatever workers do, and in whatever order their commits land: the watermark never goes back
(R18), and a sealed window is complete as of its number (R19)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.backends.memory import MemoryTransactionLog, VirtualClock
from lakebed.errors import ConflictError, FencedError
from lakebed.feed_errors import WindowSealedError
from lakebed.feeds.event_windows import are_late, newest_time, window_counts
from lakebed.model.feeds.positions import Position, decode_position, encode_position, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import (
    LateRows,
    SplitTime,
    WindowRules,
)
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import (
    CommitId,
    ConnectionId,
    Generation,
    JobId,
    Micros,
    PartitionId,
    TransactionNumber,
    digest_of,
    file_name,
)
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.feed_changes import Count, Define
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import create_table
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.table_state import window_records
from lakebed.statestore.table_state.feed_records import connection_of
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.window_records import Watermark, watermark_of, windows_of
from tests.dsl.table_story import SCHEMA

FEED = ConnectionId("feed")
SECOND = 1_000_000
SPLITS = ("a", "b", "c")
WINDOW, DISORDER, SEAL, IDLE = 10, 7, 4, 60
WALKS_MAX = 200

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("take", "take", "take", "stall", "land", "again", "say", "wait", "end")),
        st.integers(0, 5),
        st.integers(0, 30),
    ),
    min_size=5,
    max_size=40,
)


class Workers:
    """Sources of records whose event times rise, but for a disorder, and workers whose heads lag.

    stalled: transactions that were made and not sent yet. sent: those that may come again.
    """

    def __init__(self, named: int, late: LateRows) -> None:
        self.clock = VirtualClock()
        self.log = MemoryTransactionLog(self.clock)
        self.rng = random.Random(0)
        self.heads = [self.head() for _ in range(3)]
        self.rules = WindowRules(WINDOW, DISORDER, SEAL, IDLE, 10**6, late)
        self.begin = self.clock.now() // (WINDOW * SECOND) * WINDOW * SECOND
        self.named = SPLITS[:named]
        self.stalled: list[Transaction] = []
        self.sent: list[Transaction] = []
        self.made = 0
        self.answers = Counter[str]()
        for change in (create_table(SCHEMA, {}, ()), Define(FEED, 1, self.named)):
            self.commit(self.transaction(0, change))
            for head in self.heads:
                head.follow()

    def head(self) -> TableHead:
        return TableHead(self.log, TableState(open_memory()), clock=self.clock, rng=self.rng)

    def event_time(self, split: str, record: int) -> Micros:
        """Event time of a record: what comes later is at most DISORDER seconds earlier."""
        late = random.Random(f"{split} {record}").randrange(DISORDER + 1)
        pace = 1 + SPLITS.index(split)
        return Micros(self.begin + (3 * pace * record + DISORDER - late) * SECOND)

    def step(self, does: str, one: int, other: int) -> None:
        split = SPLITS[one % len(SPLITS)]
        if does == "wait":
            self.clock.advance(4 * other)
        elif does == "again" and self.sent:
            self.commit(self.sent[other % len(self.sent)])
        elif does == "land" and self.stalled:
            self.commit(self.stalled.pop(other % len(self.stalled)))
        elif does == "say":
            self.commit(self.batch(one, split, 0, caught_up=True))
        elif does == "end" and other == 0:
            self.commit(self.transaction(one, self.ended(split)))
        elif does == "stall":
            self.stalled.append(self.batch(one, split, other % 6 + 1, caught_up=other % 2 == 0))
        elif does == "take":
            self.heads[one % 3].follow()
            self.commit(self.batch(one, split, other % 6 + 1, caught_up=other % 2 == 0))

    def ended(self, split: str) -> Advance:
        return Advance(FEED, 1, self.rules, (SplitTime(split, ended=True),))

    def batch(self, head: int, split: str, count: int, *, caught_up: bool) -> Transaction:
        """Return a batch that begins where a head, which may lag, believes its source split to
        be."""
        state = self.heads[head % 3].state
        known, watermark = state.position(position_name(FEED, split)), watermark_known(state)
        at = Position(0, 0) if known is None else decode_position(known[0])
        assert isinstance(at.next, int)
        times = [self.event_time(split, at.next + n) for n in range(count)]
        rows = pa.array(times, pa.timestamp("us"))
        left_out = are_late(rows, self.rules, sealed=watermark.sealed)
        if self.rules.late == "accept":
            left_out = pa.array([False] * count, pa.bool_())
        kept, dropped = rows.filter(pc.invert(left_out)), rows.filter(left_out)
        windows = window_counts(kept, self.rules, left_out=dropped)
        stored, late = len(kept), len(dropped)
        said = SplitTime(split, newest_time(rows), caught_up)
        changes: list[Change] = [
            Count(FEED, 1, split, Tally(read=count, stored=stored, discarded=late)),
            Advance(FEED, 1, self.rules, (said,), windows),
        ]
        if stored:
            changes.append(AddFiles((self.file(state, stored),)))
        value = encode_position(Position(at.revision + 1, at.next + count))
        moved = PositionChange(position_name(FEED, split), known and known[0], value)
        return self.transaction(head, *changes, moved=moved)

    def file(self, state: TableState, rows: int) -> FileReference:
        job = JobId(f"job-{self.made}")
        name = file_name(base=state.head().number, job=job, run=0, sequence=0)
        root = state.head().root or PartitionId(1)
        return FileReference(StoredFile(name, 10, 5, 1, 1), root, rows, KeyBounds(b"", None))

    def transaction(
        self, head: int, *changes: Change, moved: PositionChange | None = None
    ) -> Transaction:
        self.made += 1
        base = self.heads[head % 3].state.head().number
        id_ = f"commit-{self.made}"
        digest, moves = digest_of(id_.encode()), () if moved is None else (moved,)
        return Transaction(CommitId(id_), digest, base, Generation(base and 1), changes, moves)

    def commit(self, transaction: Transaction) -> None:
        self.sent.append(transaction)
        (answer,) = self.heads[self.made % 3].commit_group((transaction,))
        expected = (int, ConflictError, FencedError)
        assert isinstance(answer, expected), answer
        self.answers["done" if isinstance(answer, int) else type(answer).__name__] += 1


def watermark_known(state: TableState) -> Watermark:
    known = connection_of(state, FEED)
    return Watermark() if known is None else watermark_of(state, known)


class Said(msgspec.Struct):
    """What the log says of a source split: the model's own memory of it."""

    time: int | None
    caught_up: list[int] = msgspec.field(default_factory=list)

    def is_idle(self, at: int) -> bool:
        """Whether its owner said at least so long that it is caught up, without a pause as long,
        and said so lately."""
        if not self.caught_up or at - self.caught_up[-1] > IDLE * SECOND:
            return False
        first = self.caught_up[-1]
        for said in reversed(self.caught_up):
            if first - said > IDLE * SECOND:
                break
            first = said
        return self.caught_up[-1] - first >= IDLE * SECOND


def model(workers: Workers) -> Iterator[tuple[int, int | None, dict[int, list[tuple[int, int]]]]]:
    """Yield for each entry its number, the watermark that event times and log time allow, and by
    window the rows that entries stored in it, each with the entry's number."""
    splits: dict[str, Said] = {split: Said(None) for split in workers.named}
    watermark, reached = None, None
    stored: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, body in workers.log.read_after(TransactionNumber(0)):
        entry = decode_entry(body, number)
        for change in (c for t in entry.transactions for c in t.changes):
            if not isinstance(change, Advance):
                continue
            for window in change.windows:
                if window.rows:
                    stored[window.start].append((number, window.rows))
            for said in change.splits:
                known = splits.setdefault(said.source_split, Said(None))
                if said.event_time is not None:
                    known.time = max(known.time or 0, said.event_time)
                    reached = max(reached or 0, said.event_time)
                if said.event_time is not None or not said.caught_up:
                    known.caught_up = []
                if said.caught_up:
                    known.caught_up.append(entry.at)
                if said.ended:
                    del splits[said.source_split]
            busy = [known.time for known in splits.values() if not known.is_idle(entry.at)]
            times = [time for time in busy if time is not None]
            allowed = reached if not busy else min(times) if len(times) == len(busy) else None
            if allowed is not None:
                watermark = max(watermark or 0, allowed - DISORDER * SECOND)
        yield number, watermark, stored


def play(workers: Workers, steps: list[Step]) -> None:
    """Let workers do some steps, and hold the state against the model at each entry."""
    reader = workers.head()
    reader.follow()
    before, seen = watermark_known(reader.state).time, dict[int, int | None]()
    for step in steps:
        workers.step(*step)
        reader.follow()
        now = watermark_known(reader.state).time
        assert before is None or (now is not None and now >= before), "it never goes back"
        before = seen[reader.state.head().number] = now
    stored: dict[int, list[tuple[int, int]]] = {}
    for number, wanted, found in model(workers):
        assert seen.get(number, wanted) == wanted, "event times and log time alone decide"
        stored = found
    another = workers.head()
    another.follow()
    assert another.state.digest() == reader.state.digest()
    check_windows(reader.state, stored, workers.rules)
    for head in workers.heads:
        head.follow()
        assert head.state.digest() == reader.state.digest()


def check_windows(
    state: TableState, stored: dict[int, list[tuple[int, int]]], rules: WindowRules
) -> None:
    """Hold windows against what entries stored: what came after the number of a sealed one is
    late."""
    watermark = watermark_known(state)
    if watermark.time is not None:
        assert watermark.sealed == watermark.time - SEAL * SECOND, "what it has passed, and no more"
    known = connection_of(state, FEED)
    assert known is not None
    found = set()
    for window in windows_of(state, known):
        assert window.start is not None
        found.add(window.start)
        rows = stored.get(window.start, [])
        assert window.rows == sum(count for _, count in rows)
        assert (window.sealed is not None) == watermark.is_sealed(window.start + WINDOW * SECOND), (
            "sealed is what the watermark has passed"
        )
        if window.sealed is None:
            assert (window.late, window.revision, window.number) == (0, 0, None)
            continue
        later = [(number, count) for number, count in rows if number > window.sealed]
        if rules.late != "accept":
            assert not later, "as of its number it is complete"
            assert window.number == window.sealed
        elif window.late > sum(count for _, count in later):  # its first row came late
            assert rows[0][0] == window.sealed
        else:
            assert window.late == sum(count for _, count in later)
            assert window.revision == 1 + len({number for number, _ in later})
            assert window.number == max((n for n, _ in later), default=window.sealed)
    assert found >= set(stored)


@settings(max_examples=150, deadline=None)
@given(named=st.integers(0, 3), late=st.sampled_from(("accept", "drop")), steps=STEPS)
def test_the_watermark_never_goes_back_and_sealed_windows_are_complete(
    named: int, late: LateRows, steps: list[Step]
) -> None:
    play(Workers(named, late), steps)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_no_row_is_late_where_all_source_splits_are_named_and_keep_to_the_disorder(
    steps: list[Step],
) -> None:
    workers = Workers(len(SPLITS), "drop")
    play(workers, [step for step in steps if step[0] not in {"say", "end"}])
    for _, body in workers.log.read_after(TransactionNumber(0)):
        for transaction in decode_entry(body, 1).transactions:
            for change in transaction.changes:
                if isinstance(change, Advance):
                    assert not any(window.late for window in change.windows)
    assert not workers.answers[WindowSealedError.__name__]


def test_the_workers_are_accepted_and_refused_often_enough() -> None:
    rng, answers = random.Random(1), Counter[str]()
    kinds = ("take", "take", "stall", "land", "again", "say", "wait")
    sealed = 0
    for _ in range(20):
        workers = Workers(rng.randrange(4), "drop")
        for _ in range(60):
            workers.step(rng.choice(kinds), rng.randrange(6), rng.randrange(31))
        answers.update(workers.answers)
        sealed += watermark_known(workers.heads[0].state).sealed is not None
    assert answers["done"] > 300, answers
    assert answers["PositionMovedError"] > 20, answers
    assert answers["WindowSealedError"] > 5, answers
    assert sealed > 5


def goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """R18: a source split that comes late takes the watermark back."""
    risen = window_records._risen

    def forgetful(*given: Any, **more: Any) -> Watermark:  # noqa: ANN401 - as it takes
        state, key, before, reached = given
        return risen(state, key, Watermark(None, before.sealed, before.reached), reached, **more)

    monkeypatch.setattr(window_records, "_risen", forgetful)


def believes_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """R18: whether a source split is idle is judged by the clock of who applies the entry."""
    risen, late = window_records._risen, count()

    def by_own_clock(*given: Any, at: Micros, **more: Any) -> Watermark:  # noqa: ANN401 - as above
        return risen(*given, at=Micros(at + next(late) % 3 * IDLE * SECOND), **more)

    monkeypatch.setattr(window_records, "_risen", by_own_clock)


def seals_by_the_furthest_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """R19: windows are sealed when the first source split has passed them."""
    risen = window_records._risen

    def hasty(*given: Any, **more: Any) -> Watermark:  # noqa: ANN401 - as above
        found, reached = risen(*given, **more), given[3]
        sealed = found.sealed if reached is None else Micros(reached)
        return Watermark(found.time, sealed, found.reached)

    monkeypatch.setattr(window_records, "_risen", hasty)


def takes_rows_of_sealed_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """R19: rows that were in time when they were read are stored, though their window is sealed."""
    monkeypatch.setattr(Advance, "_check_sealed", lambda *_: None)


@pytest.mark.parametrize(
    "twin",
    [goes_back, believes_its_own_clock, seals_by_the_furthest_split, takes_rows_of_sealed_windows],
)
def test_the_model_notices_the_twin(
    twin: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    kinds = ("take", "take", "take", "stall", "land", "again", "say", "wait", "end")
    walks = [
        [(rng.choice(kinds), rng.randrange(6), rng.randrange(31)) for _ in range(40)]
        for _ in range(WALKS_MAX)
    ]
    play(Workers(2, "drop"), walks[0])
    twin(monkeypatch)
    for steps in walks:
        try:
            play(Workers(rng.randrange(4), "drop"), steps)
        except AssertionError:
            return
    pytest.fail(f"not noticed in {WALKS_MAX} walks")
