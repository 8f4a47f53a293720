"""Files and references to them: what the state knows of the rows that lie in object storage."""

from __future__ import annotations

import msgspec

from lakebed.model.keys import above_prefix
from lakebed.model.names import FileName, PartitionId
from lakebed.model.ranges import KeyRange

BOUND_BYTES = 24


class KeyBounds(msgspec.Struct, frozen=True, array_like=True):
    """No row's encoded key lies below `min` or at or above `max`; each at most 24 bytes.

    Rounded outward: `min` is cut, `max` is the smallest 24 bytes above the largest key. None:
    unbounded.
    """

    min: bytes
    max: bytes | None

    def as_range(self) -> KeyRange:
        """Return the same as a range."""
        return KeyRange(self.min, self.max)

    def inside(self, key_range: KeyRange) -> KeyBounds:
        """Return the bounds of those rows that lie in `region`, rounded outward again."""
        both = self.as_range().meets(key_range)
        return bounds_of_range(both)


def bounds_of(smallest: bytes, largest: bytes) -> KeyBounds:
    """Return the bounds of rows between two encoded keys, both inclusive."""
    end = largest[:BOUND_BYTES]
    return KeyBounds(smallest[:BOUND_BYTES], above_prefix(end))


def bounds_of_range(r: KeyRange) -> KeyBounds:
    """Return bounds that hold a half-open range."""
    if r.max is None or len(r.max) <= BOUND_BYTES:
        return KeyBounds(r.min[:BOUND_BYTES], r.max)
    return KeyBounds(r.min[:BOUND_BYTES], above_prefix(r.max[:BOUND_BYTES]))


class StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """An immutable, sorted object.

    checksum: CRC-64/NVME of all of it, as S3 computes it.

    Footer and page index are the bytes `[tail_offset, size)`, with the CRC-32 `tail_checksum`.
    """

    name: FileName
    size: int
    tail_offset: int
    checksum: int
    tail_checksum: int


class FileReference(msgspec.Struct, frozen=True, array_like=True):
    """The rows of `file` whose keys fall inside `partition`.

    A file that crosses a split point has one reference per partition it reaches; its rows are read
    through exactly one of them, so no row is counted twice.

    rows: inside this partition, an estimate when `exact` is false: after a split rows are shared
        out by the split's figures.
    """

    file: StoredFile
    partition: PartitionId
    rows: int
    bounds: KeyBounds
    exact: bool = True


class FilePart(msgspec.Struct, frozen=True):
    """The part of a file that is read: the rows inside `key_range`.

    path: of its object.
    """

    file: StoredFile
    path: str
    key_range: KeyRange
    rows: int
