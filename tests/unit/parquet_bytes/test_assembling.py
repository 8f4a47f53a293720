"""Page indexes of many chunks, written at once, are what Thrift says of each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakebed.parquet_bytes.assembling import encode_pages
from lakebed.parquet_bytes.encoded import listed
from lakebed.parquet_bytes.page_index import EncodedPages
from lakebed.parquet_bytes.thrift import I32, I64, STRUCT, Struct, encode_struct

NUMBERS = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**20, 2**31 - 1]) | st.integers(0, 2**31 - 1)
ROWS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
CHUNKS = st.lists(
    st.none()
    | st.tuples(st.lists(ROWS, max_size=20), st.booleans(), st.integers(0, 2**40) | st.just(2**61)),
    max_size=5,
)


@given(CHUNKS)
def test_offset_indexes_are_structs(
    chunks: list[tuple[list[tuple[int, int, int, int]], bool, int] | None],
) -> None:
    given_, wanted = [], []
    for chunk in chunks:
        if chunk is None:
            given_.append((None, 7))
            wanted.append(None)
            continue
        pages, is_text, start = chunk
        offsets, sizes, rows, counts = np.array(pages, np.int64).reshape(-1, 4).T
        encoded = EncodedPages(offsets, sizes, rows, counts if is_text else None)
        given_.append((encoded, start))
        fields = Struct({1: listed(STRUCT, [located(start, page) for page in pages])})
        if is_text:
            fields[2] = listed(I64, [page[3] for page in pages])
        wanted.append(encode_struct(fields))
    assert encode_pages(given_) == wanted


def located(start: int, page: tuple[int, int, int, int]) -> Struct:
    return Struct({1: (I64, start + page[0]), 2: (I32, page[1]), 3: (I64, page[2])})
