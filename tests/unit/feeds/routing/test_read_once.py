"""Several pipelines read a source once, and each has the records that it would have read alone."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource
from lakebed.errors import UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.feeds.reading.read_once import JOIN_SECONDS, KEPT_BYTES, ReadOnce
from lakebed.ports.record_source import Records, RecordSource, SourceSplit, SplitReader
from lakebed.source_kit import CHECKS, Check, NotOfferedError
from tests.contracts.sources.trials import MemoryTrial
from tests.unit.feeds.routing.brokers import CountingBroker, CountingSource

SPLIT = SourceSplit("a@1", "a")


@pytest.fixture
def broker() -> CountingBroker:
    return CountingBroker()


def shared(broker: CountingBroker, bytes_max: int = KEPT_BYTES) -> ReadOnce[pa.RecordBatch]:
    return ReadOnce(lambda: CountingSource(broker), broker.monotonic, bytes_max=bytes_max)


def values(records: Records[pa.RecordBatch] | None) -> list[bytes]:
    return [] if records is None else records.batch["value"].to_pylist()


def all_of(reader: SplitReader[pa.RecordBatch], bytes_max: int = 30) -> list[bytes]:
    """Return all that a reader gives."""
    found: list[bytes] = []
    while records := reader.read(bytes_max=bytes_max):
        found += values(records)
    return found


def write(broker: MemoryBroker, records: int) -> list[bytes]:
    written = [b"%09d" % n for n in range(records)]
    broker.write("a", *written)
    return written


class SharedTrial(MemoryTrial):
    """The model, shared."""

    def __init__(self) -> None:
        super().__init__()
        rising = count(0.0, JOIN_SECONDS)
        self.shared = ReadOnce(lambda: MemoryRecordSource(self.broker), rising.__next__)

    def connect(self) -> RecordSource[pa.RecordBatch]:
        return self.shared.join()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_shared_source_keeps_the_promises_of_sources(check: Check) -> None:
    with suppress(NotOfferedError):
        check(SharedTrial())


def test_readers_side_by_side_cost_one_reading(broker: CountingBroker) -> None:
    once, written = shared(broker), write(broker, 100)
    readers = [once.join().open(SPLIT, 0) for _ in range(5)]
    broker.seconds = JOIN_SECONDS
    found: list[list[bytes]] = [[] for _ in readers]
    for _ in range(100):
        for got, reader in zip(found, readers, strict=True):
            got.extend(values(reader.read(bytes_max=30)))
    assert found == [written] * 5
    assert (broker.bytes_read, broker.opened) == (900, 1)
    assert once.kept_bytes == 0, "what all have read is not kept"


def test_one_that_begins_after_the_first_has_read_finds_it(broker: CountingBroker) -> None:
    once, written = shared(broker), write(broker, 10)
    first = once.join().open(SPLIT, 0)
    got = values(first.read(bytes_max=30))
    broker.seconds = JOIN_SECONDS - 1
    second = once.join().open(SPLIT, 0)
    assert values(second.read(bytes_max=30)) == got
    assert broker.bytes_read == 9 * len(got)
    broker.seconds += 1
    assert all_of(first) == written[len(got) :] == all_of(second)
    assert (broker.bytes_read, once.kept_bytes) == (90, 0)


def test_nothing_is_kept_for_long_for_readers_that_do_not_come(broker: CountingBroker) -> None:
    once, written = shared(broker), write(broker, 10)
    reader = once.join().open(SPLIT, 0)
    assert all_of(reader) == written
    assert once.kept_bytes == 90
    broker.seconds = JOIN_SECONDS
    assert reader.read(bytes_max=30) is None
    assert once.kept_bytes == 0


def test_a_reader_far_behind_reads_by_itself_and_joins_where_the_others_stand(
    broker: CountingBroker,
) -> None:
    once, written = shared(broker, bytes_max=90), write(broker, 100)
    first, second = (once.join().open(SPLIT, begin) for begin in (0, 0))
    assert all_of(first) == written
    assert once.kept_bytes == 90, "the newest"
    assert all_of(second) == written
    before = broker.bytes_read
    broker.write("a", b"x" * 9)
    for reader in (first, second):
        assert values(reader.read(bytes_max=30)) == [b"x" * 9]
    assert broker.bytes_read == before + 9, "together again"


def test_what_comes_behind_is_counted_from_where_a_reader_stands(broker: CountingBroker) -> None:
    once = shared(broker)
    write(broker, 10)
    first, second = (once.join().open(SPLIT, 0) for _ in range(2))
    first.read(bytes_max=36)
    assert (first.behind(), second.behind()) == (6, 10)


def test_the_source_hears_of_what_all_have_committed(broker: CountingBroker) -> None:
    once = shared(broker)
    write(broker, 10)
    first, second = (once.join().open(SPLIT, 0) for _ in range(2))
    for reader in (first, second):
        reader.read(bytes_max=90)
    first.acknowledge(8)
    assert broker.acknowledged.get(SPLIT.name, 0) == 0
    second.acknowledge(5)
    assert broker.acknowledged[SPLIT.name] == 5
    second.close()
    first.acknowledge(9)
    assert broker.acknowledged[SPLIT.name] == 9


def test_a_source_is_closed_with_its_last_user_and_made_again(broker: CountingBroker) -> None:
    once = shared(broker)
    written = write(broker, 3)
    doors = [once.join() for _ in range(2)]
    readers = [door.open(SPLIT, 0) for door in doors]
    for reader, door in zip(readers, doors, strict=True):
        assert all_of(reader) == written
        reader.close()
        door.close()
        door.close()
    assert (broker.opened, once.users, once.kept_bytes) == (0, 0, 0)
    assert all_of(once.join().open(SPLIT, 0)) == written


def test_an_error_of_one_passes_no_record_over_for_any(broker: CountingBroker) -> None:
    once, written = shared(broker), write(broker, 10)
    first, second = (once.join().open(SPLIT, 0) for _ in range(2))
    got = values(first.read(bytes_max=30))
    broker.is_away = True
    with pytest.raises(UnavailableError):
        first.read(bytes_max=30)
    assert values(second.read(bytes_max=30)) == got, "it is kept"
    broker.is_away = False
    assert got + all_of(first) == written == got + all_of(second)


def test_behind_a_gap_readers_share_again(broker: CountingBroker) -> None:
    once, written = shared(broker), write(broker, 10)
    broker.seconds = JOIN_SECONDS
    doors = [once.join() for _ in range(2)]
    readers = [door.open(SPLIT, 0) for door in doors]
    broker.forget("a", 5)
    for index, door in enumerate(doors):
        with pytest.raises(PositionGoneError) as caught:
            readers[index].read(bytes_max=30)
        readers[index].close()
        readers[index] = door.open(SPLIT, caught.value.end)
    for _ in range(3):
        assert len({tuple(values(reader.read(bytes_max=30))) for reader in readers}) == 1
    assert broker.bytes_read == 9 * len(written[5:])


STEP = st.tuples(
    st.sampled_from(["read", "read", "read", "write", "forget", "away", "restart", "wait"]),
    st.integers(0, 3),
    st.sampled_from([1, 20, 100]),
)


@settings(max_examples=150)
@given(steps=st.lists(STEP, max_size=60), bytes_max=st.sampled_from([0, 50, 10_000]))
def test_whatever_happens_each_reads_what_it_would_have_read_alone(
    steps: list[tuple[str, int, int]], bytes_max: int
) -> None:
    broker = CountingBroker()
    once, written = shared(broker, bytes_max=bytes_max), dict(enumerate(write(broker, 5)))
    doors = [once.join() for _ in range(4)]
    at = [0] * 4
    readers: list[SplitReader[pa.RecordBatch]] = [door.open(SPLIT, 0) for door in doors]
    for action, number, size in steps:
        if action == "write":
            written[broker.splits["a"].end] = b"%09d" % size
            broker.write("a", b"%09d" % size)
            broker.leave_hole("a", number)
        elif action == "forget":
            broker.forget("a", min(size, broker.splits["a"].end))
        elif action == "away":
            broker.is_away = not broker.is_away
        elif action == "wait":
            broker.seconds += JOIN_SECONDS
        elif action == "restart":
            readers[number].close()
            readers[number] = doors[number].open(SPLIT, at[number])
        else:
            at[number] = _read(broker, readers[number], at[number], size, written)
    assert once.kept_bytes <= bytes_max
    for reader in readers:
        reader.close()
    assert once.kept_bytes == 0


def _read(
    broker: CountingBroker,
    reader: SplitReader[pa.RecordBatch],
    at: int,
    size: int,
    written: dict[int, bytes],
) -> int:
    """Let a reader read from a position on, and compare. Returns where it stands then."""
    try:
        records = reader.read(bytes_max=size)
    except UnavailableError:
        assert broker.is_away
        return at
    except PositionGoneError:
        assert at < broker.splits["a"].first
        return at
    if records is None:
        assert not [position for position in written if position >= at]
        return at
    found = dict(zip(records.batch["position"].to_pylist(), values(records), strict=True))
    assert found == {p: value for p, value in written.items() if at <= p < records.end}
    assert found
    return records.end
