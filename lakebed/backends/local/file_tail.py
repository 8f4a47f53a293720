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

import pyarrow as pa

from lakebed.decoding.raw_records import lines_as_records
from lakebed.errors import InvalidError
from lakebed.feed_errors import PositionGoneError
from lakebed.model import disk_errors
from lakebed.ports.record_source import Records, SourceSplit

HEAD_BYTES = 1_024
"""Most bytes of the first line that identify a file."""
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

    def start(self, split: SourceSplit) -> int:
        """Return the first byte."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> FileReader:
        """Return a reader of whole lines from a byte of a file on."""
        return FileReader(self._paths.get(split.name, Path(split.title)), split.name, begin)

    def close(self) -> None:
        """Nothing is held."""


class FileReader:
    """Reads whole lines of one file. Nothing is open between two reads."""

    def __init__(self, path: Path, name: str, begin: int) -> None:
        self._path = path
        self._name = name
        self._next = begin
        self._size = begin

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the next whole lines. It does not wait: looking again is as cheap."""
        with disk_errors.translated(READING):
            try:
                with self._path.open("rb") as file:
                    if _name_of(file) != self._name:  # another file has its name by now
                        return None
                    lines = self._lines(file, bytes_max)
            except FileNotFoundError:
                return None
        if not lines:
            return None
        begin, self._next = self._next, self._next + len(lines)
        batch = lines_as_records(lines, begin)
        return Records(
            begin=begin, end=self._next, count=batch.num_rows, size=len(lines), batch=batch
        )

    def behind(self) -> int:
        """Return how many bytes of the file come behind those that were read."""
        return self._size - self._next

    def acknowledge(self, end: int) -> None:
        """Do nothing: a file keeps its lines."""

    def close(self) -> None:
        """Nothing is held."""

    def _lines(self, file: BinaryIO, bytes_max: int) -> bytes:
        begin, self._size = self._next, os.fstat(file.fileno()).st_size
        if self._size < begin:
            raise PositionGoneError(
                "a file has fewer bytes than were taken: it was cut",
                first=begin,
                end=0,
                file=self._path,
                bytes=self._size,
            )
        file.seek(begin)
        text = file.read(bytes_max)
        end = text.rfind(b"\n") + 1
        if not end and len(text) == bytes_max:  # a line that is longer
            text += file.read(LINE_BYTES_MAX)
            end = text.find(b"\n") + 1
            if not end and len(text) > LINE_BYTES_MAX:
                hint = f"a line has at most {LINE_BYTES_MAX:,} bytes"
                raise InvalidError("a line is too long", file=self._path, byte=begin, hint=hint)
        return text[:end]


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
