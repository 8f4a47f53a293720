"""Row groups encoded by kernels and by pyarrow are the same rows, statistics and page indexes."""

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.schema import Schema, schema_of
from lakebed.parquet_bytes.assembling import Assembly
from lakebed.parquet_bytes.encoded import EncodedRowGroup, chunks_of
from lakebed.parquet_bytes.footer import Chunk, Codec, Encoding, Footer
from lakebed.parquet_bytes.page_index import bounds_of, pages_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.row_groups import densest
from lakebed.sorted_files.sorting.ordering import sorted_rows
from lakebed.sorted_files.writing.encoding_row_groups import (
    TRIAL_ROWS_MIN,
    TRIED_EVERY,
    RowGroupEncoder,
    template_for,
)
from tests.unit.sorted_files.lakes import EVERY_TYPE, KEY_VALUES, TEXT

pytest.importorskip("numba")

FLAT = schema_of(
    row_keys={"s": "string", "i": "int32"},
    sort_keys={"t": "timestamp[us, UTC]", "d": "date32", "b": "binary", "n": "int64"},
    values={
        "i8": "int8?",
        "i16": "int16",
        "i32": "int32?",
        "i64": "int64?",
        "u8": "uint8?",
        "u16": "uint16?",
        "u32": "uint32?",
        "f32": "float32?",
        "f64": "float64",
        "bit": "bool?",
        "money": "decimal128(9,2)?",
        "text": "string?",
        "raw": "binary?",
        "day": "date32?",
        "time": "time64[us]?",
        "naive": "timestamp[us]?",
        "many": {"list": "int64"},
    },
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint8": st.integers(0, 255),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "decimal128(9,2)": st.decimals(-(10**6), 10**6, places=2),
    "time64[us]": st.integers(0, 86_399_999_999),
    "timestamp[us]": KEY_VALUES["int64"],
    "list<int64>": st.lists(KEY_VALUES["int64"], max_size=3),
    **KEY_VALUES,
}


@st.composite
def row_groups(draw: st.DrawFn) -> pa.Table:
    """Rows in order: a few values of each column, repeated in some way."""
    rows = draw(st.sampled_from([1, 2, 31, 33, 65, 129, 500, 1100, 2500]))
    rng = random.Random(draw(st.integers(0, 99)))
    arrays = []
    for field in arrow_schema(FLAT):
        values = VALUES[str(FLAT.field(field.name).type)]
        values = st.none() | values if field.nullable else values
        few = draw(st.lists(values, min_size=1, max_size=6))
        found = [rng.choice(few) for _ in range(rows)]
        if pa.types.is_timestamp(field.type) or pa.types.is_time(field.type):
            arrays.append(pa.array(found, pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(found, field.type))
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(FLAT))
    ordered = pa.Table.from_batches(sorted_rows([batch], FLAT.key_fields))
    step = draw(st.sampled_from([1, 7, 700, 5000])) if rows < 600 else 700
    whole = ordered.combine_chunks().to_batches()[0]
    return pa.Table.from_batches([whole.slice(at, step) for at in range(0, rows, step)])


def file_of(
    schema: Schema, parts: Sequence[pa.Table], *, columns: list[str] | None = None, **given: bool
) -> bytes:
    encoder = RowGroupEncoder(schema, columns=columns, **given)
    out = io.BytesIO()
    sorted_by = len(schema.key_fields) if columns is None else 0
    assembly = Assembly(template_for(schema, columns), out.writelines, sorted_by=sorted_by)
    for row_group in parts:
        assembly.add(encoder.encode(row_group, densest(row_group)))
    assembly.end({"note": "text"})
    return out.getvalue()


def footer_of(file: bytes) -> Footer:
    footer = Footer(file[-int.from_bytes(file[-8:-4], "little") - 8 :], len(file))
    sizes = [
        footer.row_group_fields(n).need(5, 6) + footer.row_group_fields(n).need(6, 6)
        for n in range(footer.row_groups_count)
    ]
    return Footer(file[max(sizes) :], max(sizes))


def told(chunk: Chunk) -> object:
    """What a chunk is, without what depends on who compressed it."""
    return chunk.column, chunk.codec, chunk.encodings, chunk.values, chunk.statistics


