"""Finds where an export lies, and names its objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from lakebed.errors import CorruptError, ObjectExistsError, ObjectMissingError
from lakebed.ports.object_store import ObjectStore
from lakebed.query.parquet_objects import put_bytes

MANIFEST = "_manifest.json"
PROGRESS = "_progress"
PLAN = f"{PROGRESS}/plan.json.zst"
PROBE = f"{PROGRESS}/probe"
"""Is put and deleted where only that shows whether a target can be written."""
_ROWS = re.compile(r"[0-9a-f]{16}-[0-9]{6,}\.parquet")
BODY_BYTES_MAX = 1 << 30
"""Most bytes of a manifest or a plan."""


class ExportTarget(NamedTuple):
    """A folder of a user's.

    location: as people write it.
    tidy: removes folders that became empty; where there are no folders, nothing.
    is_probed: an object that is begun does not show yet whether it may be put.
    """

    objects: ObjectStore
    location: str
    tidy: Callable[[], None] = lambda: None
    is_probed: bool = False

    def address(self, path: str) -> str:
        """Return where people find an object."""
        return f"{self.location.rstrip('/')}/{path}"

    def check_writable(self) -> None:
        """Begin an object, and leave none.

        Raises:
            DeniedError: objects may not be put here, or not be deleted. As `finish_object`.
        """
        self.objects.create(PLAN).abort()
        if self.is_probed:
            with suppress(ObjectExistsError):  # of a process that was killed between the two
                put_bytes(self.objects, PROBE, b"")
            self.objects.delete([PROBE])

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
    """Return whether a path is one that `rows_path` gives."""
    return _ROWS.fullmatch(path) is not None
