"""Rows that tell which job they came from, and what a lake must hold of each job."""

import random
import zlib
from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from lakebed.model.schema import schema_of

SCHEMA = schema_of(
    row_keys={"key": "string"},
    sort_keys={"place": "int64"},
    values={"job": "string", "noise": "binary"},
)
SETTINGS = {
    "garbage_seconds_min": 0,
    "pending_seconds_max": 0,
    "redispatch_seconds": 0,
    "leaf_rows_max": 8_000,
    "shared_file_rows_max": 50,
    "job_files_max": 4,
    "size_ratio": 2,
    "leaf_files_max": 60,
}
SPLIT_POINTS = ["3", "7", "c"]


def rows_of(job: str) -> pa.Table:
    """Return the rows of a job, the same each time."""
    rng = random.Random(zlib.crc32(job.encode()))
    count = rng.choice([1, 40, 200, 1_500])
    return pa.table(
        {
            "key": [f"{rng.getrandbits(32):08x}" for _ in range(count)],
            "place": pa.array(range(count), pa.int64()),
            "job": [job] * count,
            "noise": [rng.randbytes(16) for _ in range(count)],
        }
    )


def jobs_of(prefix: str) -> Iterator[str]:
    """Yield the ids of a worker's jobs, for ever."""
    number = 0
    while True:
        yield f"{prefix}-{number}"
        number += 1


def wrong_jobs(found: pa.Table, acknowledged: Collection[str]) -> Mapping[str, str]:
    """Return what is wrong with jobs: each is there once and whole; others than those that were
    acknowledged may be missing as a whole."""
    seen = found.group_by("job").aggregate([("place", "count"), ("place", "count_distinct")])
    counts = {
        job: (rows, distinct)
        for job, rows, distinct in zip(
            *(seen.column(i).to_pylist() for i in names(seen)), strict=True
        )
    }
    wrong = {job: "lost" for job in acknowledged if job not in counts}
    for job, (rows, distinct) in counts.items():
        wanted = len(rows_of(job))
        if not rows == distinct == wanted:
            wrong[job] = f"{rows} rows, {distinct} distinct, {wanted} were given"
    return wrong


def names(seen: pa.Table) -> list[str]:
    assert set(seen.column_names) == {"job", "place_count", "place_count_distinct"}
    return ["job", "place_count", "place_count_distinct"]
