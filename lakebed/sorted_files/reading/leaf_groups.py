"""Leaves that share files are read together: a row group of a shared file is read once, not once
for each leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lakebed.model.files import FilePart
from lakebed.model.ranges import KeyRange, union

TOGETHER_ROWS_MAX = 100_000
TOGETHER_PARTS_MAX = 1_024
"""Most parts of leaves that are read together although each has files of its own, too: their tails
are read before the first row is given. Leaves that share their files are read together however many
there are."""


class Together(msgspec.Struct, frozen=True):
    """The part of one file that is read for some leaves.

    part: its key range reaches from the first leaf to the last one.
    key_ranges: those of the leaves that have the file; neighbours are one.
    """

    part: FilePart
    key_ranges: tuple[KeyRange, ...]


def read_together(
    leaves: Sequence[Sequence[FilePart]], *, each: bool = False
) -> Iterator[list[Together]]:
    """Yield the parts of one merge after the other.

    leaves: in key order.

    Keys of one leaf are below those of the next, so merging the parts of several leaves gives the
    rows of one after the other.

    each: read every leaf on its own.
    """
    by_path: dict[str, list[FilePart]] = {}
    rows = 0
    for parts in leaves:
        fresh = sum(part.path not in by_path for part in parts)
        rows_after = rows + sum(part.rows for part in parts)
        fits = len(by_path) + fresh <= TOGETHER_PARTS_MAX and rows_after <= TOGETHER_ROWS_MAX
        if by_path and (each or fresh == len(parts) or (fresh and not fits)):
            yield _joined(by_path)
            by_path, rows_after = {}, rows_after - rows
        for part in parts:
            by_path.setdefault(part.path, []).append(part)
        rows = rows_after
    if by_path:
        yield _joined(by_path)


def _joined(by_path: dict[str, list[FilePart]]) -> list[Together]:
    return [_one(parts) for parts in by_path.values()]


def _one(parts: Sequence[FilePart]) -> Together:
    first, last = parts[0], parts[-1]
    if first is last:
        return Together(first, (first.key_range,))
    hull = KeyRange(first.key_range.min, last.key_range.max)
    rows = sum(part.rows for part in parts)
    part = FilePart(first.file, first.path, hull, rows)
    return Together(part, union([part.key_range for part in parts]))
