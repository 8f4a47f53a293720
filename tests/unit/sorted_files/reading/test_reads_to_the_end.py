"""Who reads to the end gets the rows of a query, decoded and merged by kernels, and reads no byte
more than it."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed import Processing, field
from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, checked_processing
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.sorted_files import ReadFigures
from lakebed.query.conditions import condition_of
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading import page_reading, part_sources
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.lakes import Lake
from tests.unit.sorted_files.reading.test_page_reading import only_by_pages

if not available():
    pytest.skip("kernels need numba", allow_module_level=True)

FLAT = schema_of(
    row_keys={"k": "int64"}, values={"kind": "string", "text": "string?", "n": "int64?"}
)
NESTED = schema_of(row_keys={"k": "int64"}, values={"n": "int64", "tags": {"list": "int32"}})
FILES, ROWS, BORDER = 3, 6_000, 8_000


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 1)
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 5_000)


def rows(schema: Schema, file: int, each: int = 1) -> pa.RecordBatch:
    """Return rows in order. each: so many files have the same keys. A row group's texts take 260
    KiB: less than what is read for nothing between other columns, more than a block."""
    rng = random.Random(file)
    made: dict[str, Any] = {
        "k": [FILES * n + file // each for n in range(ROWS)],
        "kind": ["red" if n % 3 else "blue" for n in range(ROWS)],
        "text": [rng.randbytes(60).hex() if n % 7 else None for n in range(ROWS)],
        "n": [n % 100 for n in range(ROWS)],
        "tags": [[n, file] for n in range(ROWS)],
    }
    columns = arrow_schema(schema)
    return pa.RecordBatch.from_pydict({name: made[name] for name in columns.names}, columns)


def leaves_of(lake: Lake, schema: Schema, each: int = 1) -> list[list[FilePart]]:
    """Return two leaves of the same files: a row group at the border is in both."""
    parts = [lake.part(lake.write(schema, [rows(schema, n, each)])) for n in range(FILES)]
    border = encode_key(schema.row_keys, (BORDER,))
    ranges = KeyRange(b"", border), KeyRange(border, None)
    return [[FilePart(part.file, part.path, r, 0) for part in parts] for r in ranges]


def read(
    lake: Lake,
    schema: Schema,
    leaves: Sequence[Sequence[FilePart]],
    processing: ProcessingPass | None = None,
    *,
    job_rows: int = 0,
    **asked: Any,  # noqa: ANN401 - as `condition_of` has it
) -> tuple[pa.Table, int, int]:
    """Return the rows, and how many requests and bytes were sent for them."""
    figures = ReadFigures()
    condition = condition_of(schema, **asked) if asked else None
    files = lake.over(lake.objects)  # which holds no tails
    batches = files.read(schema, leaves, condition, figures, processing, job_rows=job_rows)
    found = pa.Table.from_batches(batches).combine_chunks()
    return found, figures.requests, figures.bytes


@pytest.mark.parametrize(
    "asked",
    [{}, {"columns": ["n", "k"]}, {"where": "n < 40 and text is not null", "columns": "kind"}],
    ids=["all", "columns", "where"],
)
def test_rows_are_those_of_a_query_and_no_byte_is_read_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    lake = Lake(tmp_path)
    for leaves in (leaves_of(lake, FLAT), leaves_of(lake, FLAT)[1:]):
        wanted = read(lake, FLAT, leaves, **asked)
        assert len(wanted[0]) > 500
        with monkeypatch.context() as patched:
            only_by_pages(patched)
            patched.setattr(part_sources, "read_part", None)
            assert read(lake, FLAT, leaves, job_rows=1, **asked) == wanted


def test_columns_that_kernels_do_not_know_are_read_too(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    leaves = leaves_of(lake, NESTED)
    assert read(lake, NESTED, leaves, job_rows=1) == read(lake, NESTED, leaves)


@pytest.mark.parametrize(
    "processing",
    [
        Processing(aggregate={"n": "sum", "kind": "max", "text": "min"}),
        Processing(filter=field("n") < 40),
    ],
    ids=["aggregate", "filter"],
)
def test_processing_gives_the_same_rows(tmp_path: Path, processing: Processing) -> None:
    lake = Lake(tmp_path)
    leaves = leaves_of(lake, FLAT, each=FILES)
    given = ProcessingPass(checked_processing(processing, FLAT), Micros(0), "query")
    wanted, *_ = read(lake, FLAT, leaves, given)
    found, *_ = read(lake, FLAT, leaves, given, job_rows=1)
    by_all = [(name, "ascending") for name in wanted.column_names]
    assert len(wanted) == (ROWS if processing.aggregate else FILES * ROWS * 2 // 5)
    assert found.sort_by(by_all).equals(wanted.sort_by(by_all))
    assert found.column("k").equals(wanted.column("k"))


@pytest.mark.parametrize("job_rows", [0, 99])
def test_few_rows_or_a_reader_that_may_stop_do_without_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job_rows: int
) -> None:
    lake = Lake(tmp_path)
    leaves = leaves_of(lake, FLAT)
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 100)
    monkeypatch.setattr(page_reading, "read_part_by_pages", None)
    found, *_ = read(lake, FLAT, leaves, job_rows=job_rows)
    assert len(found) == FILES * ROWS
