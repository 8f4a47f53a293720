"""Requests of objects that obstore sends: what each is counted as, and how many one call is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lakebed.backends.aws.requests import Request

COALESCE_BYTES: Final = 32 << 10
"""Ranges nearer than this are read as one: 0.4 ms at 90 MB/s, against a request's 15 ms."""

LISTING: Final = Request(what="listing objects", needs="s3:ListBucket", counter="s3_list")
DELETING: Final = Request(
    what="deleting objects", needs="s3:DeleteObject", writes=True, counter="s3_delete"
)


def reading(path: str, what: str = "reading an object", *, sent: int = 1) -> Request:
    """Return the request that reads of an object, or looks at it. sent: as so many of S3's."""
    needs = "s3:GetObject and s3:ListBucket"
    return Request(what=what, needs=needs, path=path, counter="s3_get", sent=sent)


def requests_for(ranges: Sequence[tuple[int, int]]) -> int:
    """Return with how many requests obstore reads ranges of an object: those that lie near each
    other are read as one."""
    count, read_to = 0, 0
    for start, end in sorted(ranges):
        if not count or start - read_to > COALESCE_BYTES:
            count, read_to = count + 1, end
        else:
            read_to = max(read_to, end)
    return count
