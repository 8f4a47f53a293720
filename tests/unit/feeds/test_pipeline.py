"""What a pipeline reads ahead, when it commits, and what it does when others were faster (protocol
R6)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.decoding.raw_records import lines_as_records
from lakebed.errors import TableBusyError
from lakebed.feed_errors import PositionGoneError, PositionMovedError
from lakebed.feeds import pipeline as pipeline_module
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.land_records import LandRecords
from lakebed.feeds.owned_splits import NewestOwners
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import DISCOVER_SECONDS, OWN_SECONDS, TRIES_MAX, Pipeline
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StagedRows, StageRows
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TransactionNumber, table_name
from lakebed.observe.events import FEED_PROGRESSED
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.ports.sorted_files import SortedFiles
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.table_state.feed_records import connection_of, gaps_of

CONNECTION = FeedConnection(connection_id("ab" * 16), 1)
LIMITS = RotationLimits(size=100, records=50, seconds=10, idle_seconds=2)


class Lines:
    """A source of lines by source split, whose first bytes may be gone, and which knows what it was
    told."""

    def __init__(self) -> None:
        self.lines: dict[str, bytes] = {}
        self.oldest: dict[str, int] = {}
        self.acknowledged: list[tuple[str, int]] = []
        self.opened: list[tuple[str, int]] = []
        self.first = 0

    def splits(self) -> list[SourceSplit]:
        return [SourceSplit(name, name) for name in self.lines]

    def start(self, split: SourceSplit) -> int:
        return self.first

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> LinesReader:
        self.opened.append((split.name, begin))
        return LinesReader(self, split.name, begin)

    def close(self) -> None:
        """Nothing is held."""


class LinesReader:
    def __init__(self, source: Lines, split: str, begin: int) -> None:
        self._source, self._split, self._next = source, split, begin

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        oldest = self._source.oldest.get(self._split, 0)
        if self._next < oldest:
            raise PositionGoneError("gone", first=self._next, end=oldest)
        rest = self._source.lines[self._split][self._next :]
        line = rest[: rest.find(b"\n") + 1]
        if not line:
            return None
        begin, self._next = self._next, self._next + len(line)
        batch = lines_as_records(line, begin)
        return Records(begin=begin, end=self._next, count=1, size=len(line), batch=batch)

    def behind(self) -> int:
        return len(self._source.lines[self._split]) - self._next

    def acknowledge(self, end: int) -> None:
        self._source.acknowledged.append((self._split, end))

    def close(self) -> None:
        """Nothing is held."""


class Owns:
    """Owns what it is told to."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] | None = None
        self.released: list[str] = []

    def owned(self, splits: list[str], newest: NewestOwners) -> dict[str, int]:
        return dict.fromkeys(splits, 1) if self.numbers is None else self.numbers

    def release(self, split: str) -> None:
        self.released.append(split)


class SlowStage(StageRows[pa.RecordBatch]):
    """Takes a while, on the virtual clock."""

    seconds = 0.0

    def __init__(self, *, files: SortedFiles[pa.RecordBatch], clock: VirtualClock) -> None:
        super().__init__(files=files)
        self._clock = clock

    def run(self, *args: Any, **kwargs: Any) -> StagedRows:  # noqa: ANN401 - as it is given
        self._clock.advance(self.seconds)
        return super().run(*args, **kwargs)


class Given:
    """A pipeline of lines into a landing table."""

    def __init__(self, folder: Path) -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.app = self.lake._app
        self.table = self.app.catalog.create(table_name("landed"), LANDING_SCHEMA)
        self.source, self.owns, self.clock = Lines(), Owns(), VirtualClock()
        self.pipeline = self.another()

    def another(
        self,
        *,
        records_gaps: bool = False,
        held: HeldBytes | None = None,
        limits: RotationLimits = LIMITS,
    ) -> Pipeline[pa.RecordBatch]:
        return Pipeline[pa.RecordBatch](
            table=self.table,
            connection=CONNECTION,
            source=self.source,
            rounds=CommitRound(
                stage=SlowStage(files=self.app.files, clock=self.clock),
                make_rows=LandRecords(),
                clock=self.clock,
            ),
            clock=self.clock,
            rules=PipelineRules(limits=limits, records_gaps=records_gaps),
            splits=self.owns,
            held=held,
        )

    def values(self) -> list[bytes]:
        return self.lake.table("landed").query().read_all()["value"].to_pylist()

    def drain(self) -> None:
        for _ in range(200):
            turn = self.pipeline.turn()
            self.pipeline.turn(is_draining=not turn.has_read)
            if self.pipeline.is_idle:
                break


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    made = Given(tmp_path)
    yield made
    made.lake.close()


