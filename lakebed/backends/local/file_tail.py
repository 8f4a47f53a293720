"""Files that grow, line by line, as a source of feeds.

A file is known by its inode and its first line, so one that is renamed is the same source split,
and one that is made anew under its name is another.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from lakebed.errors import InvalidError
from lakebed.model import disk_errors
from lakebed.ports.record_source import RecordLines, SourceSplit

HEAD_BYTES = 1_024
"""Of the first line, that a file is known by."""
LINE_BYTES_MAX = 64 << 20
READING = "reading a file of a feed"


class FileTail:
    """The lines of all files that a pattern matches. Nothing but whole lines is given; the last
    line waits for its line feed. Looks by listing, which works on every file system.

    pattern: of paths; `**` stands for any folders. Let it match the names that rotation gives.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._paths: dict[str, Path] = {}

    def splits(self) -> list[SourceSplit]:
        """Return the files that have a line."""
        found: dict[str, Path] = {}
        paths = glob.glob(self._pattern, recursive=True)  # noqa: PTH207 - absolute patterns, too
        for path in map(Path, sorted(paths)):
            with disk_errors.translated(READING):
                try:
                    name = _name_of_file(path)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ELOOP):
                        raise
                    continue  # renamed or removed just now, or a link that leads nowhere
            if name is not None:
                found.setdefault(name, path)
        self._paths = found
        return [SourceSplit(name, str(path)) for name, path in found.items()]

    def read(self, split: SourceSplit, begin: int, *, bytes_max: int) -> RecordLines | None:
        """Return whole lines behind a byte of a file."""
        path = self._paths.get(split.name, Path(split.title))
        with disk_errors.translated(READING):
            try:
                with path.open("rb") as file:
                    if _name_of(file) != split.name:  # another file has its name by now
                        return None
                    return _lines(file, path, begin, bytes_max)
            except FileNotFoundError:
                return None


def _lines(file: BinaryIO, path: Path, begin: int, bytes_max: int) -> RecordLines | None:
    size = os.fstat(file.fileno()).st_size
    if size < begin:
        hint = "it was cut, and what was appended since may be lost: let rotation rename it"
        raise InvalidError(
            "a file has fewer bytes than were taken", file=path, taken=begin, bytes=size, hint=hint
        )
    file.seek(begin)
    text = file.read(bytes_max)
    end = text.rfind(b"\n") + 1
    if not end and len(text) == bytes_max:  # a line that is longer
        text += file.read(LINE_BYTES_MAX)
        end = text.find(b"\n") + 1
        if not end and len(text) > LINE_BYTES_MAX:
            hint = f"a line has at most {LINE_BYTES_MAX:,} bytes"
            raise InvalidError("a line is too long", file=path, byte=begin, hint=hint)
    return RecordLines(begin, begin + end, text[:end]) if end else None


def _name_of_file(path: Path) -> str | None:
    if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for its writer
        return None
    with path.open("rb") as file:
        return _name_of(file)


def _name_of(file: BinaryIO) -> str | None:
    """Return by what a file is known. None: it has no whole line yet, and too few bytes."""
    head = file.read(HEAD_BYTES)
    end = head.find(b"\n") + 1
    if not end and len(head) < HEAD_BYTES:
        return None
    first = head[:end] if end else head
    digest = hashlib.blake2b(first, digest_size=12).hexdigest()
    return f"{os.fstat(file.fileno()).st_ino:x}-{digest}"
