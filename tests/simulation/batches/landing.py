"""A folder of S3 that users write to: files come, change, go, and some hold what is no row."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.schema import Schema
from lakebed.ports.file_batches import SubmittedFile
from lakebed.ports.source_files import SourceFile
from tests.simulation.rows import Row


class Version(NamedTuple):
    """What a file holds, for ever. rows: None: nothing that becomes rows."""

    name: str
    version: str
    rows: tuple[Row, ...] | None


class Landing:
    """All files, as they are now, and as they were. new_rows: makes some that nothing else has."""

    def __init__(self, rng: random.Random, new_rows: Callable[[], tuple[Row, ...]]) -> None:
        self._rng = rng
        self._new_rows = new_rows
        self._last = 0
        self.now: dict[str, Version] = {}
        self.ever: dict[tuple[str, str], Version] = {}
        self.denied: set[str] = set()
        """Names that may not be read just now."""
        self.disturbed: set[tuple[str, str]] = set()
        """Versions that were replaced, deleted or denied at some time."""

    def write(self, name: str) -> Version:
        """Put a file, in place of what was there."""
        self.delete(name)
        self._last += 1
        is_bad = self._rng.random() < 0.1
        made = Version(name, f"etag-{self._last}", None if is_bad else self._new_rows())
        self.now[name] = self.ever[made.name, made.version] = made
        if name in self.denied:
            self.disturbed.add((name, made.version))
        return made

    def delete(self, name: str) -> None:
        """Take a file away, if it is there."""
        if before := self.now.pop(name, None):
            self.disturbed.add((before.name, before.version))

    def deny_or_allow(self, name: str) -> None:
        """Let a file be read no more, or again."""
        self.denied ^= {name}
        if (now := self.now.get(name)) is not None:
            self.disturbed.add((now.name, now.version))

    def must_be_taken(self, name: str, version: str) -> bool:
        """Whether nothing could keep a file from becoming rows."""
        file = self.ever[name, version]
        return file.rows is not None and (name, version) not in self.disturbed


class ModelFiles:
    """Files as one process sees them. found: what it was told of."""

    def __init__(self, landing: Landing, pass_door: Callable[[], None]) -> None:
        self._landing = landing
        self._pass_door = pass_door
        self.found: list[SourceFile] = []

    def find(self, name: str) -> list[SourceFile]:
        """Return the file of a name."""
        self._pass_door()
        file = self._landing.now.get(name)
        if file is None:
            raise InvalidError("no such file", file=name, hint=None)
        seen = SourceFile(name, 10 * len(file.rows or ((),)), file.version)
        self.found.append(seen)
        return [seen]

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """Not asked for here."""
        raise AssertionError(f"{file.name} is read as rows")


class ModelRows:
    """Rows of files as one process reads them, each as it was when it was opened."""

    def __init__(self, landing: Landing, pass_door: Callable[[], None]) -> None:
        self._landing = landing
        self._pass_door = pass_door

    def rows(self, file: SubmittedFile, _schema: Schema) -> Iterator[Any]:
        """Yield rows, in pieces between which others go on."""
        self._pass_door()
        if problem := self.problem(file):
            raise UnreadableInputError(problem, file=file.name, hint=None)
        rows = self._landing.ever[file.name, file.version].rows
        self._pass_door()
        if rows is None:
            raise UnreadableInputError("no rows", file=file.name, hint=None)
        yield list(rows)
        self._pass_door()

    def problem(self, file: SubmittedFile) -> str:
        """Return why a file is not there as it was submitted; "": it is."""
        now = self._landing.now.get(file.name)
        if now is None:
            return "it is gone"
        if file.name in self._landing.denied:
            return "it may not be read"
        return "" if now.version == file.version else "it was changed"
