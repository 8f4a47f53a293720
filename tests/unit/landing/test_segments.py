"""A segment says whether it is whole, and by whom it can be read. As a source it is taken once, has
its order of the landing, and is deleted by its name (protocol R8, R10, R11)."""

from pathlib import Path

import msgspec
import pytest

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.errors import CorruptError, InvalidError, NewerFormatError, UnavailableError
from lakebed.landing.push.segment_source import SPLIT, SegmentReader, SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import (
    HEAD_BYTES,
    MAGIC,
    Framing,
    Segment,
    _digest,
    decode_segment,
    encode_segment,
    prefix_of_key,
    received_in,
    record_count,
    segment_of_key,
    segment_without_key,
)
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import Micros
from lakebed.model.paths import SegmentName, segment_path, segments_prefix
from lakebed.ports.record_source import SourceSplit

CONNECTION = connection_id("fe" * 16)
GOLDEN = Path(__file__).with_name("segment-1")
"""As release 0.3 writes it: every later one reads it."""


def some_segment() -> Segment:
    return segment_of_key(b"key", "lines", Micros(1_767_225_600_000_000), b'{"a": 1}\n{"a": 2}\n')


def test_a_segment_of_the_first_form_is_written_and_read_for_ever() -> None:
    assert decode_segment(GOLDEN.read_bytes(), "p") == some_segment()
    assert encode_segment(some_segment()) == GOLDEN.read_bytes()


def test_a_segment_that_is_cut_or_damaged_anywhere_is_not_read() -> None:
    whole = encode_segment(some_segment())
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            with pytest.raises(CorruptError, match="path=p"):
                decode_segment(damaged, "p")


def test_a_segment_of_a_newer_release_says_so() -> None:
    packed = msgspec.msgpack.encode([2, {"any": "thing"}])
    with pytest.raises(NewerFormatError, match="form=2"):
        decode_segment(MAGIC + _digest(16, packed) + packed, "p")
    packed = msgspec.msgpack.encode([1, {"any": "thing"}])
    with pytest.raises(CorruptError, match="cannot be read"):
        decode_segment(MAGIC + _digest(16, packed) + packed, "p")


def test_key_and_body_name_an_item() -> None:
    one = segment_of_key(b"key", "lines", Micros(1), b"a")
    again = segment_of_key(b"key", "lines", Micros(2), b"a")
    other = segment_of_key(b"key", "lines", Micros(1), b"b")
    whole = segment_of_key(b"key", "whole", Micros(1), b"a")
    assert one.item == again.item
    assert len({one.item, other.item, whole.item}) == 3
    prefix = prefix_of_key(b"key")
    assert all(each.item.startswith(prefix) for each in (one, other, whole))
    assert not segment_of_key(b"key2", "lines", Micros(1), b"a").item.startswith(prefix)
    assert segment_without_key(7, "lines", Micros(1), b"a").item == bytes(15) + b"\7"


@pytest.mark.parametrize(
    ("framing", "body", "count"),
    [("lines", b"a", 1), ("lines", b"a\n", 1), ("lines", b"\n\n", 2), ("whole", b"a\nb", 1)],
)
def test_records_are_counted_as_they_are_cut(framing: Framing, body: bytes, count: int) -> None:
    assert record_count(framing, body) == count


