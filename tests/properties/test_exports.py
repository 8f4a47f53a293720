"""Random tables, with processing and without: what was exported, of the newest version or of an
older one, makes an equal table."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import ExportTable
from lakebed.exports.row_sums import RowSum
from lakebed.exports.target import ExportTarget
from lakebed.lake import Lake
from lakebed.model.names import Micros
from lakebed.table import Table
from tests.properties import processings, tables
from tests.properties.test_queries import IN_MEMORY, SETTINGS

SLICE_BYTES = (1, 2_000, 1 << 20)


@contextmanager
def lake_at(now: int) -> Iterator[tuple[Lake, Path]]:
    """A lake, and a folder for exports."""
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        Lake(open_local(Path(folder, "lake"), clock=VirtualClock(Micros(now)))) as lake,
    ):
        yield lake, Path(folder, "out")


def sum_of(rows: pa.Table) -> tuple[int, int]:
    """Return what rows in any order have in common: where keys are equal, any order is right."""
    found = RowSum()
    for batch in rows.to_batches():
        found.add(batch)
    return found.value


def export(
    table: Table,
    folder: Path,
    data: st.DataObject,
    **asked: Any,  # noqa: ANN401 - as ExportRequest has them
) -> None:
    service = ExportTable(query=table._app.query, clock=table._app.clock)
    service.run(
        table._opened,
        ExportTarget(PlainLocalObjects(folder, table._app.clock), str(folder)),
        ExportRequest(**asked),
        workers=data.draw(st.integers(1, 3)),
        slice_bytes=data.draw(st.sampled_from(SLICE_BYTES)),
    )


def live(lake: Lake, table: Table, data: st.DataObject) -> None:
    """Let anything happen to a table that changes no row."""
    for action in data.draw(st.lists(st.sampled_from(["split", "compact", "run"]), max_size=3)):
        match action:
            case "split":
                table._app.split_leaves.run(table._opened)
            case "compact":
                table.compact()
            case _:
                lake.run()


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_a_table_with_processing_is_restored_with_equal_rows(data: st.DataObject) -> None:
    made = data.draw(processings.tables())
    with lake_at(processings.TIMES[data.draw(st.integers(0, 5))]) as (lake, folder):
        table = lake.create_table("t", made.schema, settings=SETTINGS, processing=made.processing)
        for _ in range(data.draw(st.integers(0, 3))):
            some = data.draw(st.lists(made.rows, min_size=1, max_size=12))
            table.ingest(processings.to_arrow(made.schema, some))
            live(lake, table, data)
        definition, wanted, asked = table.definition, sum_of(table.to_arrow()), {}
        if is_past := data.draw(st.booleans()):
            table.tag("then")
            asked = {"as_of": "then"}
            some = data.draw(st.lists(made.rows, min_size=1, max_size=12))
            table.ingest(processings.to_arrow(made.schema, some))
            live(lake, table, data)
        export(table, folder, data, **asked)
        lake.restore_table("r", folder, verify=True)
        found = lake.table("r")
        assert found.definition == definition
        assert sum_of(found.to_arrow()) == wanted
        live(lake, found, data)
        assert sum_of(found.to_arrow()) == wanted
        if is_past:
            return
        more = processings.to_arrow(made.schema, data.draw(st.lists(made.rows, max_size=5)))
        if made.processing.latest is None or made.processing.latest.delete is None:
            for one in (table, found):  # a restored table goes on as the other one does
                one.ingest(more)
                one.compact()
            assert sum_of(found.to_arrow()) == sum_of(table.to_arrow())


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_some_rows_of_any_table_are_restored_with_equal_rows(data: st.DataObject) -> None:
    schema = data.draw(tables.schemas())
    given_rows = data.draw(tables.rows(schema))
    with lake_at(0) as (lake, folder):
        table = lake.create_table(
            "t", schema, settings=SETTINGS, split_points=data.draw(tables.split_points(schema))
        )
        table.ingest(tables.arrow(schema, given_rows))
        live(lake, table, data)
        if data.draw(st.booleans()):
            table.change_fields(
                **data.draw(tables.field_changes(schema)) or {"add": {"zz": "int8?"}}
            )
        names = [field.name for field in table.schema.key_fields]
        names += data.draw(
            st.lists(st.sampled_from([f.name for f in table.schema.values]), unique=True)
            if table.schema.values
            else st.just([])
        )
        asked = {
            "columns": data.draw(st.none() | st.just(names)),
            "ranges": data.draw(st.none() | tables.ranges(table.schema)),
        }
        export(table, folder, data, **asked)
        lake.restore_table("r", folder, verify=True)
        found = lake.table("r").to_arrow()
        assert sum_of(found.select(names)) == sum_of(table.to_arrow(**asked).select(names))
