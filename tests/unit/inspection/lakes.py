"""A small lake in a directory, with something of everything, that tests may damage."""

import random
import shutil
from pathlib import Path

import pyarrow as pa

from lakebed.bootstrap.local import open_local
from lakebed.inspection.fsck import FsckReport
from lakebed.lake import Lake
from lakebed.model.schema import schema_of
from lakebed.statestore.log_entries.file_changes import RaiseFloor
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.open_table import start_of

SCHEMA = schema_of(row_keys={"id": "string"}, sort_keys={"n": "int64"}, values={"note": "string?"})


def rows(seed: int, count: int) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "id": [f"{rng.randrange(10**6):06d}" for _ in range(count)],
            "n": pa.array(range(count), pa.int64()),
            "note": [rng.choice([None, "x" * rng.randrange(9)]) for _ in range(count)],
        }
    )


def build(path: Path) -> None:
    """Make a lake as `fill` does."""
    with Lake(open_local(path)) as lake:
        fill(lake)


def fill(lake: Lake) -> None:
    """Make a table with a split, claimed files, garbage, two snapshots and a log that was emptied
    below them, a pin, and an entry after the last snapshot."""
    table = lake.create_table(
        "t",
        SCHEMA,
        split_points=["3", "6"],
        settings={"leaf_rows_max": 250, "shared_file_rows_max": 100, "job_files_max": 4},
    )
    app, opened = lake._app, table._opened
    log, snapshots = app.logs.open(opened.id), app.heads.snapshots(opened.id)
    table.ingest(rows(0, 900), job="a")
    table.ingest(rows(1, 60), job="b")
    app.split_leaves.run(opened)
    app.create_jobs.run(opened, everything=True)
    with opened.head.reading() as state:
        done = [job.id for job in state.jobs()][:-1]
        snapshots.write(state)
    for job in done:
        app.run_job.run(opened, job)
    with opened.head.reading() as state:
        start = start_of(state)
        snapshots.write(state)
    snapshots.truncate(log)
    opened.head.commit(opened.own(start, PutPin("reader", app.clock.now() + 10**12)))
    table.ingest(rows(2, 500), job="c")
    opened.head.commit(opened.own(start, RaiseFloor(start.base)))


def copied(whole: Path, to: Path) -> Path:
    return Path(shutil.copytree(whole, to))


def fsck(path: Path, *, deep: bool = True) -> FsckReport:
    app = open_local(path)
    try:
        return app.inspection.fsck().run(deep=deep)
    finally:
        app.close()
