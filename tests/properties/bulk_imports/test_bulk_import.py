"""A bulk import gives what ingest of the same files gives: any schema, processing, leaves, cuts."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakebed
from lakebed.bootstrap.bulk_import import BulkImportApp
from lakebed.bulk_import import plan, plan_leaves
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.sorted_files.sorting import engines, stored_runs
from tests.dsl.in_process_cluster import InProcessCluster
from tests.properties import processings, tables
from tests.properties.test_queries import IN_MEMORY
from tests.readers.rows import plain


@pytest.mark.parametrize("kernel_rows_min", [0, engines.COMPILED_ROWS_MIN])
@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_rows_are_those_of_plain_ingest(
    monkeypatch: pytest.MonkeyPatch, kernel_rows_min: int, data: st.DataObject
) -> None:
    schema = data.draw(tables.schemas())
    files = data.draw(st.lists(tables.rows(schema), min_size=1, max_size=3))
    points = data.draw(tables.split_points(schema))
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", kernel_rows_min)
    given_files = [tables.arrow(schema, rows) for rows in files]
    compare(monkeypatch, data, schema, given_files, points=points)


@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_processing_gives_what_it_gives_in_plain_ingest(
    monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    made = data.draw(processings.tables())
    rows = st.lists(st.lists(made.rows, min_size=1, max_size=12), min_size=1, max_size=3)
    files = [
        pa.Table.from_batches([processings.to_arrow(made.schema, some)]) for some in data.draw(rows)
    ]
    compare(monkeypatch, data, made.schema, files, processing=made.processing)


def compare(
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
    schema: Schema,
    files: list[pa.Table],
    *,
    points: Sequence[object] = (),
    processing: Processing | None = None,
) -> None:
    monkeypatch.setattr(plan, "SORT_BYTES", data.draw(st.sampled_from([1, 2_000, 1 << 20])))
    monkeypatch.setattr(plan, "SORT_BYTES_MIN", 1)
    monkeypatch.setattr(plan, "FILE_ROWS", data.draw(st.sampled_from([1, 20, 1 << 20])))
    monkeypatch.setattr(stored_runs, "BLOCK_ROWS", data.draw(st.sampled_from([1, 3, 1 << 14])))
    monkeypatch.setattr(plan_leaves, "LEAF_ROWS_MIN", 1)
    options = {
        "shared_file_rows_max": data.draw(st.sampled_from([0, 5_000])),
        "leaf_rows_max": data.draw(st.sampled_from([2, 5, 20_000_000])),
        "leaves_min": data.draw(st.sampled_from([1, 4])),
    }
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        lakebed.connect(Path(folder, "lake")) as lake,
    ):
        inputs = Path(folder, "input")
        inputs.mkdir()
        for number, rows in enumerate(files):
            size = data.draw(st.sampled_from([2, 7, 1_000]))
            pq.write_table(rows, inputs / f"{number}.parquet", row_group_size=size)
        for name in ("plain", "bulk"):
            lake.create_table(
                name,
                schema,
                split_points=points,
                settings=options,
                processing=processing,
            )
        lake.table("plain").ingest(inputs)
        with BulkImportApp(Path(folder, "lake")) as app:
            app.run("bulk", [inputs], cluster_for=InProcessCluster)
        found, wanted = (lake.table(name).query().read_all() for name in ("bulk", "plain"))
        keys = [field.name for field in schema.key_fields]
        assert plain(found.select(keys)) == plain(wanted.select(keys))
        assert sorted(plain(found)) == sorted(plain(wanted))
        assert not lake.fsck(deep=True).findings
