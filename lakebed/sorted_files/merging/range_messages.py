"""Messages between a process that merges and the processes that help it: lines of JSON.

Both run the same release, so these forms have no format number; nothing stores them.
"""

from __future__ import annotations

import msgspec

from lakebed.model.files import FilePart
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, Stage
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.model.table_text import TableText, table_text
from lakebed.sorted_files.merging.row_group_transfer import HandedOver


class RowGroupsRead(msgspec.Struct, frozen=True, array_like=True):
    """Row groups `[begin, end)` of a file; None: whichever hold wanted rows."""

    part: FilePart
    row_groups: tuple[int, int] | None


class MergeTask(msgspec.Struct, frozen=True, tag=True):
    """A merge that begins.

    at, stage, whole: of its processing, if it has one.
    job_rows: of all of it, about.
    memory: in bytes, for the process that gets it.
    """

    text: TableText
    at: Micros
    stage: Stage
    whole: bool
    value_statistics: bool
    reads: tuple[RowGroupsRead, ...]
    job_rows: int
    memory: int

    def row_processing(self) -> ProcessingPass | None:
        """Return what is done with rows."""
        found = self.text.row_processing()
        return None if found is None else ProcessingPass(found, self.at, self.stage, self.whole)


class RangeTask(msgspec.Struct, frozen=True, tag=True):
    """Merge a range of the merge that was sent last, and hand it over at `path`."""

    within: KeyRange
    path: str


class RangeMerged(msgspec.Struct, frozen=True, tag=True):
    """handed: None: processing left no rows.

    used: what that took, by counter.
    """

    path: str
    handed: HandedOver | None
    used: dict[str, float] = {}


class RangeFailed(msgspec.Struct, frozen=True, tag=True):
    """The process that asked merges the range itself, and meets the same problem if it lasts."""

    problem: str


RangeMessage = MergeTask | RangeTask
Answer = RangeMerged | RangeFailed
_decoder: msgspec.json.Decoder[RangeMessage] = msgspec.json.Decoder(RangeMessage)
_answer: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def encode(message: RangeMessage | Answer) -> bytes:
    """Return a line, without its end."""
    return msgspec.json.encode(message)


def decode_message(line: bytes) -> RangeMessage:
    """Return what `encode` was given by who asks."""
    return _decoder.decode(line)


def decode_answer(line: bytes) -> Answer:
    """Return what `encode` was given by who answers."""
    return _answer.decode(line)


def merge_task(
    schema: Schema,
    processing: ProcessingPass | None,
    job_rows: int,
    *,
    value_statistics: bool,
) -> MergeTask:
    """Return what is sent of a merge, but for what is read."""
    return MergeTask(
        text=table_text(schema, None if processing is None else processing.processing),
        at=Micros(0) if processing is None else processing.at,
        stage="compaction" if processing is None else processing.stage,
        whole=processing is not None and processing.whole,
        value_statistics=value_statistics,
        reads=(),
        job_rows=job_rows,
        memory=0,
    )
