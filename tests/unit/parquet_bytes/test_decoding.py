"""Decoded pages are what pyarrow reads from the same file, or nothing."""

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.kernels.toolchain.presence import available
from lakebed.parquet_bytes.footer import Footer
from lakebed.parquet_bytes.page_index import pages_of

if not available():
    pytest.skip("kernels need numba", allow_module_level=True)

from lakebed.parquet_bytes.decoding import (
    RowGroupPages,
    address_of,
    decode_dictionary,
    flat_of,
    page_locations,
)

TEXTS = ["", "a", "ab", "abc" * 20, "\0", "ü", "日本", "prefix", "prefixed", "b" * 300]
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "string": (pa.string(), st.sampled_from(TEXTS) | st.text(max_size=40)),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "unlike": (pa.string(), st.text(max_size=3)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint16": (pa.uint16(), st.integers(0, 65535)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)),
    "date": (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    "time": (pa.time64("us"), st.integers(0, 86_399_999_999)),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-(2**62), 2**62)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "small_decimal": (pa.decimal128(3, 0), st.integers(-999, 999).map(Decimal)),
    "large_decimal": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
}
ENCODINGS: dict[str, tuple[str, ...]] = {
    "string": ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "dictionary"),
    "binary": ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "dictionary"),
    "unlike": ("DELTA_BYTE_ARRAY",),
    "float32": ("PLAIN",),
    "float64": ("PLAIN",),
    "bool": ("PLAIN",),
    "decimal": ("PLAIN",),
    "small_decimal": ("PLAIN",),
    "large_decimal": ("PLAIN",),
}


def written(column: pa.Array, encoding: str, *, optional: bool = True, **options: object) -> bytes:
    schema = pa.schema([pa.field("x", column.type, optional)])
    table = pa.Table.from_arrays([column], schema=schema)
    out = pa.BufferOutputStream()
    choice = {"use_dictionary": True} if encoding == "dictionary" else {"use_dictionary": False}
    if encoding != "dictionary":
        choice["column_encoding"] = {"x": encoding}  # type: ignore[assignment]  # another option
    usual = {"compression": "zstd", "write_page_checksum": True, "max_rows_per_page": 64}
    pq.write_table(
        table, out, write_page_index=True, write_batch_size=16, **{**usual, **choice, **options}
    )
    return out.getvalue().to_pybytes()


def decoded(file: bytes, first: int = 0, last: int | None = None) -> pa.Array | None:
    """Return the rows of some pages of the only column of the first row group."""
    footer = footer_of(file)
    row_group = footer.row_group(0)
    (chunk,) = row_group.chunks
    index, locations = (
        pages_of(footer, row_group, chunk),
        page_locations(footer, row_group, [chunk]),
    )
    assert index is not None
    assert locations is not None
    assert tuple(locations.starts[0]) == index.offsets
    assert tuple(locations.ends[0] - locations.starts[0]) == index.sizes
    assert locations.first_rows.tolist() == [*index.first_rows, row_group.rows]
    field = pq.read_schema(pa.BufferReader(file)).field(0)
    flat = flat_of(field, footer.columns[0], chunk)
    if flat is None:
        return None
    pages = RowGroupPages([flat], locations)
    pages.lies_at(0, address_of(file))
    if chunk.dictionary_page_offset is not None:
        found = decode_dictionary(flat, memoryview(file)[chunk.start : chunk.data_page_offset])
        if found is None:
            return None
        pages.take_dictionary(0, found)
    arrays = pages.decode(first, len(index.offsets) if last is None else last)
    return None if arrays is None else arrays[0]


def footer_of(file: bytes) -> Footer:
    chunk = pq.read_metadata(pa.BufferReader(file)).row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    tail_offset = start + chunk.total_compressed_size
    return Footer(file[tail_offset:], tail_offset)


def read_by_pyarrow(file: bytes) -> pa.Array:
    column = pq.read_table(pa.BufferReader(file)).column(0)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


CASES = [
    (name, encoding)
    for name in VALUES
    for encoding in ENCODINGS.get(name, ("PLAIN", "DELTA_BINARY_PACKED"))
]


