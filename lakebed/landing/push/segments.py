"""Segments: what a sender pushed, with how it is cut into records, as one immutable object.

A segment is a line that names the format, a digest of what follows, and msgpack. Its reader sees
that it is whole. The body is kept as it came: nothing in it is decoded here.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

import msgspec

from lakebed.errors import CorruptError, NewerFormatError
from lakebed.model.names import ITEM_BYTES, Micros

FORM = 1
MAGIC = b"lakebed segment\n"
DIGEST_BYTES = 16
KEY_BYTES = 8
"""Bytes of the key's digest in an item of a request with a key; the others are the body's."""

LENGTH_BYTES = 4
HEAD_BYTES = 96
"""Bytes that are read from the beginning of a segment: more than comes before the body."""

Framing = Literal["lines", "lengths", "whole"]
"""The framing of a body: each line is a record, the last one also without a line feed; or each
record has its length before it, big-endian; or all of it is one record."""

_LINE_FEED = b"\n"


class Segment(msgspec.Struct, frozen=True):
    """The content that one request pushed into a feed.

    item: names its object, and by it the landing table remembers it: so who deletes by name deletes
        nothing else, however late. Of a request with a key it is made of key and body, else random.
    received: when it came, by the receiver's clock.
    body: as it came.
    """

    item: bytes
    framing: Framing
    received: Micros
    body: bytes

    @property
    def count(self) -> int:
        """Return the number of records in the segment."""
        return record_count(self.framing, self.body)


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    form: int
    item: bytes
    framing: Framing
    received: int
    body: bytes


class _Form(msgspec.Struct, frozen=True, array_like=True):
    form: int


_INTEGERS = {b"\xcc": 1, b"\xcd": 2, b"\xce": 4, b"\xcf": 8}
"""Bytes of unsigned integers, by how msgpack marks them."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode
_decode_form = msgspec.msgpack.Decoder(_Form).decode


def segment_of_key(key: bytes, framing: Framing, received: Micros, body: bytes) -> Segment:
    """Return the segment of a request that its sender named."""
    of_body = _digest(ITEM_BYTES - KEY_BYTES, framing.encode(), body)
    return Segment(prefix_of_key(key) + of_body, framing, received, body)


def segment_without_key(token: int, framing: Framing, received: Micros, body: bytes) -> Segment:
    """Return the segment of a request without a key. token: 128 random bits."""
    return Segment(token.to_bytes(ITEM_BYTES, "big"), framing, received, body)


def prefix_of_key(key: bytes) -> bytes:
    """Return what the items of all requests with a key begin with, whatever their bodies are."""
    return _digest(KEY_BYTES, key)


def record_count(framing: Framing, body: bytes) -> int:
    """Return how many records a body has."""
    if framing == "whole":
        return 1
    if framing == "lengths":
        return len(ends_of_lengths(body))
    return body.count(_LINE_FEED) + (not body.endswith(_LINE_FEED) and bool(body))


def ends_of_lengths(body: bytes) -> list[int]:
    """Return where records end that have their lengths before them.

    Raises:
        CorruptError: the last one is cut.
    """
    ends, at = list[int](), 0
    while at < len(body):
        at += LENGTH_BYTES + int.from_bytes(body[at : at + LENGTH_BYTES], "big")
        ends.append(at)
    if at != len(body):
        raise CorruptError("a record is cut", bytes=len(body), end=at)
    return ends


def encode_segment(segment: Segment) -> bytes:
    """Return a segment's bytes, the same for the same segment."""
    s = segment
    packed = _encode(_Stored(FORM, s.item, s.framing, s.received, s.body))
    return b"".join((MAGIC, _digest(DIGEST_BYTES, packed), packed))


def decode_segment(encoded: bytes, path: str) -> Segment:
    """Return the segment of some bytes. path: of its object, for errors.

    Raises:
        CorruptError: it is damaged, cut, or none.
        NewerFormatError: a newer release wrote it.
    """
    head = len(MAGIC) + DIGEST_BYTES
    digest, packed = encoded[len(MAGIC) : head], encoded[head:]
    if not encoded.startswith(MAGIC) or not hmac.compare_digest(
        digest, _digest(DIGEST_BYTES, packed)
    ):
        hint = "restore the object, or delete it: what was pushed with it is lost then"
        raise CorruptError("a segment is damaged", path=path, bytes=len(encoded), hint=hint)
    try:
        form = _decode_form(packed).form
        if form > FORM:
            raise NewerFormatError("a newer release wrote a segment", path=path, form=form)
        s = _decode(packed)
    except msgspec.MsgspecError as error:
        raise CorruptError("a segment cannot be read", path=path, problem=error) from None
    return Segment(s.item, s.framing, Micros(s.received), s.body)


def received_in(head: bytes) -> Micros | None:
    """Return when a segment came, by its first bytes alone, which are not proven by its digest.
    None: they do not say."""
    at = len(MAGIC) + DIGEST_BYTES + len(b"\x95\x01\xc4\x10") + ITEM_BYTES
    at += 1 + (int.from_bytes(head[at : at + 1]) & 0x1F)  # its framing: a short text
    size = _INTEGERS.get(head[at : at + 1])
    if size is None or len(head) <= at + size or not head.startswith(MAGIC):
        return None
    return Micros(int.from_bytes(head[at + 1 : at + 1 + size]))


def _digest(size: int, *parts: bytes) -> bytes:
    """Return a digest of some parts: of each one's length, too."""
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
