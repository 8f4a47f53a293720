"""Records wait on the disk while their table is slow, busy or away, and come out as they went."""

from __future__ import annotations

import logging
import random
from collections import Counter

import pyarrow as pa
import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource
from lakebed.backends.memory.spool import MemorySpool
from lakebed.decoding.raw_records import RawRecordsCodec
from lakebed.errors import (
    CorruptError,
    StorageFullError,
    UnavailableError,
)
from lakebed.feeds.pacing.congestion import Congestion, CongestionRules
from lakebed.feeds.pacing.spilled_frames import Frame, decoded_frame, encoded_frame
from lakebed.feeds.pacing.spilling import OFF_SECONDS, SpillingSource
from lakebed.observe import events
from lakebed.ports.record_source import Records, SplitReader
from lakebed.ports.spool import FrameAt

BYTES_MAX = 1 << 20
NAMES = ("a", "b", "c")


class Ahead:
    """A source of three source splits that is read ahead into a spool in memory."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.broker = MemoryBroker()
        self.spool = MemorySpool()
        self.clock = VirtualClock()
        self.source = SpillingSource(
            MemoryRecordSource(self.broker),
            self.spool,
            RawRecordsCodec(),
            self.clock,
            bytes_max=bytes_max,
            table="web",
            connection="c",
        )
        self.written: Counter[str] = Counter()
        for name in NAMES:
            self.write(name, 1)
        self.named = {split.title: split for split in self.source.splits()}
        self.named = {name: self.source.splits()[index] for index, name in enumerate(NAMES)}

    def write(self, name: str, count: int, size: int = 10) -> None:
        for _ in range(count):
            value = f"{name}{self.written[name]}".ljust(size).encode()
            self.broker.write(name, value)
            self.written[name] += 1


def values_of(records: Records[pa.RecordBatch]) -> list[str]:
    return [value.decode().strip() for value in records.batch["value"].to_pylist()]


class Walk:
    """What a pipeline may do to a source that spills, by chance. Each source split is read as if
    nothing were spilled: record for record, from what is committed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ahead = Ahead()
        self.readers: dict[str, SplitReader[pa.RecordBatch]] = {}
        self.held: dict[str, list[Records[pa.RecordBatch]]] = {name: [] for name in NAMES}
        self.base: dict[str, tuple[int, bytes]] = dict.fromkeys(NAMES, (0, b""))
        self.committed: dict[str, list[str]] = {name: [] for name in NAMES}

    def step(self) -> None:
        name = self.rng.choice(NAMES)
        spool = self.ahead.spool
        match self.rng.randrange(12):
            case 0 | 1:
                self.ahead.write(name, self.rng.randrange(1, 40), self.rng.choice((10, 3_000)))
            case 2 | 3:
                self.ahead.source.read_ahead()
            case 4 | 5 | 6:
                self.read(name)
            case 7 | 8:
                self.commit(name)
            case 9:
                self.forget(name)
            case 10 if self.rng.random() < 0.3:
                spool.damage()
            case 11 if self.rng.random() < 0.3:
                spool.refusal = None if spool.refusal else StorageFullError("full")
            case _:
                self.ahead.clock.advance(self.rng.choice((1, OFF_SECONDS)))
        self.ahead.broker.is_away = self.rng.random() < 0.1

    def read(self, name: str) -> None:
        try:
            reader = self.readers.get(name) or self.open(name)
            records = reader.read(bytes_max=self.rng.choice((1, 5_000, 1 << 20)))
        except UnavailableError:
            self.forget(name)
            return
        if records is not None:
            before = self.held[name][-1].end if self.held[name] else self.base[name][0]
            assert records.begin >= before, "no record comes twice"
            self.held[name].append(records)

    def open(self, name: str) -> SplitReader[pa.RecordBatch]:
        position, resume = self.base[name]
        split = self.ahead.named[name]
        self.readers[name] = self.ahead.source.open(split, position, resume=resume)
        return self.readers[name]

    def commit(self, name: str) -> None:
        count = self.rng.randrange(len(self.held[name]) + 1)
        done, self.held[name] = self.held[name][:count], self.held[name][count:]
        for records in done:
            self.committed[name] += values_of(records)
        if done and name in self.readers:
            self.base[name] = (done[-1].end, done[-1].resume)
            self.readers[name].acknowledge(done[-1].end)

    def forget(self, name: str) -> None:
        self.held[name] = []
        if name in self.readers:
            self.readers.pop(name).close()
        if self.rng.random() < 0.3:
            self.ahead.source.forget_closed()

    def check(self) -> None:
        assert self.ahead.spool.most <= BYTES_MAX
        for name in NAMES:
            found = self.committed[name]
            assert found == [f"{name}{n}" for n in range(len(found))]


