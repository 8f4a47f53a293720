"""An instance of a hundred tables in the local cloud: how long a schedule's tick takes.

The tick ends when its function has looked at every table and each message is deleted. All is warm,
nothing is to be done; permissions and TLS are on.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import lakebed
from benchmarks.figures import Figure, table
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.aws import open_instance
from lakebed.lake import Lake
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.instance import INSTANCE, RunningInstance

ROOT = Path(__file__).parents[1]
TABLES, TICKS = 100, 5
WARM_TICKS = 12
"""Before: each function has some processes, of which each meets a table for the first time once."""
MINUTE = 61
SPLITTING = f"lakebed-{INSTANCE}-splitting"
SCHEMA = lakebed.schema_of(row_keys={"id": "string"})


def run() -> list[Figure]:
    """Return seconds of a tick at which every table is due, and of one at which none is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthesize(ROOT, folder / "assembly", {"instance": INSTANCE, "architecture": "machine"})
        with LocalCloud(folder / "assembly", folder / "cloud", clock=SystemClock()) as cloud:
            instance = RunningInstance(cloud, folder / "cache")
            with instance.led_here(), Lake(open_instance(INSTANCE, clock=cloud.clock)) as lake:
                for number in range(TABLES):
                    lake.create_table(f"table{number:03}", SCHEMA)
                ticks = [_tick(cloud, lake, number) for number in range(WARM_TICKS + TICKS)]
                due = statistics.median(ticks[WARM_TICKS:])
            idle = statistics.median(_tick(cloud) for _ in range(TICKS))
            assert not cloud.failures, cloud.failures
    return [
        Figure("cloud.tick_100_tables_seconds", due, "s", 1),
        Figure("cloud.tick_100_idle_tables_seconds", idle, "s"),
    ]


def _tick(cloud: LocalCloud, changed: Lake | None = None, number: int = 0) -> float:
    """Return how long a tick takes. changed: each table of it, so that all are to be looked at."""
    if changed is not None:
        for name in changed.tables():
            changed.table(name).change_settings(leaf_rows_max=1_000 + number)
    cloud.advance(MINUTE, schedules=False)
    begun = cloud.clock.monotonic()
    cloud.fire(SPLITTING)
    return cloud.clock.monotonic() - begun


if __name__ == "__main__":
    print(table(run()))