def test_records_of_several_source_splits_are_committed_together(given: Given) -> None:
    given.source.lines = {"a": b"1\n2\n", "b": b"3\n"}
    given.pipeline.turn()
    given.pipeline.turn()
    before = given.table.head.state.head().number
    given.pipeline.turn(is_draining=True)
    assert given.values() == [b"1", b"2", b"3"]
    assert given.table.head.state.head().number == before + 1


def test_more_source_splits_than_a_change_names_are_committed_one_part_after_the_other(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "SPLITS_MAX", 2)
    given.source.lines = {name: name.encode() + b"\n" for name in "abcde"}
    given.pipeline.turn()
    before = given.table.head.state.head().number
    done = given.pipeline.turn(is_draining=True).committed
    assert done is not None
    assert (done.number, done.tally.read, sorted(done.at)) == (before + 3, 5, list("abcde"))
    assert given.values() == [b"a", b"b", b"c", b"d", b"e"]


def test_a_round_that_was_refused_leaves_something_to_do(given: Given) -> None:
    given.source.lines = {"a": b"1\n"}
    given.pipeline.turn()
    another = given.another()
    another.turn()
    assert another.turn(is_draining=True).committed is not None
    given.pipeline.turn()
    assert given.pipeline.turn(is_draining=True).committed is None
    assert not given.pipeline.is_idle, "what is behind the committed position was not looked at"


def test_nothing_is_committed_before_it_is_time(given: Given) -> None:
    given.source.lines = {"a": b"1\n"}
    assert given.pipeline.turn().committed is None
    given.clock.advance(1.9)
    assert given.pipeline.turn().committed is None
    given.clock.advance(0.2)
    assert given.pipeline.turn().committed is not None, "nothing more comes"
    given.source.lines["a"] += b"x" * 120 + b"\n"
    assert given.pipeline.turn().committed is not None, "it is large"


def test_a_flush_commits_what_is_held(given: Given) -> None:
    given.source.lines = {"a": b"1\n"}
    given.pipeline.turn()
    given.pipeline.flush(3)
    assert given.pipeline.flushed == 0
    assert given.pipeline.turn().committed is not None
    assert given.pipeline.flushed == 3
    given.source.lines["a"] += b"2\n"
    given.pipeline.turn()
    assert given.pipeline.turn().committed is None, "what is read since waits"


