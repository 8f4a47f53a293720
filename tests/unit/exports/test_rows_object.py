"""Files of an export: ordinary Parquet, without notes, encoded as files of the table are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.exports import write_slice
from lakebed.exports.rows_object import columns_sorted
from lakebed.sorted_files.parquet_files import ParquetFiles
from tests.unit.exports.exported_lake import ROWS, SCHEMA, ExportedLake, exported_lake


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (["id", "at", "n", "note"], 2),
        (["id", "n"], 1),
        (["id"], 1),
        (["id", "at"], 2),
        (["at", "id"], 0),
        (["n", "id", "at"], 0),
    ],
)
def test_files_say_by_which_columns_they_are_sorted(
    made: ExportedLake, columns: list[str], wanted: int
) -> None:
    assert columns_sorted(SCHEMA, columns) == wanted
    made.export(columns=columns)
    metadata = pq.read_metadata(made.files()[0])
    found = metadata.row_group(0).sorting_columns
    assert [one.column_index for one in found] == list(range(wanted))


@pytest.mark.parametrize("kernels", ["off", "always"])
def test_other_programs_read_all_encodings(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    monkeypatch.setenv("LAKEBED_KERNELS", kernels)
    made.export(columns=["note", "n", "id"])
    wanted = made.table.to_arrow(columns=["note", "n", "id"])
    assert made.read().equals(wanted)
    asked = f"select * from '{made.folder}/*.parquet' order by n"
    relation = duckdb.connect().sql(asked)
    assert relation is not None
    found = relation.to_arrow_table()
    assert found.cast(wanted.schema).equals(wanted.sort_by("n"))


def test_kernels_read_slices_where_the_whole_export_is_large(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query, which may stop early, does without them, however many rows it could give."""
    read, asked = ParquetFiles.read, list[int]()

    def noted(*given: Any, job_rows: int = 0, **named: Any) -> Any:  # noqa: ANN401 - passed on
        asked.append(job_rows)
        return read(*given, job_rows=job_rows, **named)

    monkeypatch.setattr(ParquetFiles, "read", noted)
    made.export()
    assert asked == [ROWS] * 4
    made.table.to_arrow()
    assert asked[4:] == [0]


def test_files_have_checksums_and_page_indexes_and_no_notes(made: ExportedLake) -> None:
    made.export()
    (first, *_) = made.files()
    metadata = pq.read_metadata(first)
    chunk = metadata.row_group(0).column(0)
    assert chunk.has_offset_index
    assert chunk.has_column_index
    assert set(metadata.metadata) == {b"ARROW:schema"}
    body = bytearray(first.read_bytes())
    body[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    first.write_bytes(body)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(first, page_checksum_verification=True)


@pytest.mark.parametrize("is_set", [False, True])
def test_values_have_bounds_where_those_of_the_table_have(made: ExportedLake, is_set: bool) -> None:
    made.table.change_settings(value_statistics=is_set)
    assert made.killed(3)
    made.export()  # another process goes on, by the plan
    for file in made.files():
        row_group = pq.read_metadata(file).row_group(0)
        assert [row_group.column(n).is_stats_set for n in range(4)] == [True, True, is_set, is_set]


def test_text_that_repeats_has_a_dictionary_and_other_text_has_none(tmp_path: Path) -> None:
    with exported_lake(tmp_path) as made:
        schema = lakebed.schema_of(
            row_keys={"id": "int64"}, values={"few": "string", "many": "string"}
        )
        table = made.lake.create_table("texts", schema)
        columns = {
            "id": list(range(ROWS)),
            "few": [f"few {n % 3}" for n in range(ROWS)],
            "many": [f"many {n}" for n in range(ROWS)],
        }
        table.ingest(pa.table(columns))
        made.export(table=table)
        row_group = pq.read_metadata(made.files()[0]).row_group(0)
        assert [row_group.column(n).has_dictionary_page for n in range(3)] == [False, True, False]


def test_many_row_groups_are_one_file(made: ExportedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_slice, "ROW_GROUP_BYTES", 1)
    monkeypatch.setenv("LAKEBED_KERNELS", "always")
    made.export(slice_bytes=1 << 20)
    (file,) = made.files()
    metadata = pq.read_metadata(file)
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert len(sizes) > 1
    assert sum(sizes) == metadata.num_rows == ROWS
    assert made.read().equals(made.table.to_arrow())
