"""Pages that kernels write are, byte for byte, pyarrow's; where strings share little, what pyarrow
makes of their parts."""

import random
import zlib
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from lakebed.kernels.encoding import SORTED, UNBOUNDED, UNSORTED
from lakebed.parquet_bytes.arrow_chunks import encode_by_arrow
from lakebed.parquet_bytes.chunk_metadata import ColumnEncoding
from lakebed.parquet_bytes.column_encoding import ColumnEncoder, can_encode
from lakebed.parquet_bytes.encoded import EncodedChunk
from lakebed.parquet_bytes.footer import Codec, Encoding
from lakebed.parquet_bytes.thrift import Reader

LONG = [2**63 - 1, -(2**63), 0, 1, 7]
SHORT = [2**31 - 1, -(2**31), 0, 1, 7]
TEXTS = ["", "a", "a\0", "ab", "é", "shared" * 9, "shared" * 9 + "x", "\U0010ffff"]
SHARING = ["..", "..a", "..a\0", "..é", "shared" * 9, "shared" * 9 + "x", "..\U0010ffff"]
CASES: list[tuple[pa.DataType, list[Any], Encoding]] = [
    (pa.int64(), LONG, Encoding.DELTA_BINARY_PACKED),
    (pa.timestamp("us", "UTC"), LONG, Encoding.DELTA_BINARY_PACKED),
    (pa.time64("us"), [0, 5, 86_399_999_999], Encoding.DELTA_BINARY_PACKED),
    (pa.int32(), SHORT, Encoding.DELTA_BINARY_PACKED),
    (pa.date32(), SHORT, Encoding.DELTA_BINARY_PACKED),
    (pa.uint32(), [0, 2**32 - 1, 2**31], Encoding.DELTA_BINARY_PACKED),
    (pa.int16(), [-(2**15), 2**15 - 1, 0], Encoding.DELTA_BINARY_PACKED),
    (pa.uint16(), [0, 2**16 - 1], Encoding.DELTA_BINARY_PACKED),
    (pa.int8(), [-128, 127], Encoding.DELTA_BINARY_PACKED),
    (pa.uint8(), [0, 255], Encoding.DELTA_BINARY_PACKED),
    (pa.float64(), [0.0, -0.0, 1e300, float("inf")], Encoding.PLAIN),
    (pa.float32(), [0.0, -0.0, 1.5, float("inf")], Encoding.PLAIN),
    (pa.string(), SHARING, Encoding.DELTA_BYTE_ARRAY),
    (pa.binary(), [b"\0\0", b"\0\0\xff", b"\0" * 70], Encoding.DELTA_BYTE_ARRAY),
    (pa.string(), TEXTS, Encoding.RLE_DICTIONARY),
    (pa.string(), [f"word-{n}" for n in range(300)], Encoding.RLE_DICTIONARY),
    (pa.binary(), [b"one value"], Encoding.RLE_DICTIONARY),
]
PAGE = 100


def column_of(type_: pa.DataType, values: list[Any], rows: int) -> pa.Array:
    rng = random.Random(rows)
    found = [rng.choice(values) for _ in range(rows)]
    if pa.types.is_temporal(type_):
        whole = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(found, whole).cast(type_)
    return pa.array(found, type_)


def ours(column: ColumnEncoding, array: pa.Array, step: int) -> EncodedChunk:
    pieces = [array.slice(at, step) for at in range(0, len(array), step)]
    return encoded(column, Codec.UNCOMPRESSED, pieces)


def encoded(
    column: ColumnEncoding, codec: Codec, pieces: Sequence[pa.Array], page: int = PAGE
) -> EncodedChunk:
    chunk = ColumnEncoder(zstd_level=1).encode(column, codec, pieces, page)
    assert chunk is not None
    return chunk


def pyarrows(column: ColumnEncoding, array: pa.Array) -> EncodedChunk:
    schema = pa.schema([pa.field(column.name, column.type, column.nullable)])
    has_dictionary = column.encoding == Encoding.RLE_DICTIONARY
    written = {"column_encoding": {column.name: column.encoding.name}, "use_dictionary": False}
    options = {
        "compression": "none",
        **({"use_dictionary": True} if has_dictionary else written),
        "write_statistics": [column.name] if column.bounds != UNBOUNDED else [],
        "write_page_index": True,
        "write_page_checksum": True,
        "max_rows_per_page": PAGE,
        "write_batch_size": PAGE,
    }
    (chunk,) = encode_by_arrow(pa.Table.from_arrays([array], schema=schema), options)
    return chunk