def test_a_flush_is_wanted_until_what_was_held_is_committed(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    given.source.lines = {"a": b"1\n"}
    given.pipeline.turn()
    given.pipeline.flush(3)
    with monkeypatch.context() as refused:
        moved = PositionMovedError("another worker was faster")
        refused.setattr(TableHead, "commit", _raising(moved))
        assert given.pipeline.turn().committed is None
    assert given.pipeline.flushed == 0
    assert given.pipeline.turn().committed is not None, "it is read again, and committed at once"
    assert given.pipeline.flushed == 3


def test_a_flush_of_records_that_are_gone_is_fulfilled_by_their_gap(given: Given) -> None:
    given.source.lines = {"a": b"1\n2\n"}
    given.pipeline = given.another(records_gaps=True)
    given.pipeline.turn()
    given.pipeline.flush(3)
    given.pipeline.forget()
    given.source.oldest["a"] = 4
    given.pipeline.turn()
    assert given.pipeline.flushed == 3


def test_the_source_is_told_after_the_commit_and_not_before(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protocol R5: what was acknowledged may be deleted at once."""
    given.source.lines = {"a": b"1\n"}
    commit = TableHead.commit

    def failing(self: TableHead, transaction: Transaction) -> TransactionNumber:
        raise TableBusyError("busy")

    given.pipeline.turn()
    with monkeypatch.context() as patch:
        patch.setattr(TableHead, "commit", failing)
        with pytest.raises(TableBusyError):
            given.pipeline.turn(is_draining=True)
    assert given.source.acknowledged == []
    assert TableHead.commit is commit
    given.drain()
    assert given.source.acknowledged == [("a", 2)]


def test_where_a_feed_begins_is_asked_once_and_kept(given: Given) -> None:
    given.source.lines = {"a": b"old\nnew\n"}
    given.source.first = 4
    given.pipeline.turn()
    given.source.first = 8
    given.pipeline.forget()
    given.drain()
    assert given.values() == [b"new"]


def test_what_another_worker_took_is_not_taken_again(given: Given) -> None:
    given.source.lines = {"a": b"1\n2\n"}
    given.pipeline.turn()
    other = given.another()
    other.turn()
    other.turn(is_draining=True)
    assert given.pipeline.turn(is_draining=True).committed is None
    given.drain()
    assert given.values() == [b"1", b"2"]


def test_a_worker_that_is_refused_again_and_again_says_so(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    given.source.lines = {"a": b"1\n"}

    def refusing(self: TableHead, transaction: Transaction) -> TransactionNumber:
        raise PositionMovedError("moved")

    monkeypatch.setattr(TableHead, "commit", refusing)
    for _ in range(TRIES_MAX - 1):
        given.pipeline.turn()
        assert given.pipeline.turn(is_draining=True).committed is None
    given.pipeline.turn()
    with pytest.raises(PositionMovedError):
        given.pipeline.turn(is_draining=True)


def test_a_gap_stops_a_feed_or_is_recorded_as_its_policy_says(given: Given) -> None:
    given.source.lines = {"a": b"1\n2\n3\n"}
    given.drain()
    given.source.lines["a"] += b"4\n5\n"
    given.source.oldest["a"] = 8
    given.pipeline.forget()
    with pytest.raises(PositionGoneError, match="wanted=6 oldest=8"):
        given.pipeline.turn()
    given.pipeline = given.another(records_gaps=True)
    given.drain()
    assert given.values() == [b"1", b"2", b"3", b"5"]
    with given.table.head.reading() as state:
        known = connection_of(state, CONNECTION.id)
        assert known is not None
        (gap,) = gaps_of(state, known)
    assert (gap.first, gap.end) == (b"6", b"8")


def test_a_source_split_that_is_given_back_is_drained_then_released(given: Given) -> None:
    given.source.lines = {"a": b"1\n", "b": b"2\n"}
    given.pipeline.turn()
    given.owns.numbers = {"b": 1}
    given.source.lines["a"] += b"3\n"
    given.clock.advance(OWN_SECONDS)
    given.pipeline.turn()
    assert given.owns.released == [], "it holds a record of it"
    given.pipeline.turn(is_draining=True)
    given.clock.advance(OWN_SECONDS)
    given.pipeline.turn()
    assert given.owns.released == ["a"]
    assert given.values() == [b"1", b"2"], "and nothing more is read of it"


def test_a_source_split_that_is_owned_anew_is_read_from_what_is_committed(given: Given) -> None:
    given.source.lines = {"a": b"1\n2\n"}
    given.pipeline.turn()
    given.owns.numbers = {"a": 7}
    given.clock.advance(OWN_SECONDS)
    given.drain()
    assert given.source.opened == [("a", 0), ("a", 0)]
    assert given.values() == [b"1", b"2"]


def test_new_source_splits_are_found_while_others_are_read(given: Given) -> None:
    given.source.lines = {"a": b"1\n"}
    given.pipeline.turn()
    given.source.lines["b"] = b"2\n"
    given.clock.advance(DISCOVER_SECONDS - 1)
    given.pipeline.turn(is_draining=True)
    given.pipeline.turn()
    assert ("b", 0) not in given.source.opened
    given.clock.advance(1)
    given.drain()
    assert given.values() == [b"1", b"2"]


def test_no_source_split_keeps_another_from_being_read(given: Given) -> None:
    given.source.lines = {"a": b"x" * 98 + b"\n" + b"y\n" * 50, "b": b"2\n"}
    given.drain()
    assert b"2" in given.values()
    assert len(given.values()) == 52


def test_a_round_says_how_long_its_commit_took(
    given: Given, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SlowStage, "seconds", 2.5)
    given.source.lines = {"a": b"1\n"}
    with caplog.at_level(logging.INFO, logger="lakebed"):
        given.drain()
    (round_,) = [one for one in caplog.records if one.__dict__.get("event") == FEED_PROGRESSED]
    assert round_.__dict__["facts"]["commit_seconds"] == 2.5


def _raising(error: Exception) -> Callable[..., TransactionNumber]:
    def commit(*_: object) -> TransactionNumber:
        raise error

    return commit
