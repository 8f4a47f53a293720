"""Messages of jobs. A message is a hint that carries names; truth is in the state (protocol
H20)."""

from __future__ import annotations

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.names import JobId, TableId

COMPACTION_QUEUE = "compaction"


class CompactionMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run this compaction job of this table."""

    table: TableId
    job: JobId
    format: int = 1


def encode_message(message: CompactionMessage) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def decode_message(body: bytes) -> CompactionMessage:
    """Return the message. Raises: InvalidError, if it is not one."""
    try:
        return msgspec.json.decode(body, type=CompactionMessage)
    except msgspec.DecodeError as error:
        raise InvalidError("not a compaction message", reason=error) from None
