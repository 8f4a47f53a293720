"""Every source of records keeps the promises of the port; a source that does not is seen."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import ClassVar

import msgspec
import pyarrow as pa
import pytest

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.memory.record_source import (
    MemoryReader,
    MemoryRecordSource,
    MemorySplit,
)
from lakebed.backends.system import SystemClock
from lakebed.decoding.listed_objects import ListedObjectReader
from lakebed.errors import UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.source_kit import (
    CHECKS,
    ITEM_CHECKS,
    Check,
    NotOfferedError,
    SourceTrial,
    checks,
    item_checks,
)
from tests.contracts.sources.trials import (
    FileTrial,
    FolderTrial,
    KafkaTrial,
    MemoryTrial,
    PushTrial,
    S3Trial,
    SqsTrial,
)

ORDERED = ("files", "memory", "kafka_mock", pytest.param("kafka", marks=pytest.mark.slow))
LEFT_OUT = {
    "files": {
        checks.a_lost_connection_passes_no_record_over,
        checks.a_position_that_is_gone_is_an_error_with_both_ends,  # tests/unit/backends
        checks.holes_are_passed,
    },
    "kafka_mock": {
        checks.a_lost_connection_passes_no_record_over,
        checks.a_position_that_is_gone_is_an_error_with_both_ends,
        checks.holes_are_passed,
        checks.what_is_made_anew_is_another_source_split,
    },
}
"""What cannot be done to a source. Every other check must run."""


UNORDERED = (
    "folder",
    "s3",
    "pushed",
    "pushed_s3",
    "sqs",
    pytest.param("elasticmq", marks=pytest.mark.slow),
)


@pytest.fixture(params=UNORDERED)
def item_trial(request: pytest.FixtureRequest, tmp_path: Path) -> SourceTrial:
    if request.param == "folder":
        return FolderTrial(tmp_path)
    if request.param == "s3":
        return S3Trial(tmp_path, request.getfixturevalue("ministack"))
    if request.param == "pushed":
        return PushTrial(LocalObjectStore(tmp_path, SystemClock()))
    if request.param == "pushed_s3":
        server = request.getfixturevalue("ministack")
        return PushTrial(server.store(server.new_prefix()))
    server = "ministack" if request.param == "sqs" else "elasticmq"
    return SqsTrial(request.getfixturevalue(server))


@pytest.mark.parametrize("check", ITEM_CHECKS, ids=lambda check: check.__name__)
def test_a_source_without_order_keeps_its_promise(item_trial: SourceTrial, check: Check) -> None:
    check(item_trial)


@pytest.fixture(params=ORDERED)
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> SourceTrial:
    if request.param == "files":
        return FileTrial(tmp_path)
    if request.param == "memory":
        return MemoryTrial()
    return KafkaTrial(request.getfixturevalue(request.param))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_source_keeps_its_promise(
    trial: SourceTrial, check: Check, request: pytest.FixtureRequest
) -> None:
    left_out = LEFT_OUT.get(request.node.callspec.params["trial"], set())
    try:
        check(trial)
    except NotOfferedError:
        assert check in left_out
    else:
        assert check not in left_out


class OtherRecords(MemoryReader):
    """Gives other records where somebody has read before."""

    seen: ClassVar[set[int]] = set()

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        records = super().read(bytes_max=bytes_max)
        if records is None or records.begin not in self.seen:
            self.seen.add(-1 if records is None else records.begin)
            return records
        values = pa.array([b"other"] * records.count, pa.binary())
        batch = records.batch.set_column(0, records.batch.schema.field(0), values)
        return msgspec.structs.replace(records, batch=batch)


class EarliestInstead(MemoryReader):
    """Goes on behind a gap and says nothing."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        try:
            return super().read(bytes_max=bytes_max)
        except PositionGoneError as error:
            self._next = error.end
            return super().read(bytes_max=bytes_max)


class ByName(MemoryReader):
    """Takes a source split that was made anew for the old one."""

    def _found(self) -> MemorySplit | None:
        return self._broker.splits.get(self._split.title)


