"""Tables of which a leaf has many small files, and what merges them."""

import pyarrow as pa

import lakebed
from lakebed.bootstrap.app import App
from lakebed.compaction.merge_small_files import MergeSmallFiles
from lakebed.lake import Lake
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.state import LeafFigures

FILES_MAX = 20
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})


def leaves_of(table: OpenTable) -> list[LeafFigures]:
    with table.head.reading() as state:
        return state.leaf_figures()


def files_of(table: OpenTable) -> int:
    return max(leaf.files for leaf in leaves_of(table))


def filled(app: App, files: int) -> OpenTable:
    table = Lake(app).create_table("t", SCHEMA, settings={"leaf_files_max": FILES_MAX})
    for number in range(files):
        table.ingest(pa.table({"id": pa.array([number], pa.int64())}))
    return table._opened


def merging(app: App, *, online: bool = True) -> MergeSmallFiles[pa.RecordBatch]:
    return MergeSmallFiles[pa.RecordBatch](
        run_job=app.run_job,
        give_up=app.give_up,
        is_online=lambda _: online,
        tracker=app.tracker,
        clock=app.clock,
    )


def killed(*_args: object, **_named: object) -> None:
    """Stands for a call in which the process dies."""
    raise KeyboardInterrupt
