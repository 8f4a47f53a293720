"""Where an export lies, and what its objects are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from lakebed.errors import CorruptError, ObjectMissingError
from lakebed.ports.object_store import ObjectStore

MANIFEST = "_manifest.json"
PROGRESS = "_progress"
PLAN = f"{PROGRESS}/plan.json.zst"
_ROWS = re.compile(r"[0-9a-f]{16}-[0-9]{6,}\.parquet")
BODY_BYTES_MAX = 1 << 30
"""Of a manifest or a plan."""


class ExportTarget(NamedTuple):
    """A folder of a user's.

    location: as people write it.
    tidy: removes folders that became empty; where there are no folders, nothing.
    """

    objects: ObjectStore
    location: str
    tidy: Callable[[], None] = lambda: None

    def address(self, path: str) -> str:
        """Return where people find an object."""
        return f"{self.location.rstrip('/')}/{path}"

    def body(self, path: str) -> bytes | None:
        """Return all bytes of an object; None: there is none.

        Raises:
            CorruptError: it is far too large to be one of ours.
        """
        size = self.objects.size_of(path)
        if size is None:
            return None
        if size > BODY_BYTES_MAX:
            raise CorruptError("an object of an export is too large", path=self.address(path))
        try:
            (body,) = self.objects.read(path, [(0, size)])
        except ObjectMissingError:  # deleted just now
            return None
        return body


def rows_path(plan: str, number: int) -> str:
    """Return the path of the file of a slice. plan: its id."""
    return f"{plan}-{number:06d}.parquet"


def note_path(plan: str, number: int) -> str:
    """Return the path of what is known of that file."""
    return f"{PROGRESS}/{plan}-{number:06d}.json"


def is_rows_path(path: str) -> bool:
    """Whether it is a path as `rows_path` gives it."""
    return _ROWS.fullmatch(path) is not None
