"""Frames of a spool: the records of one read, with where they begin and end."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.errors import CorruptError
from lakebed.ports.record_source import Records
from lakebed.ports.spool import FrameAt

BatchT = TypeVar("BatchT")


class BatchCodec(Protocol[BatchT]):
    """Writes batches as bytes, and reads them."""

    def encoded(self, batch: BatchT) -> bytes:
        """Return the bytes of a batch."""
        ...

    def decoded(self, body: bytes) -> BatchT:
        """Return the batch. Raises: CorruptError: the bytes are none."""
        ...


class Frame(msgspec.Struct, frozen=True):
    """Records that lie in a spool.

    begin, end: positions before and behind them.
    before, resume: what the source needs beside, to go on at each.
    """

    begin: int
    before: bytes
    end: int
    resume: bytes
    at: FrameAt


class _Stored(msgspec.Struct, Generic[BatchT], frozen=True, array_like=True):
    split: str
    begin: int
    records: tuple[int, int, int, int]
    resume: bytes
    items: tuple[bytes, ...]
    item_counts: tuple[int, ...]
    batch: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


def encoded_frame(
    split: str, begin: int, records: Records[BatchT], codec: BatchCodec[BatchT]
) -> bytes:
    """Return the bytes of records that follow a position of a source split."""
    return _encode(
        _Stored(
            split,
            begin,
            (records.begin, records.end, records.count, records.size),
            records.resume,
            records.items,
            records.item_counts,
            codec.encoded(records.batch),
        )
    )


def decoded_frame(
    body: bytes, split: str, frame: Frame, codec: BatchCodec[BatchT]
) -> Records[BatchT]:
    """Return the records of a frame.

    Raises:
        CorruptError: they are no records, or others than those that were put there.
    """
    try:
        found = _decode(body)
    except msgspec.DecodeError as error:
        raise CorruptError("spilled records cannot be read", reason=error) from None
    begin, end, count, size = found.records
    if (found.split, found.begin, end, found.resume) != (
        split,
        frame.begin,
        frame.end,
        frame.resume,
    ):
        raise CorruptError("spilled records are other ones", source_split=split)
    return Records(
        begin=begin,
        end=end,
        count=count,
        size=size,
        batch=codec.decoded(found.batch),
        resume=found.resume,
        items=found.items,
        item_counts=found.item_counts,
    )