@pytest.mark.parametrize("seeds", [range(n, n + 25) for n in range(0, 200, 25)], ids=str)
def test_whatever_happens_records_come_in_order_and_each_once(seeds: range) -> None:
    taken = 0
    for seed in seeds:
        walk = Walk(seed)
        for _ in range(150):
            walk.step()
            walk.check()
        taken += sum(map(len, walk.committed.values()))
    assert taken > 1_000


def test_what_was_read_ahead_comes_out_of_the_spool_and_room_comes_back() -> None:
    ahead = Ahead()
    ahead.write("a", 30)
    reader = ahead.source.open(ahead.named["a"], 0)
    assert ahead.source.read_ahead()
    assert reader.behind() == 31
    ahead.broker.is_away = True
    records = reader.read(bytes_max=1)
    assert records is not None
    assert values_of(records) == [f"a{n}" for n in range(31)]
    assert (reader.behind(), ahead.source.size > 0) == (0, True), "it stays until it is committed"
    reader.close()
    again = ahead.source.open(ahead.named["a"], 0).read(bytes_max=1)
    assert again is not None
    assert again.batch.equals(records.batch)
    again_reader = ahead.source.open(ahead.named["a"], 0)
    assert again_reader.read(bytes_max=1) is not None
    again_reader.acknowledge(31)
    assert ahead.source.size == 0


def test_what_is_read_ahead_between_two_turns_goes_on_from_what_is_committed() -> None:
    ahead = Ahead()
    reader = ahead.source.open(ahead.named["a"], 0)
    assert reader.read(bytes_max=1) is not None
    reader.acknowledge(1)
    reader.close()
    ahead.write("a", 5)
    assert ahead.source.read_ahead()
    reader = ahead.source.open(ahead.named["a"], 1)
    ahead.broker.is_away = True
    records = reader.read(bytes_max=1 << 20)
    assert records is not None
    assert values_of(records) == [f"a{n}" for n in range(1, 6)]


def test_nothing_of_what_waits_is_kept_in_memory() -> None:
    ahead = Ahead(bytes_max=64 << 20)
    ahead.source.open(ahead.named["a"], 0)
    ahead.write("a", 200, size=50_000)
    before = pa.total_allocated_bytes()
    while ahead.source.read_ahead():
        pass
    assert ahead.source.size > 10_000_000
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_no_more_is_read_ahead_than_may_lie_there() -> None:
    ahead = Ahead()
    reader = ahead.source.open(ahead.named["a"], 0)
    ahead.write("a", 2_000, size=2_000)
    while ahead.source.read_ahead():
        pass
    assert BYTES_MAX // 2 < ahead.spool.most <= BYTES_MAX
    assert (ahead.source.is_full, ahead.source.percent) == (True, 100)
    taken = 0
    while (records := reader.read(bytes_max=100_000)) is not None:
        taken += records.count
        reader.acknowledge(records.end)
        ahead.source.read_ahead()
    assert taken == 2_001
    assert ahead.spool.most <= BYTES_MAX
    assert (ahead.source.size, ahead.source.is_full, ahead.source.percent) == (0, False, 0)


