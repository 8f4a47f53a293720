"""Writes and reads what our files say about themselves in the footer's key-value metadata, beside
Parquet's own.

lakebed.format   a number; other numbers are refused
lakebed.sample   equi-depth sample of the row keys
lakebed.groups   of each row group the first row key and how wide rows are; the last key
lakebed.blocks   CRC-32 of each 64 KiB of the bytes before the tail
lakebed.pages    of each row group, CRC-32s of all its pages as they lie; older files lack it

Values are text, base64 where they are bytes: some readers insist on UTF-8. Block checksums exist
because Parquet's page checksums leave out page headers, and a flipped bit there makes wrong rows.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Mapping

import anycrc
import msgspec

from lakebed.errors import CorruptError, NewerFormatError
from lakebed.model.files import FilePart
from lakebed.model.samples import Sample

FILE_FORMAT = 1
NAMES = frozenset(
    (b"lakebed.format", b"lakebed.sample", b"lakebed.groups", b"lakebed.blocks", b"lakebed.pages")
)
BLOCK_BYTES = 64 * 1024
_CRC32 = anycrc.Model("CRC32")
"""The same as `zlib.crc32`, at three times its pace."""


class RowGroupNote(msgspec.Struct, frozen=True, array_like=True):
    """The facts about a row group that Parquet does not record.

    first: encoded row key of its first row.
    row_bytes: of a row in memory, on average over the widest stretch of rows.
    """

    first: bytes
    row_bytes: int


class Notes(msgspec.Struct, frozen=True):
    """The facts about a file that Parquet does not record.

    last: encoded row key of the file's last row.
    pages: of each row group, four bytes a page; b"" where they are not known.
    """

    sample: Sample
    row_groups: tuple[RowGroupNote, ...]
    last: bytes
    blocks: tuple[int, ...]
    pages: tuple[bytes, ...]


class _RowGroups(msgspec.Struct, frozen=True, array_like=True):
    row_groups: tuple[RowGroupNote, ...]
    last: bytes


class _Sample(msgspec.Struct, frozen=True, array_like=True):
    stride: int
    rows: int
    keys: tuple[bytes, ...]
    slack: int = 0


def encode_notes(notes: Notes) -> dict[str, str]:
    """Return what goes into the footer."""
    s = notes.sample
    return {
        "lakebed.format": str(FILE_FORMAT),
        "lakebed.sample": _text(msgspec.msgpack.encode(_Sample(s.stride, s.rows, s.keys, s.slack))),
        "lakebed.groups": _text(msgspec.msgpack.encode(_RowGroups(notes.row_groups, notes.last))),
        "lakebed.blocks": _text(struct.pack(f">{len(notes.blocks)}I", *notes.blocks)),
        "lakebed.pages": _text(msgspec.msgpack.encode(notes.pages)),
    }


def verify_tail(part: FilePart, raw: bytes) -> None:
    """Compare the bytes of a file's tail, which hold its notes, with what its reference says
    (protocol H26).

    Raises:
        CorruptError: they contradict the checksum, or are not as many.
    """
    file = part.file
    if len(raw) != file.size - file.tail_offset or zlib.crc32(raw) != file.tail_checksum:
        raise CorruptError("a file's tail contradicts its checksum", path=part.path)


def decode_notes(metadata: Mapping[bytes, bytes] | None, path: str) -> Notes:
    """Return what the footer says.

    Raises:
        NewerFormatError: written by a newer Lakebed.
        CorruptError: it says nothing, or nonsense: not one of our files.
    """
    found = metadata or {}
    number = found.get(b"lakebed.format", b"")
    if number.isdigit() and int(number) > FILE_FORMAT:
        raise NewerFormatError("unknown file format", path=path, format=int(number))
    try:
        s = msgspec.msgpack.decode(_bytes(found[b"lakebed.sample"]), type=_Sample)
        row_groups = msgspec.msgpack.decode(_bytes(found[b"lakebed.groups"]), type=_RowGroups)
        raw = _bytes(found[b"lakebed.blocks"])
        blocks = struct.unpack(f">{len(raw) // 4}I", raw)
        pages = _pages(found.get(b"lakebed.pages"), len(row_groups.row_groups))
    except (KeyError, binascii.Error, msgspec.DecodeError, struct.error) as error:
        raise CorruptError("not a file of Lakebed's", path=path, problem=repr(error)) from error
    sample = Sample(s.keys, s.stride, s.rows, s.slack)
    return Notes(sample, row_groups.row_groups, row_groups.last, blocks, pages)


def _pages(text: bytes | None, row_groups: int) -> tuple[bytes, ...]:
    if text is None:
        return (b"",) * row_groups
    pages = msgspec.msgpack.decode(_bytes(text), type=tuple[bytes, ...])
    if len(pages) != row_groups:
        raise KeyError("lakebed.pages")
    return pages


def block_checksum(data: bytes | memoryview, before: int = 0) -> int:
    """Return the CRC-32 of a block, or of a page. before: that of the bytes in front of these."""
    checksum: int = _CRC32.calc(data, before)
    return checksum


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)
