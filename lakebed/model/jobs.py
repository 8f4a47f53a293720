"""Messages of jobs. A message is a hint that carries names; truth is in the state (protocol
H20).

They are internal: a release may add fields, which older readers ignore unless the message needs a
newer one (`lakebed/model/needs.py`).
"""

from __future__ import annotations

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.json_fields import check_fields_once
from lakebed.model.names import JobId, TableId, TableName, table_id
from lakebed.model.needs import refuse_newer

COMPACTION_QUEUE = "compaction"
INGEST_QUEUE = "ingest"
QUERY_QUEUE = "query"
BULK_IMPORT_QUEUE = "bulk-import"
SUBMISSIONS_QUEUE = "submissions"

SPLITTING = "splitting"
COMPACTION_CREATION = "compaction-creation"
GARBAGE = "garbage"
SWEEP = "sweep"
SNAPSHOTS = "snapshots"
BATCHING = "batching"
"""Kind of scheduled work, with a queue of that name: on tables with submitted files."""
BATCHES_QUEUE = "batches"
"""Jobs of batches, in a directory. In an instance they are among the other ingest jobs."""
TICK_KINDS = (SPLITTING, COMPACTION_CREATION, GARBAGE, SWEEP, SNAPSHOTS)
"""Kinds of scheduled work on tables, each with a queue of that name."""


class CompactionMessage(msgspec.Struct, frozen=True):
    """Run this compaction job of this table."""

    table: TableId
    job: JobId
    format: int = 1


def encode_message(message: CompactionMessage) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def decode_message(body: bytes) -> CompactionMessage:
    """Return the message.

    Raises:
        InvalidError: it is not one. NewerFormatError: it needs a newer release.
    """
    check_fields_once(body)
    refuse_newer(body, "a compaction message")
    try:
        return msgspec.json.decode(body, type=CompactionMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidError(
            "the message is not a compaction message",
            reason=error,
            hint="send JSON with `table`, and `job` to name one job",
        ) from None


class BatchMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Take in this batch of submitted files, where a user's message would name files.

    id: of the job.
    table: as it was called, for people.
    table_id: whose batch it is.
    """

    id: JobId
    table: TableName
    table_id: TableId
    batch: int


def batch_job(table: TableId, batch: int) -> JobId:
    """Return the id of the job that takes in a batch."""
    return JobId(f"{table}-batch-{batch}")


def encode_batch_message(message: BatchMessage) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def batch_message_in(body: bytes) -> BatchMessage | None:
    """Return the message; None: it is another one, perhaps a user's.

    Raises:
        NewerFormatError: it needs a newer release.
    """
    if b'"batch"' not in body:
        return None
    try:
        if "batch" not in msgspec.json.decode(body, type=dict[str, msgspec.Raw]):
            return None  # a word in a user's
        refuse_newer(body, "a message about a batch")
        check_fields_once(body)
        message = msgspec.json.decode(body, type=BatchMessage)
        table_id(message.table_id)
    except (InvalidError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message


class TableMessage(msgspec.Struct, frozen=True):
    """Look whether this table has something to do."""

    table: TableId


def encode_table_message(message: TableMessage) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def decode_table_message(body: bytes) -> TableMessage:
    """Return the message.

    Raises:
        InvalidError: it is not one. NewerFormatError: it needs a newer release.
    """
    check_fields_once(body)
    refuse_newer(body, "a message about a table")
    try:
        message = msgspec.json.decode(body, type=TableMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidError(
            "the message is not about a table",
            reason=error,
            hint="send JSON with `table`, the id of a table",
        ) from None
    return TableMessage(table_id(message.table))
