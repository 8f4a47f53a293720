"""The rooms of our code that each bundle and each image holds, by their paths in a checkout.

A bundle holds what its programs import and no more, so a change of anything else leaves its digest
as it was. tests/stacks/test_rooms.py computes the rooms from the imports and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

OUR_FILES = ("*.py", "*.sql")

PRICED = (
    "lakebed/costs/__init__.py",
    "lakebed/costs/amounts.py",
    "lakebed/costs/month.py",
    "lakebed/costs/prices-aws.toml",
    "lakebed/costs/prices.py",
    "lakebed/costs/usage_amounts.py",
)
"""Modules that budgets need, of the room of costs."""

EVERYWHERE = (
    "lakebed/__init__.py",
    "lakebed/backends/__init__.py",
    "lakebed/backends/aws",
    "lakebed/backends/local",
    "lakebed/backends/system",
    "lakebed/bootstrap",
    "lakebed/bulk_import",
    "lakebed/config",
    *PRICED,
    "lakebed/errors.py",
    "lakebed/feed_errors.py",
    "lakebed/garbage",
    "lakebed/model",
    "lakebed/observe",
    "lakebed/parquet_bytes",
    "lakebed/ports",
    "lakebed/statestore",
    "lakebed/tables",
    "lakebed/tasks",
    "lakebed/upgrades",
)
"""Modules in every bundle and every image: settings, errors, the log, and the stores of an
instance."""

STATE_ROOMS = (
    *EVERYWHERE,
    "lakebed/compaction",
    "lakebed/feeds/__init__.py",
    "lakebed/feeds/known_definitions.py",
    "lakebed/feeds/living_workers.py",
    "lakebed/feeds/pacing/__init__.py",
    "lakebed/feeds/pacing/elasticity.py",
    "lakebed/feeds/pacing/wanted_tasks.py",
    "lakebed/feeds/pacing/wanted_workers.py",
    "lakebed/feeds/pacing/worker_names.py",
    "lakebed/ingest/__init__.py",
    "lakebed/ingest/batch_files.py",
    "lakebed/ingest/dropped_tables.py",
    "lakebed/ingest/plan_batches.py",
    "lakebed/landing/__init__.py",
    "lakebed/landing/push/__init__.py",
    "lakebed/landing/push/http_answers.py",
    "lakebed/landing/push/receiver.py",
    "lakebed/landing/push/segment_store.py",
    "lakebed/landing/push/segments.py",
    "lakebed/schedules",
    "lakebed/sorted_files/__init__.py",
    "lakebed/sorted_files/format",
    "lakebed/splitting",
    "lambdas",
)
"""Modules that functions import which move no rows."""

ROWS_ROOMS = (
    *EVERYWHERE,
    "lakebed/history",
    "lakebed/ingest",
    "lakebed/processing",
    "lakebed/query",
    "lakebed/schedules",
    "lakebed/sorted_files",
    "lakebed/user_files",
    "lambdas",
)
"""Modules that functions import which read rows or users' messages."""

WORK_ROOMS = (
    *EVERYWHERE,
    "lakebed/backends/web",
    "lakebed/compaction",
    "lakebed/deletes",
    "lakebed/ingest",
    "lakebed/inspection",
    "lakebed/processing",
    "lakebed/query",
    "lakebed/sorted_files",
    "lakebed/splitting",
    "lakebed/user_files",
)
"""Modules of what writes files of rows: tasks and Spark jobs."""

SPARK_ROOMS = (*WORK_ROOMS, "spark_jobs")
"""Modules that Spark's drivers and executors import."""

TASK_ROOMS = (*WORK_ROOMS, "lakebed/kernels")
"""Modules that tasks import: their images have numba, so kernels too. Each image adds its own
program from `containers`."""

_SOURCES = ("lakebed/backends/kafka", "lakebed/decoding", "lakebed/feeds", "lakebed/landing")

FEED_ROOMS = (*TASK_ROOMS, *_SOURCES)
"""Modules that tasks of feeds import: sources and decoders, too."""

TAKE_ROOMS = (*WORK_ROOMS, *_SOURCES, "lambdas")
"""Modules that the function imports which takes records of feeds. It has no numba, so no
kernels."""


def rooms_of_image(kind: str) -> Sequence[str]:
    """Return the rooms of the library that the image of `containers/KIND` holds."""
    return FEED_ROOMS if kind == "feeds" else TASK_ROOMS


def files_in(root: Path, rooms: Sequence[str]) -> list[Path]:
    """Return the source files of `rooms`, sorted by path. root: the checkout."""
    found = set()
    for room in rooms:
        path = root / room
        found |= {path} if path.is_file() else _below(path)
    return sorted(found)


def _below(folder: Path) -> set[Path]:
    return {path for pattern in OUR_FILES for path in folder.rglob(pattern) if path.is_file()}
