"""The door to users' own files, which messages name. They are read, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from lakebed.errors import InvalidError


class SourceFile(msgspec.Struct, frozen=True):
    """A file as it was seen.

    version: another one when the file was changed.
    modified: since when it is there as it is, in microseconds of the epoch; 0: not known.
    """

    name: str
    size: int
    version: str
    modified: int = 0


class SourceFiles(Protocol):
    """Files by name. Every implementation passes `tests/contracts/test_source_files.py`."""

    def find(self, name: str) -> list[SourceFile]:
        """Return the file of a name, or those below a folder, by name: all but names that begin
        with `_` or `.`, in folders too.

        Raises:
            InvalidError: there is none, or it may not be read (`is_denied`). UnavailableError: ask
                again.
        """
        ...

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """Have a file at a path of this machine until the `with` ends; it ends in the same suffix.

        spans: only these bytes `[begin, end)` are wanted: others may read as zeros. None: all.

        Raises:
            UnreadableInputError: it was changed since it was found, or is gone.
            UnavailableError, StorageFullError: try again.
        """
        ...


def is_denied(error: InvalidError) -> bool:
    """Return whether `find` refused a file for want of a permission, not for what it is."""
    return "permission" in error.facts


def is_skipped(below: str) -> bool:
    """Return whether a file of a folder is none of its rows. below: its name from there."""
    return any(part.startswith(("_", ".")) for part in below.split("/"))