class World:
    """Segments, and workers that read them."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.objects = MemoryObjectStore(self.clock)
        self.store = SegmentStore(self.objects, CONNECTION)
        self.taken: set[bytes] = set()
        self.written = 0

    def put(self, body: bytes = b"a\nb\n", framing: Framing = "lines") -> Segment:
        self.written += 1
        segment = segment_without_key(self.written << 64, framing, self.clock.now(), body)
        self.store.put(segment)
        return segment

    def reader(self, begin: int = 0) -> SegmentReader:
        source = SegmentSource(self.store, clock=self.clock, is_taken=self.taken.__contains__)
        return source.open(SPLIT, begin)

    def items(self) -> set[bytes]:
        return {name.item for name in self.store.names(99)}


@pytest.fixture
def world() -> World:
    return World()


def named(segment: Segment) -> SegmentName:
    return SegmentName(segment.item, len(encode_segment(segment)))


def read(reader: SegmentReader) -> list[bytes]:
    records = reader.read(bytes_max=1_000, wait_seconds=1)
    return [] if records is None else records.batch["value"].to_pylist()


def test_records_are_as_they_came_and_positions_count_on_from_the_committed_one(
    world: World,
) -> None:
    segment = world.put(b"a\n\n\r\n{")
    world.put(b"x\ny", "whole")
    records = world.reader(40).read(bytes_max=1_000)
    assert records is not None
    assert records.batch["value"].to_pylist() == [b"a", b"", b"\r", b"{", b"x\ny"]
    assert (records.begin, records.end, records.item_counts) == (40, 45, (4, 1))
    assert records.batch["position"].to_pylist() == [40, 41, 42, 43, 44]
    times = records.batch["time"].cast("int64").to_pylist()
    assert times[0] == segment.received


def test_exactly_what_was_committed_is_deleted(world: World) -> None:
    first, reader = world.put(), world.reader()
    assert read(reader)
    second = world.put(b"c\n")
    assert read(reader) == [b"c"]
    third = world.put()
    reader.acknowledge(2)
    assert world.items() == {second.item, third.item}
    assert first.item not in world.items()
    reader.acknowledge(3)
    assert world.items() == {third.item}


def test_what_is_found_again_after_a_crash_is_known_and_deleted(world: World) -> None:
    segment, other = world.put(), world.put(b"c\n")
    world.taken.add(segment.item)
    reader = world.reader()
    assert read(reader) == [b"c"]
    assert read(reader) == []
    assert world.items() == {other.item}


def test_what_cannot_be_deleted_now_is_deleted_later_and_not_given_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put()
    reader = world.reader()
    assert read(reader)

    def away(_: object) -> None:
        raise UnavailableError("away")

    with monkeypatch.context() as patched:
        patched.setattr(world.objects, "delete", away)
        reader.acknowledge(2)
        assert read(reader) == []
    assert world.items()
    assert read(reader) == []
    assert world.items() == set()


def test_a_segment_that_goes_between_listing_and_reading_is_passed_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, there = world.put(), world.put(b"c\n")
    listed = [named(gone), named(there)]
    world.store.delete([named(gone)])
    monkeypatch.setattr(world.store, "names", lambda _: iter(listed))
    assert read(world.reader()) == [b"c"]


def test_a_damaged_segment_stops_the_feed_after_what_came_before_it(world: World) -> None:
    world.put()
    item = world.put().item
    (path,) = [p for p in world.objects.list("") if item.hex() in p]
    world.objects.delete([path])
    writer = world.objects.create(path)
    writer.write(b"half of it")
    writer.finish()
    reader = world.reader()
    assert read(reader) == [b"a", b"b"]
    for _ in range(2):
        with pytest.raises(CorruptError, match=item.hex()):
            read(reader)


def test_a_segment_under_another_name_is_not_landed(world: World) -> None:
    segment = world.put()
    writer = world.objects.create(
        segment_path(CONNECTION, SegmentName(bytes(16), len(encode_segment(segment))))
    )
    writer.write(encode_segment(segment))
    writer.finish()
    with pytest.raises(CorruptError, match="another's name"):
        read(world.reader())


@pytest.mark.parametrize(
    "name",
    ["README", "AB" * 16 + "-9", "ab" * 15 + "-9", "zz" * 16 + "-9", "ab" * 16, "ab" * 16 + "-x"],
)
def test_what_is_not_named_as_segments_are_is_neither_read_nor_deleted(
    world: World, name: str
) -> None:
    path = segments_prefix(CONNECTION)
    writer = world.objects.create(path + name)
    writer.write(b"not ours")
    writer.finish()
    world.put()
    reader = world.reader()
    assert read(reader) == [b"a", b"b"]
    reader.acknowledge(2)
    assert list(world.objects.list("")) == [path + name]


def test_a_source_split_of_another_source_is_refused(world: World) -> None:
    with pytest.raises(InvalidError, match="no such source split"):
        SegmentSource(world.store, clock=world.clock).open(SourceSplit("x", "x"), 0)


@pytest.mark.parametrize("framing", ["lines", "lengths", "whole"])
@pytest.mark.parametrize("received", [0x81, 40_000, 1 << 20, 1_790_000_000_000_000])
def test_the_head_of_a_segment_says_when_it_came(framing: Framing, received: int) -> None:
    segment = segment_without_key(7, framing, Micros(received), b"")
    assert received_in(encode_segment(segment)[:HEAD_BYTES]) == received
    assert received_in(encode_segment(segment)) == received


def test_a_head_that_is_none_says_nothing() -> None:
    good = encode_segment(segment_without_key(7, "lines", Micros(1 << 50), b"x" * 90))
    for head in (b"", good[:30], good[:58], b"x" + good[1:], good[:58] + b"\x00" * 30, good[:63]):
        assert received_in(head[:HEAD_BYTES]) is None