def bodies(chunk: EncodedChunk) -> list[bytes]:
    """What stands behind the headers of pages that are not compressed."""
    raw = bytes(chunk.raw)
    found = []
    for at, size in zip(*located(chunk)[:2], strict=True):
        header = Reader(raw, at)
        header.struct()
        found.append(raw[header.at : at + size])
    return found


def by_pyarrow(array: pa.Array, encoding: Encoding) -> bytes:
    """What pyarrow makes of values without nulls, one page or less."""
    column = ColumnEncoding("c", array.type, False, encoding)
    (body,) = bodies(pyarrows(column, array))
    return body


def located(chunk: EncodedChunk) -> list[list[int]]:
    assert chunk.pages is not None
    pages = chunk.pages
    return [pages.offsets.tolist(), pages.sizes.tolist(), pages.first_rows.tolist()]


def byte_counts(chunk: EncodedChunk) -> list[int] | None:
    assert chunk.pages is not None
    counts = chunk.pages.byte_counts
    return None if counts is None else counts.tolist()


@pytest.mark.parametrize("rows", [1, 2, 33, 99, 100, 101, 129, 257, 1000])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2].name}")
def test_pages_statistics_and_indexes_are_pyarrows(
    case: tuple[pa.DataType, list[Any], Encoding], rows: int
) -> None:
    type_, values, encoding = case
    array = column_of(type_, values, rows)
    assert can_encode(type_, encoding)
    for nullable in (False, True):
        bounds = UNBOUNDED if nullable or pa.types.is_unsigned_integer(type_) else UNSORTED
        bounds = UNBOUNDED if encoding in (Encoding.PLAIN, Encoding.RLE_DICTIONARY) else bounds
        column = ColumnEncoding("c", type_, nullable, encoding, bounds)
        chunk, wanted = ours(column, array, 70), pyarrows(column, array)
        assert chunk.raw == wanted.raw
        assert located(chunk) == located(wanted)
        assert chunk.bounds == wanted.bounds
        if encoding == Encoding.DELTA_BYTE_ARRAY:  # pyarrow counts bytes wrongly: left out
            assert chunk.metadata.pop(16)[1].need(1, 6) == sum(byte_counts(chunk) or [])
            assert 1 not in wanted.metadata.pop(16)[1]
            assert byte_counts(wanted) is None
        else:
            assert byte_counts(chunk) == byte_counts(wanted)
        assert chunk.metadata == wanted.metadata


RUNS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=60)


@settings(max_examples=60)
@given(RUNS, st.booleans())
def test_runs_in_dictionary_columns_are_pyarrows(
    runs: list[tuple[int, int]], nullable: bool
) -> None:
    array = pa.array([f"{value}" for value, times in runs for _ in range(times)])
    column = ColumnEncoding("c", pa.string(), nullable, Encoding.RLE_DICTIONARY)
    assert ours(column, array, 70).raw == pyarrows(column, array).raw


def beginning(pair: tuple[bytes, bytes]) -> int:
    """How many first bytes two strings share."""
    return len(list(takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False))))


LITTLE = st.sampled_from([st.text(max_size=3), st.text("ab", max_size=70), st.sampled_from(TEXTS)])


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_strings_share_beginnings_where_that_is_a_byte_each_else_nothing(
    draw: st.DataObject,
) -> None:
    texts = draw.draw(st.lists(draw.draw(LITTLE), min_size=1, max_size=60)) * 3
    nulls = draw.draw(st.sets(st.integers(0, len(texts) - 1)))
    rows = pa.array([None if n in nulls else text for n, text in enumerate(texts)], pa.string())
    column = ColumnEncoding("c", pa.string(), True, Encoding.DELTA_BYTE_ARRAY)
    for page, body in enumerate(bodies(ours(column, rows, draw.draw(st.sampled_from([7, 70]))))):
        values = rows.slice(page * PAGE, PAGE).drop_null()
        raw = [text.encode() for text in values.to_pylist()]
        shared = sum(map(beginning, pairwise(raw)))
        wanted = by_pyarrow(values, Encoding.DELTA_BYTE_ARRAY) if raw else None
        if shared < len(raw):
            zeros = pa.array([0] * len(raw), pa.int32())
            wanted = by_pyarrow(zeros, Encoding.DELTA_BINARY_PACKED)
            wanted += by_pyarrow(values, Encoding.DELTA_LENGTH_BYTE_ARRAY)
        levels = 4 + int.from_bytes(body[:4], "little")
        assert wanted is None or body[levels:] == wanted