class Denying(MemoryReader):
    """Takes no answer for an answer, and goes on behind what it never got."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        try:
            return super().read(bytes_max=bytes_max)
        except UnavailableError:
            self._next += 1
            raise


class Counting(MemoryReader):
    """Counts records where positions have holes."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        records = super().read(bytes_max=bytes_max)
        if records is None:
            return None
        self._next = records.begin + records.count
        return msgspec.structs.replace(records, end=self._next)


class Believing(MemoryReader):
    """Believes what was acknowledged, wherever it is asked to begin."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        self._next = max(self._next, self._broker.acknowledged.get(self._split.name, 0))
        return super().read(bytes_max=bytes_max)


class Greedy(MemoryReader):
    """Gives more than is asked for."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        return super().read(bytes_max=1 << 30)


KNOWN_BAD: list[tuple[type[MemoryReader], Check]] = [
    (OtherRecords, checks.a_position_gives_the_same_records_in_any_process),
    (EarliestInstead, checks.a_position_that_is_gone_is_an_error_with_both_ends),
    (ByName, checks.what_is_made_anew_is_another_source_split),
    (Denying, checks.a_lost_connection_passes_no_record_over),
    (Counting, checks.holes_are_passed),
    (Believing, checks.acknowledging_does_no_harm),
    (Greedy, checks.all_records_come_in_order_in_batches_of_any_size),
]


@pytest.mark.parametrize(("reader", "check"), KNOWN_BAD, ids=lambda each: each.__name__)
def test_a_source_that_breaks_its_promise_fails(reader: type[MemoryReader], check: Check) -> None:
    class Source(MemoryRecordSource):
        def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> MemoryReader:
            return reader(self._broker, split, begin, self._ask)

    class Trial(MemoryTrial):
        make = Source

    OtherRecords.seen.clear()
    with pytest.raises(AssertionError):
        check(Trial())


Read = Callable[[], Records[pa.RecordBatch] | None]
_numbers = count()


def renamed(read: Read) -> Records[pa.RecordBatch] | None:
    """Give items other names each time."""
    records = read()
    if records is None:
        return None
    items = tuple(next(_numbers).to_bytes(16) for _ in records.items)
    return msgspec.structs.replace(records, items=items)


def repeated(read: Read) -> Records[pa.RecordBatch] | None:
    """Give what was given first in place of what comes next."""
    records = read()
    if records is not None and records.begin > 100:
        return msgspec.structs.replace(records, items=(b"\0" * 16,) * len(records.items))
    return records


def uncounted(read: Read) -> Records[pa.RecordBatch] | None:
    """Leave out how many records each item has."""
    records = read()
    return None if records is None else msgspec.structs.replace(records, item_counts=())


def kept(read: Read) -> Records[pa.RecordBatch] | None:
    """Give nothing after the first answer."""
    records = read()
    return records if records is not None and records.begin in {0, 100} else None


KNOWN_BAD_ITEMS: list[tuple[Callable[[Read], Records[pa.RecordBatch] | None], Check]] = [
    (renamed, item_checks.an_item_has_the_same_name_and_records_when_it_comes_again),
    (repeated, item_checks.every_record_comes_once_to_a_reader_with_its_item),
    (uncounted, item_checks.every_record_comes_once_to_a_reader_with_its_item),
    (kept, item_checks.what_is_written_later_has_other_items),
]


@pytest.mark.parametrize(("answer", "check"), KNOWN_BAD_ITEMS, ids=lambda each: each.__name__)
def test_a_source_without_order_that_breaks_its_promise_fails(
    answer: Callable[[Read], Records[pa.RecordBatch] | None],
    check: Check,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = ListedObjectReader.read

    def read(
        self: ListedObjectReader, *, bytes_max: int, wait_seconds: float = 0.0
    ) -> Records[pa.RecordBatch] | None:
        return answer(lambda: real(self, bytes_max=bytes_max, wait_seconds=wait_seconds))

    monkeypatch.setattr(ListedObjectReader, "read", read)
    with pytest.raises(AssertionError):
        check(FolderTrial(tmp_path))
