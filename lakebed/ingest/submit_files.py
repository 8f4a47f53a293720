"""Files are submitted: looked at, and put where they wait for a batch. Their rows come later."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from lakebed.errors import InvalidError, LakebedError
from lakebed.model.addresses import scheme_of
from lakebed.model.names import TableId, TableName
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches, SubmittedFile, check_files
from lakebed.ports.source_files import SourceFile, SourceFiles, is_denied
from lakebed.tasks.named_files import PROBLEMS_LISTED, named_files

FIRST_BYTE = [(0, 1)]
AT_ONCE = 1_000
"""Files that are put with one call of the store."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of submitting files.

    files: how many the names meant.
    added: how many of them wait now that did not before.
    doubles: how many waited already, or were taken into a batch, as they are.
    """

    files: int
    added: int
    doubles: int


class SubmitFiles:
    """Submits files. Safe to repeat, and to kill anywhere: what waits already is a double.

    files: those that may be read.
    """

    def __init__(self, *, batches: FileBatches, files: SourceFiles, clock: Clock) -> None:
        self._batches = batches
        self._files = files
        self._clock = clock

    def run(
        self,
        table: TableId,
        name: TableName,
        names: Sequence[str],
        *,
        files_max: int | None = None,
    ) -> Submitted:
        """Let the files of these names wait for the table's next batches. Folders are expanded.

        files_max: what there is time for; None: any number.

        Raises:
            InvalidError: a file is gone, empty, unreadable, of no known format, or outside of where
                files may lie; they are too many; none was submitted. It names all such files, or
                the first ten.
            UnavailableError, UnknownOutcomeError: some may wait; submit them again.
        """
        found = named_files([absolute(one) for one in names], self._files)
        if files_max is not None and len(found) > files_max:
            hint = "name folders below, or submit them by `lakebed submit`, which takes any number"
            raise InvalidError(
                "too many files at once", count=len(found), files_max=files_max, hint=hint
            )
        self._check(found)
        return self._put(table, name, found)

    def arrived(self, table: TableId, name: TableName, file: str) -> str:
        """Let one file wait that was heard of. Returns why it cannot be taken in; "": it waits,
        or is a double.

        Raises:
            InvalidError: it may not be read.
            UnavailableError, UnknownOutcomeError: it may wait; submit it again.
        """
        try:
            found = [one for one in named_files([file], self._files) if one.name == file]
            if not found:
                return "it is gone, and its name is a folder's"
            self._check(found)
            self._put(table, name, found)
        except InvalidError as error:
            if is_denied(error):
                raise
            return str(error)
        return ""

    def _put(self, table: TableId, name: TableName, found: Sequence[SourceFile]) -> Submitted:
        now = self._clock.now()
        files = [SubmittedFile(one.name, one.size, one.version, now) for one in found]
        check_files(files)
        added = doubles = 0
        for start in range(0, len(files), AT_ONCE):
            counts = self._batches.submit(table, files[start : start + AT_ONCE])
            added, doubles = added + counts.added, doubles + counts.doubles
        events.emit(
            events.FILES_SUBMITTED, table=name, files_count=len(files), doubles_count=doubles
        )
        return Submitted(files=len(files), added=added, doubles=doubles)

    def _check(self, found: Sequence[SourceFile]) -> None:
        """Raise InvalidError if some have no bytes, or may not be read."""
        problems = [problem for file in found if (problem := self._problem(file))]
        if problems:
            listed = "; ".join(problems[:PROBLEMS_LISTED])
            hint = "leave them out, or mend them; then submit all again"
            raise InvalidError(
                "files cannot be taken in", count=len(problems), problems=listed, hint=hint
            )

    def _problem(self, file: SourceFile) -> str:
        """Return what is wrong with a file; "": nothing that is seen from here. A file of S3 is
        read when its batch is."""
        if not file.size:
            return f"{file.name} is empty"
        if scheme_of(file.name) is None:
            try:
                with self._files.on_disk(file, FIRST_BYTE) as path, path.open("rb") as opened:
                    opened.read(1)
            except OSError as error:
                return f"{file.name} cannot be read: {error.strerror}"
            except LakebedError as error:
                return f"{file.name}: {error.message}"
        return ""


def absolute(name: str) -> str:
    """Return a name that means the same file to who takes it in, wherever that runs."""
    if scheme_of(name) is not None:
        return name
    folder = name.endswith(os.sep)
    return os.path.abspath(name) + (os.sep if folder else "")  # noqa: PTH100  a link stays one
