"""One empty source on trial: how records get into it, what happens to it, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lakebed.decoding.raw_records import RAW_RECORDS
from lakebed.ports.record_source import Records, RecordSource, SourceSplit, SplitReader

# Rows are Arrow's; a service never looks inside, and the kit looks at a few.
AnySource = RecordSource[Any]
AnyReader = SplitReader[Any]
AnyRecords = Records[Any]

READS_MAX = 10_000
"""Most reads of one reader in a check: one that never comes to an end fails."""
PLENTY = 1 << 20


class NotOfferedError(Exception):
    """A trial cannot do that to its source: the check says nothing of it."""


class SourceTrial:
    """A source without records, made for one check. Write a subclass for your source.

    wait_seconds: within which a record that was written can be read.
    has_items: the source has no order; `ITEM_CHECKS` are for it, `CHECKS` for all others.
    """

    wait_seconds: float = 0.0
    has_items: bool = False

    def connect(self) -> AnySource:
        """Return another view of the source, as another process has it."""
        raise NotImplementedError

    def write(self, name: str, *values: bytes) -> None:
        """Add records to the source split of a name. None has a line feed. A name that is new is a
        new source split, where the source can have several."""
        raise NotImplementedError

    def is_called(self, name: str, split: SourceSplit) -> bool:
        """Return whether a source split is the one to which `write` writes by a name."""
        return name in split.title

    def cut(self) -> None:
        """Take the connection away."""
        raise NotOfferedError

    def mend(self) -> None:
        """Bring the connection back. What was written is still there."""
        raise NotOfferedError

    def forget(self, name: str, count: int) -> None:
        """Let the source lose its first records, as by its retention."""
        raise NotOfferedError

    def make_anew(self, name: str) -> None:
        """Remove a source split and make one of the same name, without records."""
        raise NotOfferedError

    def leave_hole(self, name: str) -> None:
        """Let positions go by that have no record."""
        raise NotOfferedError

    def let_unacknowledged_return(self) -> None:
        """Let the source give again what was read and not acknowledged."""
        raise NotOfferedError


def require(holds: object, problem: str) -> None:
    """Raise: AssertionError: it does not hold. (An `assert` would go with `python -O`.)"""
    if not holds:
        raise AssertionError(problem)


def found(trial: SourceTrial, source: AnySource, name: str) -> SourceSplit:
    """Return the source split of a name. It has records."""
    splits = source.splits()
    names = [split.name for split in splits]
    require(len(set(names)) == len(names), f"two source splits of one name: {names}")
    wanted = [split for split in splits if trial.is_called(name, split)]
    require(len(wanted) == 1, f"{len(wanted)} source splits are called {name!r}: {splits}")
    return wanted[0]


def one(trial: SourceTrial, reader: AnyReader, bytes_max: int = PLENTY) -> AnyRecords:
    """Return the next records, which must be there."""
    records = reader.read(bytes_max=bytes_max, wait_seconds=trial.wait_seconds)
    if records is None:
        raise AssertionError("no record, where one was written")
    require_promises(records)
    return records


def all_of(
    trial: SourceTrial, reader: AnyReader, begin: int, count: int, bytes_max: int = PLENTY
) -> Iterator[AnyRecords]:
    """Yield records from a position on, until so many have come."""
    at = begin
    for _ in range(READS_MAX):
        if count <= 0:
            return
        records = one(trial, reader, bytes_max)
        require(records.begin == at, f"records begin at {records.begin}, those before end at {at}")
        require(
            records.size <= bytes_max or records.count == 1 or records.items,
            f"{records.size} bytes where {bytes_max} are allowed",
        )
        at, count = records.end, count - records.count
        yield records
    raise AssertionError(f"{READS_MAX} reads, and still {count} records to come")


def values(records: AnyRecords) -> list[bytes]:
    """Return what records hold."""
    held: list[bytes] = records.batch["value"].to_pylist()  # bounded: a check writes a few records
    return held


def require_promises(records: AnyRecords) -> None:
    """Look at what every source promises of every batch. Raises: AssertionError."""
    batch = records.batch
    batch.validate(full=True)
    require(batch.schema == RAW_RECORDS, f"the schema is {batch.schema}")
    require(records.count == batch.num_rows > 0, f"{records.count=} of {batch.num_rows} rows")
    positions = batch["position"].to_pylist()  # bounded: a check writes a few records
    require(positions == sorted(set(positions)), f"positions do not rise: {positions}")
    require(records.begin <= positions[0], f"a record lies before {records.begin=}")
    require(positions[-1] < records.end, f"a record lies behind {records.end=}")
    held = sum(len(value or b"") for value in values(records))
    require(records.size >= held, f"{records.size=}, and values have {held} bytes")
    if records.items:
        counts = records.item_counts or (1,) * len(records.items)
        require(all(len(item) == 16 for item in records.items), "an item has not 16 bytes")
        require(len(counts) == len(records.items), "not each item has a count")
        require(sum(counts) == records.count, "items have not as many records as there are")
        require(records.end == records.begin + records.count, "positions count the records")


def same(left: AnyRecords, right: AnyRecords) -> bool:
    """Return whether two answers are the same, position for position."""
    plain = {"batch": None, "resume": b""}
    without = msgspec.structs.replace
    return bool(
        left.batch.equals(right.batch) and without(left, **plain) == without(right, **plain)
    )