def test_nulls_have_no_place_in_a_dictionary() -> None:
    array = pa.array([None if n % 3 else f"{n % 7}" for n in range(1000)])
    column = ColumnEncoding("c", pa.string(), True, Encoding.RLE_DICTIONARY)
    chunk, wanted = ours(column, array, 70), pyarrows(column, array)
    assert located(chunk)[2] == located(wanted)[2]
    assert byte_counts(chunk) == byte_counts(wanted)
    assert chunk.metadata[16] == wanted.metadata[16]


@pytest.mark.parametrize("size", [0, 400])
def test_too_many_strings_for_a_dictionary_are_for_pyarrow(size: int) -> None:
    array = pa.array([f"{n:09}" + size * "x" for n in range(9000)])
    column = ColumnEncoding("c", pa.string(), False, Encoding.RLE_DICTIONARY)
    encoder = ColumnEncoder(zstd_level=1)
    assert encoder.encode(column, Codec.ZSTD, [array.slice(0, 2000)], 1000) is not None
    assert encoder.encode(column, Codec.ZSTD, [array.slice(0, 9000 - 10 * size)], 1000) is None


@pytest.mark.parametrize("encoding", [Encoding.DELTA_BYTE_ARRAY, Encoding.RLE_DICTIONARY])
@pytest.mark.parametrize("codec", Codec)
def test_checksums_are_those_of_whole_pages(codec: Codec, encoding: Encoding) -> None:
    array = pa.array([f"{n % 7}{'x' * (n % 90)}" for n in range(350)])
    chunk = encoded(ColumnEncoding("c", pa.string(), False, encoding), codec, [array])
    assert chunk.checksums is not None
    ends = [*located(chunk)[0][encoding != Encoding.RLE_DICTIONARY :], chunk.size]
    assert chunk.checksums.tolist() == [
        zlib.crc32(chunk.raw[at:end]) for at, end in pairwise([0, *ends])
    ]


def test_chunks_stay_until_they_are_forgotten_though_memory_is_used_again() -> None:
    encoder = ColumnEncoder(zstd_level=1)
    column = ColumnEncoding("c", pa.float64(), False, Encoding.PLAIN)

    def of_number(number: int) -> EncodedChunk:  # 2.4 MB
        array = pa.array([number / 3] * 300_000)
        chunk = encoder.encode(column, Codec.UNCOMPRESSED, [array], 9999)
        assert chunk is not None
        return chunk

    for _ in range(2):
        encoder.forget()
        chunks = [of_number(number) for number in range(3)]
        assert len({bytes(chunk.raw) for chunk in chunks}) == 3
        zeros = pa.array([0.0] * 300_000)
        assert chunks[0].raw == encoded(column, Codec.UNCOMPRESSED, [zeros], 9999).raw


def test_bytes_of_strings_are_counted() -> None:
    array = pa.array(["ab", "abc", "", "é"] * 30)
    column = ColumnEncoding("c", pa.string(), False, Encoding.DELTA_BYTE_ARRAY)
    assert byte_counts(ours(column, array, 7)) == [7 * 25, 7 * 5]


def test_first_and_last_are_the_bounds_of_pages_that_are_sorted() -> None:
    array = pa.array(sorted(f"{n:04}" for n in range(350)))
    column = ColumnEncoding("c", pa.string(), False, Encoding.DELTA_BYTE_ARRAY, SORTED)
    assert ours(column, array, 60).bounds == pyarrows(column, array).bounds


@pytest.mark.parametrize(
    ("type_", "encoding"),
    [
        (pa.bool_(), Encoding.PLAIN),
        (pa.string(), Encoding.PLAIN),
        (pa.string(), Encoding.DELTA_LENGTH_BYTE_ARRAY),
        (pa.float16(), Encoding.PLAIN),
        (pa.decimal128(9, 2), Encoding.PLAIN),
        (pa.list_(pa.int64()), Encoding.DELTA_BINARY_PACKED),
        (pa.int64(), Encoding.PLAIN),
    ],
)
def test_other_types_are_for_pyarrow(type_: pa.DataType, encoding: Encoding) -> None:
    assert not can_encode(type_, encoding)
