"""OffsetIndexes that are read at once are what Thrift reads, or are left to it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.parquet_bytes.assembling import encode_pages
from lakebed.parquet_bytes.page_index import EncodedPages
from lakebed.parquet_bytes.thrift import I32, I64, STRUCT, MalformedError, Reader
from lakebed.parquet_bytes.usual_pages import usual_pages

SIZES = st.lists(
    st.tuples(st.integers(1, 2**20), st.integers(1, 5000), st.integers(0, 2**30)),
    min_size=1,
    max_size=40,
)


def index_of(pages: list[tuple[int, int, int]], start: int, *, is_text: bool) -> bytes:
    sizes, rows, counts = np.array(pages, np.int64).T
    ends, last = np.cumsum(sizes), np.cumsum(rows)
    given_ = EncodedPages(ends - sizes, sizes, last - rows, counts if is_text else None)
    (raw,) = encode_pages([(given_, start)])
    assert raw is not None
    return raw


def told(pages: EncodedPages, start: int) -> list[list[int]]:
    lists = [pages.offsets + start, pages.sizes, pages.first_rows]
    return [found.tolist() for found in lists] + (
        [] if pages.byte_counts is None else [pages.byte_counts.tolist()]
    )


def by_thrift(raw: bytes) -> list[list[int]] | None:
    reader = Reader(raw)
    try:
        fields = reader.struct()
        pages = fields.listed(1, STRUCT) or []
        lists = [
            [page.need(field, kind) for page in pages]
            for field, kind in ((1, I64), (2, I32), (3, I64))
        ]
        counts = fields.listed(2, I64)
    except MalformedError:
        return None
    return lists if counts is None else [*lists, counts]


@given(SIZES, st.booleans(), st.integers(4, 2**40))
def test_what_is_usual_is_read(
    pages: list[tuple[int, int, int]], is_text: bool, start: int
) -> None:
    raw = index_of(pages, start, is_text=is_text)
    end, rows = start + sum(page[0] for page in pages), sum(page[1] for page in pages)
    found = usual_pages(raw, start, end, rows)
    assert found is not None
    assert told(found, start) == by_thrift(raw)
    assert usual_pages(raw, start + 1, end, rows) is None
    assert usual_pages(raw, start, end - 1, rows) is None
    assert usual_pages(raw, start, end, rows - pages[-1][1]) is None or len(pages) == 1


@settings(max_examples=300)
@given(SIZES, st.booleans(), st.data())
def test_a_wrong_byte_is_noticed_or_read_as_thrift_reads_it(
    pages: list[tuple[int, int, int]], is_text: bool, data: st.DataObject
) -> None:
    raw = bytearray(index_of(pages, 4, is_text=is_text))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else raw
    found = usual_pages(bytes(cut), 0, 2**40, 2**40)
    if found is not None:
        assert told(found, 0) == by_thrift(bytes(cut))