def test_a_spool_is_as_full_as_its_bytes_or_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what it takes: reading ahead leaves room for two reads."""
    ahead = Ahead(bytes_max=8 << 20)
    ahead.source.open(ahead.named["a"], 0)
    ahead.write("a", 1, size=3 << 20)
    ahead.source.read_ahead()
    ahead.source.read_ahead()
    assert 50 <= ahead.source.percent == 100 * ahead.source.size // (6 << 20) < 60
    monkeypatch.setattr("lakebed.feeds.pacing.spilling.FRAMES_MAX", 3)
    assert len(ahead.source._splits[ahead.named["a"].name].frames) == 2
    assert ahead.source.percent == 66


def test_a_spool_whose_disk_refused_counts_as_full_until_it_is_tried_again() -> None:
    ahead = Ahead()
    ahead.source.open(ahead.named["a"], 0)
    ahead.write("a", 10)
    ahead.spool.refusal = StorageFullError("full")
    ahead.source.read_ahead()
    assert (ahead.source.size, ahead.source.percent) == (0, 100)
    ahead.clock.advance(OFF_SECONDS)
    assert ahead.source.percent == 0, "whether or not anything is read ahead again"


def test_a_record_that_is_too_large_for_the_spool_passes_it() -> None:
    ahead = Ahead()
    reader = ahead.source.open(ahead.named["a"], 0)
    ahead.write("a", 1, size=2 << 20)
    ahead.source.read_ahead()
    ahead.source.read_ahead()
    found = list[str]()
    while (records := reader.read(bytes_max=100)) is not None:
        found += values_of(records)
    assert found == ["a0", "a1"]
    assert ahead.spool.most <= BYTES_MAX


@pytest.mark.parametrize("how", ["damaged", "full"])
def test_a_spool_that_fails_is_dropped_and_said_and_the_source_read_again(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    ahead = Ahead()
    ahead.write("a", 10)
    reader = ahead.source.open(ahead.named["a"], 0)
    with caplog.at_level(logging.INFO, logger="lakebed"):
        if how == "full":
            ahead.source.read_ahead()
            ahead.write("a", 10)
            ahead.spool.refusal = StorageFullError("full")
            ahead.source.read_ahead()
            assert (ahead.source.size, ahead.source.is_full) == (0, True)
        else:
            ahead.source.read_ahead()
            ahead.spool.damage()
        found = list[str]()
        while (records := reader.read(bytes_max=1 << 20)) is not None:
            found += values_of(records)
    assert found == [f"a{n}" for n in range(ahead.written["a"])]
    said = [record for record in caplog.records if "facts" in vars(record)]
    dropped = [vars(r)["facts"] for r in said if vars(r)["event"] == events.FEED_SPILL_DROPPED]
    assert [facts["code"] for facts in dropped] == [
        "corrupt" if how == "damaged" else "storage-full"
    ]
    ahead.spool.refusal = None
    ahead.write("a", 1)
    assert ahead.source.read_ahead() == (how == "damaged"), "a disk that refused is left alone"
    ahead.clock.advance(OFF_SECONDS)
    ahead.write("a", 1)
    assert ahead.source.read_ahead()


def frame(split: str = "a", begin: int = 0, end: int = 1) -> tuple[bytes, Frame]:
    ahead = Ahead()
    records = MemoryRecordSource(ahead.broker).open(ahead.named["a"], 0).read(bytes_max=9)
    assert records is not None
    body = encoded_frame("a", 0, records, RawRecordsCodec())
    return body, Frame(begin, b"", end, records.resume, FrameAt(1, 0, len(body)))


def test_a_frame_of_other_records_is_never_taken_for_these() -> None:
    body, at = frame()
    assert values_of(decoded_frame(body, "a", at, RawRecordsCodec())) == ["a0"]
    wrong = [("b", at), ("a", frame(begin=3)[1]), ("a", frame(end=7)[1])]
    for split, other in wrong:
        with pytest.raises(CorruptError):
            decoded_frame(body, split, other, RawRecordsCodec())
    for index in range(0, len(body), 7):
        with pytest.raises(CorruptError):
            decoded_frame(body[:index], "a", at, RawRecordsCodec())


def test_the_next_rung_is_tried_when_the_spool_is_full() -> None:
    rules = CongestionRules(rungs=("spill", "discard", "backpressure"))
    for is_full, rungs in ((False, ["spill"]), (True, ["spill", "discard"])):
        ladder, seen = Congestion(rules), list[str]()
        for second in range(60):
            ladder.see(
                float(second),
                behind=1_000 * second,
                taken=second,
                is_caught_up=False,
                is_full=is_full and second > 20,
            )
            if ladder.rung and ladder.rung not in seen:
                seen.append(ladder.rung)
                assert ladder.spills
        assert seen == rungs


def test_source_splits_that_another_worker_took_are_let_go() -> None:
    ahead = Ahead()
    readers = {name: ahead.source.open(ahead.named[name], 0) for name in NAMES}
    ahead.write("a", 100)
    ahead.source.read_ahead()
    before = ahead.source.size
    readers["a"].close()
    assert ahead.source.size == before, "it may come back at once"
    ahead.source.forget_closed()
    assert 0 < ahead.source.size < before
