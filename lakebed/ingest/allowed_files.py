"""Users' files, as far as an instance lets messages name them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from lakebed.errors import InvalidError
from lakebed.ports.source_files import SourceFile, SourceFiles

SCHEME = "s3://"


class AllowedFiles:
    """Files below places: `s3://BUCKET`, `s3://BUCKET/FOLDER`, or folders of this machine."""

    def __init__(
        self, places: Sequence[str], *, objects: SourceFiles | None, local: SourceFiles
    ) -> None:
        self._urls = [f"{place.rstrip('/')}/" for place in places if place.startswith(SCHEME)]
        self._folders = [Path(p).resolve() for p in places if not p.startswith(SCHEME)]
        self._objects = objects
        self._local = local

    def find(self, name: str) -> list[SourceFile]:
        """Return the files of a name. Raises: InvalidError for what lies elsewhere, too."""
        return self._owner(name).find(name)

    def on_disk(self, file: SourceFile) -> AbstractContextManager[Path]:
        """Have a file at a path of this machine."""
        return self._owner(file.name).on_disk(file)

    def _owner(self, name: str) -> SourceFiles:
        """Return who knows a file. A link counts for what it leads to."""
        if name.startswith(SCHEME):
            if self._objects is not None and any(map(name.startswith, self._urls)):
                return self._objects
        elif any(map(Path(name).resolve().is_relative_to, self._folders)):
            return self._local
        known = ", ".join([*self._urls, *map(str, self._folders)]) or "none"
        raise InvalidError(
            "a file elsewhere than where files may lie",
            file=name,
            allowed=known,
            hint="copy it there, or deploy the instance with its place among `-c sources=...`",
        )
