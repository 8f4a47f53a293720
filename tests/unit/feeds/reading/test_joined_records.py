"""Small answers of a source become one before rows are made of them; what becomes of each record
stays what it was."""

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from lakebed.decoding.engines import PlainDecoder
from lakebed.feeds.reading import joined_records
from lakebed.feeds.reading.joined_records import joined, small_together
from lakebed.ports.record_source import Records
from tests.unit.feeds.pacing.fed_under_policy import Fed, StreamReader


def records(
    begin: int,
    count: int,
    size: int,
    items: tuple[bytes, ...] = (),
    item_counts: tuple[int, ...] = (),
) -> Records[list[int]]:
    end = begin + count
    return Records(
        begin=begin,
        end=end,
        count=count,
        size=size,
        batch=list(range(begin, end)),
        resume=b"%d" % end,
        items=items,
        item_counts=item_counts,
    )


def concat(batches: object) -> list[int]:
    assert isinstance(batches, list)
    return [one for batch in batches for one in batch]


def test_only_what_is_small_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_records, "JOINED_BYTES", 10)
    given = [records(n, 1, size) for n, size in enumerate([4, 6, 1, 12, 9, 1, 1])]
    assert [[one.size for one in some] for some in small_together(given)] == [
        [4, 6],
        [1],
        [12],
        [9, 1],
        [1],
    ]
    assert small_together([]) == []


def test_what_is_one_has_all_that_its_parts_had() -> None:
    given = [records(5, 2, 10), records(7, 3, 20)]
    found = joined(given, concat)
    assert (found.begin, found.end, found.count, found.size) == (5, 10, 5, 30)
    assert (found.batch, found.resume) == ([5, 6, 7, 8, 9], b"10")
    assert (found.items, found.item_counts) == ((), ())
    assert joined(given[:1], concat) is given[0]


def test_items_keep_their_records() -> None:
    one_each = records(0, 2, 1, items=(b"a", b"b"))
    several = records(2, 3, 1, items=(b"c", b"d"), item_counts=(1, 2))
    assert joined([one_each, one_each], concat).item_counts == ()
    found = joined([one_each, several], concat)
    assert (found.items, found.item_counts) == ((b"a", b"b", b"c", b"d"), (1, 1, 1, 2))


POLICY = """[policy.own]
errors_in_row_max = 3
rotate_idle_seconds = 3600
rotate_seconds = 3600
"""


def fed_by(folder: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> tuple[Fed, int]:
    """Feed records of which some are bad, so many with a read. Returns how often they were
    decoded, too."""
    monkeypatch.setattr(StreamReader, "at_once", at_once)
    decoded = 0
    decode = PlainDecoder.decode

    def counted(self: PlainDecoder, batch: pa.RecordBatch, *, source_split: str) -> object:
        nonlocal decoded
        decoded += 1
        return decode(self, batch, source_split=source_split)

    fed = Fed(folder, "own", POLICY)
    monkeypatch.setattr(PlainDecoder, "decode", counted)
    fed.source.bad = lambda position: b"bad" if position % 7 == 0 else b""
    fed.take(100)
    monkeypatch.setattr(PlainDecoder, "decode", decode)
    return fed, decoded


def test_many_small_reads_are_decoded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, decoded = fed_by(tmp_path / "small", monkeypatch, 1)
    assert decoded == 1
    large, _ = fed_by(tmp_path / "large", monkeypatch, 100)
    assert replace(small.tally(), bytes=0) == replace(large.tally(), bytes=0)
    assert small.rows() == large.rows() == 85
    small.lake.close()
    large.lake.close()