def are_alike(ours: bytes, theirs: bytes) -> None:
    mine, other = footer_of(ours), footer_of(theirs)
    assert mine.columns == other.columns
    assert mine.key_values == other.key_values
    assert mine.created_by == other.created_by
    for number in range(other.row_groups_count):
        row_group, wanted = mine.row_group(number), other.row_group(number)
        rows = []
        for chunk, chunk_wanted in zip(row_group.chunks, wanted.chunks, strict=True):
            assert told(chunk) == told(chunk_wanted)
            pages, pages_wanted = (
                pages_of(mine, row_group, chunk),
                pages_of(other, wanted, chunk_wanted),
            )
            assert pages is not None
            assert pages_wanted is not None
            assert pages.first_rows == pages_wanted.first_rows
            assert bounds_of(mine, chunk, pages) == bounds_of(other, chunk_wanted, pages_wanted)
            if not mine.columns[chunk.column].repetition_max:
                rows.append(pages.first_rows)
        assert len(set(rows)) == 1, "pages of all flat columns begin with the same rows"
    assert pq.read_metadata(io.BytesIO(ours)).row_group(0).sorting_columns == (
        pq.read_metadata(io.BytesIO(theirs)).row_group(0).sorting_columns
    )


def read(file: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(file), page_checksum_verification=True)


@settings(max_examples=40, deadline=None)
@given(row_groups())
def test_kernels_and_pyarrow_write_the_same(rows: pa.Table) -> None:
    ours, theirs = (file_of(FLAT, [rows], compiled=compiled) for compiled in (True, False))
    assert read(ours).equals(rows)
    assert read(theirs).equals(rows)
    are_alike(ours, theirs)


ROW = {"s": "", "i": 0, "t": 0, "d": 0, "b": b"", "n": 0}


def rows_of(schema: Schema, columns: dict[str, Sequence[Any]]) -> pa.Table:
    return pa.table(
        [pa.array(columns[f.name], f.type) for f in arrow_schema(schema)],
        schema=arrow_schema(schema),
    )


TEXTS = schema_of(row_keys={"k": "string"}, values={"n": "int64", "v": "binary?"})


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        pytest.param(["k"], [b"x" * 1_000_000], id="a row of a megabyte"),
        pytest.param([f"{n:04}" for n in range(40)], [b"y" * 300_000] * 40, id="wide rows"),
        pytest.param(["k" * 1000 + f"{n:04}" for n in range(3000)], [None] * 3000, id="long keys"),
        pytest.param([""] * 5000, [b""] * 5000, id="nothing at all"),
        pytest.param(
            sorted(["a\0", "a", "é", "\U0010ffff"] * 900, key=str.encode),
            [b"\0", None] * 1800,
            id="odd texts",
        ),
    ],
)
def test_texts_of_all_lengths(keys: list[str], values: list[bytes | None]) -> None:
    numbers = [2**63 - 1 if n % 2 else -(2**63) for n in range(len(keys))]
    rows = rows_of(TEXTS, {"k": keys, "n": numbers, "v": values})
    ours, theirs = (file_of(TEXTS, [rows], compiled=compiled) for compiled in (True, False))
    assert read(ours).equals(rows)
    are_alike(ours, theirs)


def test_pages_have_few_rows_where_rows_are_wide() -> None:
    narrow = rows_of(TEXTS, {"k": ["a"] * 9000, "n": range(9000), "v": [None] * 9000})
    wide = rows_of(TEXTS, {"k": ["b"] * 40, "n": range(40), "v": [b"y" * 300_000] * 40})
    footer = footer_of(file_of(TEXTS, [narrow, wide], compiled=True))
    found = []
    for number in range(2):
        row_group = footer.row_group(number)
        pages = pages_of(footer, row_group, row_group.chunks[0])
        assert pages is not None
        found.append(pages.first_rows)
    assert found[0] == (0, 4096, 8192)
    assert found[1] == tuple(range(0, 40, 3))


MEASURED = schema_of(
    row_keys={"k": "string"}, values={"n": "int64", "f": "float64", "few": "float64", "v": "binary"}
)


