"""A lake with a table of many leaves, and exports of it whose target may be faulty."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lakebed
from lakebed.backends.faulty.crash_plan import Crash, CrashPlan, Moment
from lakebed.backends.faulty.faults import CALM, Faults
from lakebed.backends.faulty.object_store import FaultyObjectStore
from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import Exported, ExportTable
from lakebed.exports.target import PROGRESS, ExportTarget
from lakebed.lake import Lake
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.table_state.state import Pin

SCHEMA = lakebed.schema_of(
    row_keys={"id": "int64"}, sort_keys={"at": "int64"}, values={"n": "int64", "note": "string?"}
)
ROWS = 400
SETTINGS = {"shared_file_rows_max": 1, "garbage_seconds_min": 60}
SLICE_BYTES = 3_000
"""So that each leaf is a slice."""


def rows(first: int, step: int) -> pa.Table:
    numbers = range(first, ROWS, step)
    return pa.table(
        {
            "id": [n // 4 for n in numbers],
            "at": [n % 4 for n in numbers],
            "n": list(numbers),
            "note": [None if n % 3 else f"note {n}" for n in numbers],
        }
    )


class ExportedLake:
    """A lake in a folder, with the table `t` of four leaves, and a folder for exports."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.lake = Lake(open_local(folder / "lake", clock=self.clock))
        self.table = self.lake.create_table(
            "t", SCHEMA, split_points=[25, 50, 75], settings=SETTINGS
        )
        for first in (0, 1):
            self.table.ingest(rows(first, 2))
        self.folder = folder / "out"

    def target(
        self,
        crashes: CrashPlan | None = None,
        faults: Faults | None = None,
        *,
        is_probed: bool = False,
    ) -> ExportTarget:
        plain = PlainLocalObjects(self.folder, self.clock)
        objects: ObjectStore = plain
        if crashes is not None or faults is not None:
            calm = Faults(self.lake._app.rng, CALM)
            objects = FaultyObjectStore(plain, faults or calm, crashes)
        return ExportTarget(objects, str(self.folder), lambda: plain.tidy(PROGRESS), is_probed)

    def export(
        self,
        target: ExportTarget | None = None,
        *,
        table: lakebed.Table | None = None,
        workers: int = 1,
        restart: bool = False,
        slice_bytes: int = SLICE_BYTES,
        **asked: Any,  # noqa: ANN401 - as ExportRequest has them
    ) -> Exported:
        service = ExportTable(query=self.lake._app.query, clock=self.clock)
        return service.run(
            (table or self.table)._opened,
            target or self.target(),
            ExportRequest(**asked),
            workers=workers,
            slice_bytes=slice_bytes,
            restart=restart,
        )

    def killed(
        self,
        at: int,
        moment: Moment = "before",
        **asked: Any,  # noqa: ANN401 - as ExportRequest has them
    ) -> bool:
        """Export until the effect `at`, then be killed. Returns whether that came."""
        crashes = CrashPlan(at, moment)
        try:
            self.export(self.target(crashes), **asked)
        except Crash:
            return True
        return crashes.dead

    def names(self) -> list[str]:
        """Return all that lies in the target, folders too."""
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*"))

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def read(self) -> pa.Table:
        """Return the rows of all files, in their order, as any reader has them."""
        return pa.concat_tables(pq.read_table(file) for file in self.files())

    def pins(self) -> list[Pin]:
        with self.table._opened.head.reading() as state:
            return state.pins()


@contextmanager
def exported_lake(folder: Path) -> Iterator[ExportedLake]:
    made = ExportedLake(folder)
    try:
        yield made
    finally:
        made.lake.close()
