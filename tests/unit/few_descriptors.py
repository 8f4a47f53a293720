"""A program that works on a lake while it may open hardly any files; it writes a JSON line for each
piece of work: what was raised, and how many rows the table has afterwards."""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakebed
from lakebed.errors import LakebedError

SCHEMA = lakebed.schema_of(row_keys={"k": "int64"})
ROWS = 100
FREE = (0, 1, 2, 4)


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """Let so many more files be opened, and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    fillers: list[int] = []
    while not fillers or fillers[-1] < top:  # below the limit no number is left
        fillers.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[-1] + 1 + free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)


def work(path: Path, file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a process does with a lake, in a new lake."""
    lakes: list[lakebed.Lake] = []
    yield "connect", lambda: lakes.append(lakebed.connect(path))
    yield "create", lambda: lakes[-1].create_table("t", SCHEMA)
    rows = pa.table({"k": pa.array(range(ROWS), pa.int64())})
    yield "ingest", lambda: lakes[-1].table("t").ingest(rows)
    yield "ingest a file", lambda: lakes[-1].table("t").ingest(file)
    yield "query", lambda: lakes[-1].table("t").query().read_all()
    yield "compact", lambda: lakes[-1].table("t").compact()
    yield "status", lakes[-1].status
    yield "close", lakes[-1].close


def raised_by(act: Callable[[], object], free: int) -> str:
    try:
        with few_descriptors(free):
            act()
    except LakebedError as error:
        return type(error).__name__
    return ""


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    parquet = folder / "rows.parquet"
    pq.write_table(pa.table({"k": pa.array(range(ROWS), pa.int64())}), parquet)
    for _, warm in work(folder / "warm", parquet):
        warm()  # or modules could not be imported
    for free in FREE:
        for name, act in work(folder / f"lake-{free}", parquet):
            raised = raised_by(act, free)
            if raised:
                act()
            told = {"work": name, "free": free, "raised": raised}
            sys.stdout.write(json.dumps(told) + "\n")
        with lakebed.connect(folder / f"lake-{free}") as lake:
            found = lake.table("t").query().read_all().num_rows
        sys.stdout.write(json.dumps({"free": free, "rows": found}) + "\n")
