"""A program for `python -O`, which drops `assert`: it breaks what guards data, and writes what each
guard raised."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import lakebed
from lakebed.errors import LakebedError
from lakebed.feeds.committed import FeedConnection, SplitAt, count_of
from lakebed.feeds.event_windows import newest_time
from lakebed.feeds.round_changes import SplitRecords, recorded_gaps
from lakebed.model.feeds.positions import Position
from lakebed.model.names import FILES_PER_RUN_MAX, ConnectionId, JobId, TransactionNumber, file_name
from lakebed.model.open_limit import OpenLimit
from lakebed.model.partitions import ROOT, Partition, PartitionTree
from lakebed.ports.record_source import Records
from lakebed.statestore.log_entries.file_changes import AddFiles
from tests.dsl.table_story import TableStory
from tests.unit.sorted_files.lakes import Lake, batch_of

TWO_KEYS = lakebed.schema_of(row_keys={"a": "int64", "b": "string"}, values={"v": "int64"})


def another_base() -> object:
    story = TableStory()
    files = AddFiles(story.new_files("all", a=1))
    return story.head.commit(story.transaction(files, base=0))


def a_log_that_skips() -> object:
    story = TableStory()
    entries = list(story.log.log.read_after(TransactionNumber(0)))

    def skipping(number: int, *_: object) -> Iterator[object]:
        yield (number + 2, entries[0][1])

    story.log.read_after = skipping  # type: ignore[method-assign,assignment]  # breaks its promise
    return story.head.follow()


def rows_out_of_order(folder: Path) -> object:
    low, high = (batch_of(TWO_KEYS, [{"a": v, "b": "", "v": 0}]) for v in (1, 2))
    return Lake(folder).write(TWO_KEYS, [high, low])


def too_many_files() -> object:
    return file_name(base=TransactionNumber(1), job=JobId("j"), run=1, sequence=FILES_PER_RUN_MAX)


def two_roots() -> object:
    return PartitionTree([Partition(ROOT), Partition(ROOT + 1)])  # type: ignore[arg-type]  # no id


def a_gap_behind_records() -> object:
    read = Records(begin=0, end=3, count=3, size=3, batch=None)
    at = SplitAt(None, Position(1, 0))
    connection = FeedConnection(ConnectionId("c"), 1)
    return list(recorded_gaps(connection, [SplitRecords("0", 1, at, (read,), gap_end=9)]))


def a_row_without_a_time() -> object:
    return newest_time(pa.array([1, None], pa.timestamp("us", "UTC")))


def a_usual_day(folder: Path) -> object:
    with lakebed.connect(folder) as lake:
        table = lake.create_table("t", lakebed.schema_of(row_keys={"k": "int64"}))
        for _ in range(2):
            table.ingest(pa.table({"k": pa.array([2, 1], pa.int64())}))
        table.compact()
        return table.query().read_all().column("k").to_pylist()


def told(act: Callable[[], object]) -> str:
    try:
        return str(act())
    except (AssertionError, LakebedError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    root = Path(sys.argv[1])
    acts: dict[str, Callable[[], object]] = {
        "debug": lambda: __debug__,
        "base": another_base,
        "gap": a_gap_behind_records,
        "log": a_log_that_skips,
        "open": lambda: OpenLimit(0, lambda _: True),
        "order": lambda: rows_out_of_order(root / "order"),
        "position": lambda: count_of(Position(1, b"not counted")),
        "sequence": too_many_files,
        "time": a_row_without_a_time,
        "tree": two_roots,
        "day": lambda: a_usual_day(root / "day"),
    }
    sys.stdout.write(json.dumps({name: told(act) for name, act in acts.items()}))