@pytest.mark.parametrize(("name", "encoding"), CASES)
@settings(max_examples=25, deadline=None)
@given(draw=st.data())
def test_pages_hold_what_pyarrow_reads(name: str, encoding: str, draw: st.DataObject) -> None:
    type_, values = VALUES[name]
    optional = draw.draw(st.booleans())
    one = st.none() | values if optional else values
    rows = draw.draw(st.lists(one, min_size=1, max_size=40))
    times = draw.draw(st.sampled_from([1, 1, 7]))
    column = pa.array(rows * times, type_)
    codec = draw.draw(st.sampled_from(["zstd", "NONE"]))
    file = written(column, encoding, optional=optional, compression=codec)
    got = decoded(file)
    assert got is not None
    got.validate(full=True)
    assert got.equals(read_by_pyarrow(file))
    assert got.equals(column)


@pytest.mark.parametrize(("name", "encoding"), CASES)
@pytest.mark.parametrize("nulls", [0, 0.2, 1])
def test_many_rows_and_some_of_their_pages(name: str, encoding: str, nulls: float) -> None:
    rng = random.Random(f"{name} {encoding} {nulls}")
    column = many(name, 3000, nulls, rng)
    file = written(column, encoding)
    got = decoded(file)
    assert got is not None
    got.validate(full=True)
    assert got.equals(column)
    some = decoded(file, 3, 9)
    assert some is not None
    assert some.equals(column.slice(3 * 64, 6 * 64))


def many(name: str, rows: int, nulls: float, rng: random.Random) -> pa.Array:
    """Return values of a type: texts that share beginnings, numbers of all widths."""
    type_ = VALUES[name][0]
    values: list[Any]
    if name in ("string", "binary"):
        values = sorted(rng.choice(TEXTS) + str(rng.randrange(10**5)) for _ in range(rows))
    elif name == "unlike":  # no string begins as the one before
        values = [chr(97 + n % 26) * rng.randrange(40) for n in range(rows)]
    elif name == "bool":
        values = [rng.random() < 0.5 for _ in range(rows)]
    elif "decimal" in name:
        most = 10 ** (type_.precision - type_.scale) - 1
        values = [Decimal(rng.randint(-most, most)) for _ in range(rows)]
    elif "float" in name:
        values = [float(np.float32(rng.uniform(-9, 9))) for _ in range(rows)]
    else:
        bits = type_.bit_width - (1 if "u" not in name else 0)
        bits = 36 if name == "time" else bits
        values = [rng.getrandbits(rng.randint(0, bits)) for _ in range(rows)]
        values = [v if "u" in name or name == "time" else v * rng.choice([1, -1]) for v in values]
    return pa.array([None if rng.random() < nulls else v for v in values], type_)


def test_a_dictionary_that_grew_too_large_is_left_for_plain_pages() -> None:
    column = pa.array([f"{n % 999}" * 9 for n in range(3000)])
    file = written(column, "dictionary", dictionary_pagesize_limit=4000)
    got = decoded(file)
    assert got is not None
    assert got.equals(column)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "snappy"},
        {"data_page_version": "2.0"},
        {"column_encoding": {"x": "BYTE_STREAM_SPLIT"}},
    ],
)
def test_what_is_not_known_gives_nothing(options: dict[str, Any]) -> None:
    file = written(pa.array(range(1000)), "PLAIN", **options)
    assert decoded(file) is None


def test_pages_without_checksums_are_read() -> None:
    column = pa.array(range(1000))
    got = decoded(written(column, "PLAIN", write_page_checksum=False))
    assert got is not None
    assert got.equals(column)


def test_nested_columns_are_not_flat(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [[1, 2], []]}), tmp_path / "nested", write_page_index=True)
    assert decoded((tmp_path / "nested").read_bytes()) is None


@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_wrong_bytes_in_pages_give_nothing_or_some_rows(name: str, encoding: str) -> None:
    rng = random.Random(f"{name} {encoding}")
    column = many(name, 200, 0.2, rng)
    file = written(column, encoding, compression=rng.choice(["zstd", "NONE"]))
    chunk = footer_of(file).row_group(0).chunks[0]
    for _ in range(100):
        wrong = bytearray(file)
        for _ in range(rng.choice([1, 1, 3, 9])):
            at = rng.randrange(chunk.start, chunk.end)
            wrong[at] = rng.choice([wrong[at] ^ 1 << rng.randrange(8), 0, 127, 255])
        got = decoded(bytes(wrong))
        if got is not None:
            assert len(got) == 200
            got.validate()
