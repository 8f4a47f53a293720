"""Users' files in folders of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.ports.source_files import SourceFile
from lakebed.user_files.input_paths import files_at


class LocalSourceFiles:
    """Files by path."""

    def find(self, name: str) -> list[SourceFile]:
        """Return the file at a path, or those below a folder."""
        path = Path(name)
        try:
            files = [_seen(one) for one in files_at(path)] if os.path.lexists(path) else []
        except OSError as error:
            raise _unreadable(path, error) from None
        if not files:
            hint = "look for it; names in folders that begin with '_' or '.' are skipped"
            raise InvalidError("no such file, or nothing in the folder", file=name, hint=hint)
        return files

    @contextmanager
    def on_disk(
        self,
        file: SourceFile,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> Iterator[Path]:
        """Have a file where it is."""
        path = Path(file.name)
        try:
            now = _seen(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        if (now.size, now.version) != (file.size, file.version):
            hint = "wait until the file is no longer written, then send the request again"
            raise UnreadableInputError("a file was changed meanwhile", file=path, hint=hint)
        yield path


def _seen(path: Path) -> SourceFile:
    facts = path.stat()
    # A file that is moved here, or that gets its old time back, is as new as its change is.
    modified = max(facts.st_mtime_ns, facts.st_ctime_ns) // 1_000
    return SourceFile(str(path), facts.st_size, str(facts.st_mtime_ns), modified)


def _unreadable(path: Path, error: OSError) -> UnreadableInputError:
    hint = "check that it exists and that you may read it"
    return UnreadableInputError("cannot read a file", file=path, reason=error.strerror, hint=hint)
