"""Parquet by bytes, held against pyarrow's own reading of the same footers and page indexes."""

import io
import random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.parquet_bytes.footer import Chunk, Codec, Footer, RowGroup
from lakebed.parquet_bytes.page_index import bounds_of, pages_of
from lakebed.parquet_bytes.thrift import MalformedError, Reader, encode_struct, struct_of

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "u8": (pa.uint8(), st.integers(0, 255)),
    "real": (pa.float64(), st.floats(allow_nan=False)),
    "bit": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(max_size=40)),
    "raw": (pa.binary(), st.binary(max_size=90)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9), max_size=4)),
    "pair": (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.lists(st.text(max_size=3))}),
    ),
    "map": (pa.map_(pa.string(), pa.int32()), st.just([("a", 1)])),
}
CODECS = {"UNCOMPRESSED": Codec.UNCOMPRESSED, "ZSTD": Codec.ZSTD}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=5, unique=True))
    rows = draw(st.integers(0, 60))
    columns, fields = [], []
    for name in names:
        type_, values = TYPES[name]
        nullable = draw(st.booleans())
        values = st.none() | values if nullable else values
        found = draw(st.lists(values, min_size=min(rows, 4), max_size=4)) if rows else []
        columns.append(pa.array([found[n % len(found)] for n in range(rows)], type_))
        fields.append(pa.field(name, type_, nullable))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata={"note": "x"}))


WRITERS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "zstd"]),
        "use_dictionary": st.booleans(),
        "write_statistics": st.booleans(),
        "write_page_index": st.booleans(),
        "row_group_size": st.integers(1, 60),
        "max_rows_per_page": st.integers(1, 30),
        "write_batch_size": st.integers(1, 10),
        "write_page_checksum": st.booleans(),
    }
)


def written(table: pa.Table, **options: Any) -> bytes:  # noqa: ANN401  any of pyarrow's
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def footer_of(file: bytes) -> Footer:
    """Return the footer of a file of which all after the last page is the tail."""
    metadata = pq.read_metadata(io.BytesIO(file))
    ends = [4]
    for row_group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(row_group).column(place).to_dict()
            first = chunk["dictionary_page_offset"] or chunk["data_page_offset"]
            ends.append(first + chunk["total_compressed_size"])
    return Footer(file[max(ends) :], max(ends))


@settings(max_examples=60, deadline=None)
@given(tables(), WRITERS)
def test_a_footer_says_what_pyarrow_reads_in_it(table: pa.Table, options: dict[str, Any]) -> None:
    file = written(table, **options)
    truth = pq.read_metadata(io.BytesIO(file))
    footer = footer_of(file)
    assert footer.rows == truth.num_rows
    assert footer.row_groups_count == truth.num_row_groups
    assert footer.created_by == truth.created_by
    assert footer.key_values == truth.metadata
    for ours, place in zip(footer.columns, range(truth.num_columns), strict=True):
        column = truth.schema.column(place)
        assert ".".join(ours.path) == column.path
        assert ours.definition_max == column.max_definition_level
        assert ours.repetition_max == column.max_repetition_level
        assert ours.type_length == max(0, column.length or 0)
    for number in range(footer.row_groups_count):
        row_group, wanted = footer.row_group(number), truth.row_group(number)
        assert (row_group.rows, row_group.bytes_count) == (wanted.num_rows, wanted.total_byte_size)
        for place, chunk in enumerate(row_group.chunks):
            check_chunk(chunk, wanted.column(place))
            check_pages(file, footer, row_group, chunk)


def check_chunk(chunk: Chunk, wanted: pq.ColumnChunkMetaData) -> None:
    assert chunk.codec == CODECS[wanted.compression]
    assert chunk.values == wanted.num_values
    assert chunk.data_page_offset == wanted.data_page_offset
    assert chunk.dictionary_page_offset == wanted.dictionary_page_offset
    assert chunk.end - chunk.start == wanted.total_compressed_size
    assert chunk.bytes_count == wanted.total_uncompressed_size
    assert len(chunk.encodings) == len(wanted.encodings)
    assert (chunk.column_index is not None) == wanted.has_column_index
    assert (chunk.offset_index is not None) == wanted.has_offset_index
    if wanted.statistics is not None and wanted.statistics.has_null_count:
        assert chunk.statistics is not None
        assert chunk.statistics.nulls == wanted.statistics.null_count


def check_pages(file: bytes, footer: Footer, row_group: RowGroup, chunk: Chunk) -> None:
    """Pages lie side by side, and each header says how many values it has."""
    pages = pages_of(footer, row_group, chunk)
    if pages is None:
        return
    at, values = chunk.data_page_offset or chunk.end, 0
    for offset, size in zip(pages.offsets, pages.sizes, strict=True):
        assert offset == at
        reader = Reader(file[at : at + size])
        header = reader.struct()
        assert reader.at + header.need(3, 5) == size
        values += header.need(5, 12).need(1, 5)
        at += size
    assert at == chunk.end
    assert values == chunk.values
    bounds = bounds_of(footer, chunk, pages)
    if bounds is not None and chunk.statistics is not None:
        mins = [low for low, none in zip(bounds.mins, bounds.all_null, strict=True) if not none]
        assert (chunk.statistics.min in mins) or chunk.statistics.min is None
        assert bounds.nulls is None or sum(bounds.nulls) == chunk.statistics.nulls


@settings(max_examples=60, deadline=None)
@given(tables(), WRITERS)
def test_what_is_read_is_written_again_byte_for_byte(
    table: pa.Table, options: dict[str, Any]
) -> None:
    footer = footer_of(written(table, **options))
    raw = encode_struct(footer.fields())
    assert footer.tail[-8 - len(raw) : -8] == raw
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(footer.fields()))
    assert struct_of(plain) == footer.fields()
    at = 0
    while at < len(footer.tail) - 8 - len(raw):  # page indexes, one behind the other
        reader = Reader(footer.tail, at)
        fields = reader.struct()
        assert encode_struct(fields) == footer.tail[at : reader.at]
        at = reader.at


def read_all(tail: bytes, tail_offset: int) -> int:
    footer = Footer(tail, tail_offset)
    pages_count = 0
    for number in range(footer.row_groups_count):
        row_group = footer.row_group(number)
        for chunk in row_group.chunks:
            pages = pages_of(footer, row_group, chunk)
            if pages is not None:
                bounds_of(footer, chunk, pages)
                pages_count += len(pages.offsets)
    footer.fields()
    return pages_count


@pytest.mark.parametrize("kind", ["flip", "cut", "noise"])
def test_a_wrong_byte_is_refused_or_harmless_and_never_more(kind: str) -> None:
    table = pa.table(
        {
            "k": [f"{n:05}" for n in range(400)],
            "v": pa.array(range(400), pa.int32()),
            "l": [[n] for n in range(400)],
        }
    )
    options = {"row_group_size": 150, "max_rows_per_page": 20, "write_batch_size": 10}
    footer = footer_of(written(table, write_page_index=True, **options))
    tail, offset = footer.tail, footer.tail_offset
    assert read_all(tail, offset) > 60
    rng, refused = random.Random(kind), 0
    for _ in range(1000):
        damaged = bytearray(tail)
        if kind == "flip":
            damaged[rng.randrange(len(tail))] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            start = rng.randrange(len(tail))
            del damaged[start : start + rng.randrange(1, 9)]
        else:
            start = rng.randrange(len(tail) - 8)
            damaged[start : start + 8] = rng.randbytes(8)
        try:
            read_all(bytes(damaged), offset)
        except MalformedError:
            refused += 1
    assert refused > 200
