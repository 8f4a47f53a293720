"""A spool of files in a folder of this process: each frame has its length and its CRC-32 before it.

Nothing is synced: a crash ends the process, and with it all that a spool is for.
"""

from __future__ import annotations

import os
import shutil
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from lakebed.errors import CorruptError, LakebedError, UnavailableError
from lakebed.model.disk_errors import translated
from lakebed.ports.spool import FrameAt

HEAD_BYTES: Final = 8
FILE_BYTES: Final = 16 << 20
"""A file ends with the frame that reaches so far: then its room comes back soon."""


class LocalSpool:
    """Frames in files of a folder, which is made when the first one comes.

    folder: of this spool alone; what is in it is removed.
    """

    def __init__(self, folder: Path, *, file_bytes: int = FILE_BYTES) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._sizes: dict[int, int] = {}
        self._kept: dict[int, int] = {}
        self._newest = 0
        self._descriptor: int | None = None

    def size(self) -> int:
        """Return how many bytes lie on the disk."""
        return sum(self._sizes.values())

    def size_of(self, length: int) -> int:
        """Return how many bytes a frame takes."""
        return HEAD_BYTES + length

    def append(self, body: bytes) -> FrameAt:
        """Keep some bytes: see `FrameSpool`."""
        with translated("spilling records"):
            descriptor = self._open_file()
            offset = self._sizes[self._newest]
            frame = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
            try:
                _write(descriptor, frame, offset)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, offset)
                raise
        self._sizes[self._newest] += len(frame)
        self._kept[self._newest] = self._kept.get(self._newest, 0) + 1
        at = FrameAt(self._newest, offset, len(body))
        if self._sizes[self._newest] >= self._file_bytes:
            self._end_file()
        return at

    def read(self, at: FrameAt) -> bytes:
        """Return a frame: see `FrameSpool`."""
        with translated("reading spilled records"):
            try:
                with self._path(at.file).open("rb") as file:
                    file.seek(at.offset)
                    frame = file.read(HEAD_BYTES + at.length)
            except FileNotFoundError:
                raise CorruptError("spilled records are gone", file=at.file) from None
        head, body = frame[:HEAD_BYTES], frame[HEAD_BYTES:]
        wanted = at.length.to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big")
        if len(body) != at.length or head != wanted:
            raise CorruptError("spilled records are damaged", file=at.file, offset=at.offset)
        return body

    def drop(self, at: FrameAt) -> None:
        """Let go of a frame: see `FrameSpool`."""
        self._kept[at.file] -= 1
        if self._kept[at.file]:
            return
        if at.file == self._newest:
            self._end_file()
        del self._kept[at.file], self._sizes[at.file]
        with suppress(OSError):
            self._path(at.file).unlink()

    def clear(self) -> None:
        """Let go of all frames."""
        with suppress(LakebedError):
            self._end_file()
        self._sizes.clear()
        self._kept.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Let go of everything."""
        self.clear()

    def _open_file(self) -> int:
        if self._descriptor is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(self._path(self._newest + 1), flags, 0o600)
            self._newest += 1
            self._descriptor = descriptor
            self._sizes[self._newest] = 0
            self._kept[self._newest] = 0
        return self._descriptor

    def _end_file(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with translated("closing spilled records"):
                os.close(descriptor)

    def _path(self, file: int) -> Path:
        return self._folder / f"{file:06d}.frames"


def _write(descriptor: int, frame: bytes, offset: int) -> None:
    rest = memoryview(frame)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        if not written:
            raise UnavailableError("the file system took nothing of spilled records")
        rest, offset = rest[written:], offset + written
