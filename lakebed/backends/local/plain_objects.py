"""Objects as files of a folder under just their names, for other programs to find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ClassVar

from lakebed.backends.local.durable_folder import make_folders
from lakebed.backends.local.object_store import LocalObjectStore, LocalObjectWriter
from lakebed.errors import UnavailableError
from lakebed.model.disk_errors import translated

TRIES_MAX = 20


class PlainLocalObjects(LocalObjectStore):
    """Objects of a folder of a user's. Nothing is made before the first object is begun.

    Objects on their way lie in `_unfinished`, which listings leave out.
    """

    folder: ClassVar[str] = ""
    unfinished_folder: ClassVar[str] = "_unfinished"

    def _prepare(self) -> None:
        pass

    def create(self, path: str) -> LocalObjectWriter:
        """Begin an object. Makes the folders for it."""
        with translated("making an object store"):
            self._root.mkdir(parents=True, exist_ok=True)
            make_folders(self._root, self._unfinished, self._known)
        return super().create(path)

    def _unfinished_file(self) -> tuple[BinaryIO, Path]:
        """Return a new, locked file. Who tidies up may just have removed the empty folder."""
        for _ in range(TRIES_MAX):
            with suppress(FileNotFoundError):
                return super()._unfinished_file()
            self._unfinished.mkdir(parents=True, exist_ok=True)
        return super()._unfinished_file()

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths with the prefix, ascending, without what is on its way."""
        on_the_way = f"{self.unfinished_folder}/"
        yield from (
            path for path in super().list(prefix, below=below) if not path.startswith(on_the_way)
        )

    def tidy(self, *names: str) -> None:
        """Remove what dead writers left behind, and these folders where they are empty."""
        try:
            if self._unfinished.is_dir():
                self.abort_unfinished(older_than_seconds=0.0)
        except UnavailableError:
            if self._unfinished.is_dir():  # else another process tidies up, too
                raise
        for name in (self.unfinished_folder, *names):
            with suppress(OSError):
                (self._root / name).rmdir()
