"""How long the doctor takes for a lake of 200 tables, and how many planted faults it finds."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import lakebed
from benchmarks.figures import Figure
from lakebed.bootstrap.doctor.examinations import Examination
from lakebed.doctor.checks.all_checks import ALL_CHECKS
from tests.unit.doctor.faults import PLANTED
from tests.unit.doctor.world import World

TABLES = 200
SECONDS_MAX = 20.0


def run() -> list[Figure]:
    """Measure both; takes a minute, most of it to make the tables."""
    found = sum(_is_found(id_) for id_ in PLANTED)
    return [
        Figure("doctor.seconds", _seconds(), "s", SECONDS_MAX),
        Figure("doctor.checks", len(ALL_CHECKS), "checks", 40, "higher"),
        Figure("doctor.planted_found", found, "faults", len(PLANTED), "higher"),
    ]


def _seconds() -> float:
    """Return how long it takes to look at a lake whose tables are not open yet."""
    with TemporaryDirectory(prefix="lakebed-doctor-") as folder:
        path = Path(folder) / "lake"
        schema = lakebed.schema_of(row_keys={"id": "string"})
        with lakebed.connect(path) as lake:
            for number in range(TABLES):
                lake.create_table(f"table-{number:03}", schema).ingest([{"id": "a"}])
        began = time.perf_counter()
        with closing(Examination(str(path))) as examination:
            report = examination.run()
            assert not report.of("could not look"), report.of("could not look")
        return time.perf_counter() - began


def _is_found(id_: str) -> bool:
    check = next(check for check in ALL_CHECKS if check.id == id_)
    world = World(instance=check.of != "a directory")
    PLANTED[id_](world)
    return id_ in {outcome.id for outcome in world.examined().of("found")}
