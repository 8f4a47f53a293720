"""Bytes of log entries. Byte 0: format number. Byte 1: 1 if the rest is compressed with zstd."""

from __future__ import annotations

import msgspec
import zstandard

from lakebed.errors import CorruptError, NewerFormatError
from lakebed.model.names import Micros
from lakebed.statestore.transactions import Transaction

ENTRY_FORMAT = 1
COMPRESSED_FROM = 512
"""Bytes. Below it compression saves less than it costs."""

_ENCODER = msgspec.msgpack.Encoder()


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One log entry: transactions that were committed together, in order, and the log time."""

    at: Micros
    transactions: tuple[Transaction, ...]


_DECODER = msgspec.msgpack.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry, the same for the same entry."""
    raw = _ENCODER.encode(entry)
    if len(raw) < COMPRESSED_FROM:
        return bytes((ENTRY_FORMAT, 0)) + raw
    return bytes((ENTRY_FORMAT, 1)) + zstandard.compress(raw, 1)


def decode_entry(body: bytes, number: int) -> Entry:
    """Return the entry. number: of it, for errors.

    Raises:
        NewerFormatError: a newer Lakebed wrote it; nothing was changed.
        CorruptError: the bytes are not an entry.
    """
    if body and body[0] > ENTRY_FORMAT:
        hint = "upgrade this installation of lakebed"
        raise NewerFormatError("a newer log entry", number=number, format=body[0], hint=hint)
    if len(body) < 2 or body[0] < 1 or body[1] > 1:
        raise CorruptError("not a log entry", number=number)
    try:
        return _DECODER.decode(zstandard.decompress(body[2:]) if body[1] else body[2:])
    except (msgspec.DecodeError, zstandard.ZstdError) as error:
        raise CorruptError("not a log entry", number=number, reason=error) from None