def measurements(rng: random.Random, *, few: int) -> pa.Table:
    """Return numbers that zstd hardly makes smaller, but `few` where it has so few values."""
    count = 5000
    return rows_of(
        MEASURED,
        {
            "k": [f"{n:06}" for n in range(count)],
            "n": [rng.randrange(2**40) for _ in range(count)],
            "f": [rng.random() for _ in range(count)],
            "few": [rng.randrange(few) / few for _ in range(count)],
            "v": [rng.randbytes(9) for _ in range(count)],
        },
    )


def codecs_of(file: bytes, name: str) -> list[int]:
    footer = footer_of(file)
    (place,) = [n for n, column in enumerate(footer.columns) if column.path == (name,)]
    return [footer.row_group(n).chunks[place].codec for n in range(footer.row_groups_count)]


@pytest.mark.parametrize("compiled", [True, False], ids=["by kernels", "plainly"])
def test_numbers_that_zstd_hardly_makes_smaller_are_left_alone_but_tried_again(
    compiled: bool,
) -> None:
    rng = random.Random(1)
    row_groups = [measurements(rng, few=4 if n >= 4 else 2**50) for n in range(TRIED_EVERY + 2)]
    file = file_of(MEASURED, row_groups, compiled=compiled)
    zstd, plain = [Codec.ZSTD], [Codec.UNCOMPRESSED]
    alone = zstd + plain * (TRIED_EVERY - 1) + zstd + plain
    assert codecs_of(file, "n") == codecs_of(file, "f") == alone
    assert codecs_of(file, "few") == alone[:-1] + zstd  # they became few on the way
    assert codecs_of(file, "k") == codecs_of(file, "v") == zstd * len(row_groups)
    assert read(file).equals(pa.concat_tables(row_groups))


@pytest.mark.parametrize("compiled", [True, False], ids=["by kernels", "plainly"])
def test_a_row_group_of_few_rows_tells_nothing_of_those_behind_it(compiled: bool) -> None:
    schema = schema_of(row_keys={"k": "string"}, values={"few": "float64", "kind": "string"})
    rng = random.Random(2)

    def row_group(count: int) -> pa.Table:
        return rows_of(
            schema,
            {
                "k": [f"{n:06}" for n in range(count)],
                "few": [rng.randrange(1000) / 10 for _ in range(count)],
                "kind": [rng.choice(["red", "green"]) for _ in range(count)],
            },
        )

    row_groups = [
        row_group(5),
        row_group(TRIAL_ROWS_MIN),
        *(row_group(30) for _ in range(8)),
        row_group(20_000),
    ]
    file = file_of(schema, row_groups, compiled=compiled)
    assert codecs_of(file, "few") == [Codec.ZSTD] * len(row_groups)
    footer = footer_of(file)
    (place,) = [n for n, column in enumerate(footer.columns) if column.path == ("kind",)]
    dictionaries = [
        footer.row_group(n).chunks[place].dictionary_page_offset is not None
        for n in range(footer.row_groups_count)
    ]
    assert dictionaries == [False] + [True] * (len(row_groups) - 1)
    assert read(file).equals(pa.concat_tables(row_groups))


def test_a_dictionary_and_nested_columns_stay_with_pyarrow() -> None:
    schema = schema_of(
        row_keys={"k": "int64"}, values={"few": "string", "l": {"list": "string"}, "m": "string"}
    )
    count = 4000
    rows = rows_of(
        schema,
        {
            "k": range(count),
            "few": [f"v{n % 9}" for n in range(count)],
            "l": [["a", None]] * count,
            "m": [str(n) for n in range(count)],
        },
    )
    ours, theirs = (file_of(schema, [rows, rows], compiled=compiled) for compiled in (True, False))
    are_alike(ours, theirs)
    assert read(ours).equals(pa.concat_tables([rows, rows]))
    first = footer_of(ours).row_group(0).chunks[1]
    assert first.dictionary_page_offset is not None
    assert Encoding.RLE_DICTIONARY in first.encodings


