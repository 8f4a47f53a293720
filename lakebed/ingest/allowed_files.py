"""Users' files, as far as an instance lets messages name them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from lakebed.errors import InvalidError
from lakebed.ports.source_files import SourceFile, SourceFiles

SCHEME = "s3://"


class AllowedSources:
    """The allowed sources: `s3://BUCKET`, `s3://BUCKET/FOLDER`, folders of this machine."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._urls = [f"{source.rstrip('/')}/" for source in sources if source.startswith(SCHEME)]
        self._folders = [Path(p).resolve() for p in sources if not p.startswith(SCHEME)]

    def check(self, name: str) -> None:
        """Raise InvalidError for a file outside. A link counts for what it leads to."""
        if name.startswith(SCHEME):
            if any(map(f"{name}/".startswith, self._urls)):
                return
        elif any(map(Path(name).resolve().is_relative_to, self._folders)):
            return
        known = ", ".join([*self._urls, *map(str, self._folders)]) or "none"
        raise InvalidError(
            "the file is outside the allowed sources",
            file=name,
            allowed=known,
            hint="copy it there, or deploy the instance with its location among `-c sources=...`",
        )


class AllowedFiles:
    """Files below allowed sources. objects: who knows those with a URL; None: there are none."""

    def __init__(
        self, sources: Sequence[str], *, objects: SourceFiles | None, local: SourceFiles
    ) -> None:
        known = [p for p in sources if objects is not None or not p.startswith(SCHEME)]
        self._allowed = AllowedSources(known)
        self._objects = objects
        self._local = local

    def find(self, name: str) -> list[SourceFile]:
        """Return the files of a name. Raises: InvalidError for a file outside, too."""
        self._allowed.check(name)
        return self._owner(name).find(name)

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """Have a file at a path of this machine."""
        self._allowed.check(file.name)
        return self._owner(file.name).on_disk(file, spans)

    def _owner(self, name: str) -> SourceFiles:
        if name.startswith(SCHEME) and self._objects is not None:
            return self._objects
        return self._local