@pytest.mark.parametrize("compiled", [True, False])
def test_text_is_written_as_every_spark_reads_it(compiled: bool) -> None:
    schema = schema_of(
        row_keys={"k": "string"},
        sort_keys={"b": "binary"},
        values={
            "text": "string",
            "raw": "binary?",
            "list": {"list": "string"},
            "map": {"map": ["string", "binary"]},
            "struct": {"struct": [{"name": "a", "type": "string"}]},
        },
    )
    row = {"text": "t", "raw": None, "list": ["a"], "map": [("a", b"")], "struct": {"a": "b"}}
    rows = [{"k": f"{n:03}", "b": b"", **row, "text": f"{n}"} for n in range(100)]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    footer = footer_of(file_of(schema, [table], compiled=compiled))
    found = {
        ".".join(footer.columns[chunk.column].path): set(chunk.encodings) - {Encoding.RLE}
        for chunk in footer.row_group(0).chunks
    }
    dictionary = {Encoding.PLAIN, Encoding.RLE_DICTIONARY}
    assert found == {
        "k": {Encoding.DELTA_BYTE_ARRAY},
        "b": {Encoding.DELTA_BYTE_ARRAY},
        "text": {Encoding.DELTA_BYTE_ARRAY},
        "raw": dictionary,
        "list.list.element": {Encoding.DELTA_BYTE_ARRAY},
        "map.key_value.key": {Encoding.DELTA_BYTE_ARRAY},
        "map.key_value.value": {Encoding.DELTA_BYTE_ARRAY},
        "struct.a": {Encoding.DELTA_BYTE_ARRAY},
    }


@pytest.mark.parametrize("compiled", [True, False])
def test_row_groups_are_taken_out_of_files_and_joined_as_they_are(compiled: bool) -> None:
    texts = [
        rows_of(TEXTS, {"k": [c] * 3000, "n": range(3000), "v": [None, b"x"] * 1500}) for c in "abc"
    ]
    stored = [file_of(TEXTS, [row_group], compiled=compiled) for row_group in texts]
    out = io.BytesIO()
    assembly = Assembly(footer_of(stored[0]), out.writelines, sorted_by=1)
    for file in stored:
        footer = footer_of(file)
        chunks = chunks_of(footer, 0, memoryview(file), 0)
        assembly.add(EncodedRowGroup(footer.row_group(0).rows, chunks))
    assembly.end({})
    joined = out.getvalue()
    assert read(joined).equals(pa.concat_tables(texts))
    footer = footer_of(joined)
    for number, file in enumerate(stored):
        before, after = footer_of(file), footer.row_group(number)
        for chunk, old in zip(after.chunks, before.row_group(0).chunks, strict=True):
            assert told(chunk) == told(old)
            assert joined[chunk.start : chunk.end] == file[old.start : old.end]
            pages = pages_of(footer, after, chunk)
            assert pages is not None
            assert pages.offsets[0] == chunk.data_page_offset


def test_others_read_what_kernels_wrote(tmp_path: Path) -> None:
    keys = [f"{n:05}" for n in range(6000)]
    rows = rows_of(TEXTS, {"k": keys, "n": range(6000), "v": [None, b"", b"x" * 50] * 2000})
    path = tmp_path / "rows.parquet"
    path.write_bytes(file_of(TEXTS, [rows, rows], compiled=True))
    query = "SELECT count(*), count(v), sum(n), min(k), max(k) FROM rows WHERE k >= '01000'"
    wanted = (10_000, 6668, 34_995_000, "01000", "05999")
    assert duckdb.sql(query.replace("rows", f"'{path}'", 1)).fetchall() == [wanted]
    context = datafusion.SessionContext()
    context.register_parquet("rows", str(path))
    (found,) = context.sql(query).to_arrow_table().to_pylist()
    assert tuple(found.values()) == wanted
    frame = polars.read_parquet(path)
    assert frame.to_arrow().cast(rows.schema).equals(pa.concat_tables([rows, rows]))


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=50))
def test_every_type_is_read_again(texts: list[str]) -> None:
    keys = sorted(texts, key=str.encode)
    batch = pa.RecordBatch.from_pylist(
        [
            {"s": k, "i": n, "t": 0, "map": [], "list": [n], "struct": {"a": 1.5, "b": {"c": b""}}}
            for n, k in enumerate(keys)
        ],
        schema=arrow_schema(EVERY_TYPE),
    )
    rows = pa.Table.from_batches([batch])
    assert read(file_of(EVERY_TYPE, [rows], compiled=True)).equals(rows)
