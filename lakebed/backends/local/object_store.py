"""Objects as files. An object appears by a hard link: whole, durable, and never over another.

objects/<path>       an object
unfinished/<name>    what a writer has written so far; the writer holds a lock on it while it lives
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, ClassVar

import anycrc

from lakebed.backends.local.durable_folder import (
    begin_sync,
    make_folders,
    sync_file,
    sync_folder,
    sync_remaining_folder,
)
from lakebed.backends.local.process_folder import is_held, is_still_at, remove_unless_held
from lakebed.errors import (
    CorruptError,
    InvalidError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.disk_errors import meaning_of, translated
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.model.paths import check_path
from lakebed.observe import usage
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectFacts, ObjectRanges

BUFFER_BYTES = 1 << 20
SYNC_BYTES = 8 << 20
"""Bytes that go to the disk at a time while more is written."""
_CRC64 = anycrc.Model("CRC64-NVME")
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_serial = itertools.count()


class LocalObjectWriter:
    """An object on its way, in a file of its own that is locked until the writer ends or dies."""

    def __init__(self, store: LocalObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._size = self._syncing = 0
        self._checksum = 0
        self._file, self._name = store._unfinished_file()  # noqa: SLF001  one class in two halves

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes. After an error what was written is removed."""
        if self._file.closed:
            raise AssertionError("the object is finished or given up")
        data = memoryview(data).cast("B")
        try:
            self._file.write(data)
        except OSError as error:
            self.abort()
            raise meaning_of(error, "writing an object") from error
        self._checksum = _CRC64.calc(data, self._checksum)
        self._size += len(data)
        written = self._size - BUFFER_BYTES
        if self._store.durable and written - self._syncing >= SYNC_BYTES:
            begin_sync(self._file.fileno(), self._syncing, written)
            self._syncing = written
        return len(data)

    def finish(self) -> ObjectFacts:
        """Make the object visible."""
        if self._file.closed:
            raise AssertionError("the object is finished or given up")
        try:
            self._file.flush()
            if self._store.durable:
                sync_file(self._file.fileno())
            self._store._link(self._name, self._path)  # noqa: SLF001  one class in two halves
        except OSError as error:
            raise meaning_of(error, "finishing an object") from error
        finally:
            self.abort()
        usage.count("local_put")
        usage.count("local_put_bytes", self._size)
        return ObjectFacts(self._path, self._size, self._checksum)

    def abort(self) -> None:
        """Forget what was written."""
        if self._file.closed:
            return
        with suppress(OSError):
            self._name.unlink()
        with suppress(OSError):  # its last bytes may not fit on a full disk: they are not wanted
            self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.abort()


class LocalObjectStore:
    """Objects of a lake's folder. clock: this machine's; measures how old unfinished objects are.

    durable: whether objects outlast the machine's sudden end; not those that only wait for the
    process that reads them.
    """

    folder: ClassVar[str] = "objects"
    """The folder below which objects lie."""
    unfinished_folder: ClassVar[str] = "unfinished"

    def __init__(self, root: str | os.PathLike[str], clock: Clock, *, durable: bool = True) -> None:
        self._root = Path(root).absolute()
        self._objects = self._root / self.folder
        self._unfinished = self._root / self.unfinished_folder
        self._clock = clock
        self.durable = durable
        self._known: set[Path] = set()
        self._prepare()

    def _prepare(self) -> None:
        with translated("making an object store"):
            for folder in (self._objects, self._unfinished):
                make_folders(self._root, folder, self._known)

    def create(self, path: str) -> LocalObjectWriter:
        """Begin an object. Raises: InvalidError, StorageFullError, UnavailableError."""
        with translated("beginning an object"):
            return LocalObjectWriter(self, check_path(path))

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`, or None. Its bytes are read for their checksum."""
        usage.count("local_get")
        try:
            with self._file_of(path).open("rb", buffering=0) as file:
                size = checksum = 0
                while piece := file.read(BUFFER_BYTES):
                    checksum = _CRC64.calc(piece, checksum)
                    size += len(piece)
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise meaning_of(error, "looking at an object") from error
        return ObjectFacts(path, size, checksum)

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`, or None."""
        usage.count("local_get")
        try:
            facts = self._file_of(path).stat()
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise meaning_of(error, "looking at an object") from error
        return facts.st_size if S_ISREG(facts.st_mode) else None

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        try:
            descriptor = os.open(self._file_of(path), os.O_RDONLY)
            try:
                found = [_bytes_of(descriptor, start, end, path) for start, end in ranges]
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in _MISSING:
                raise ObjectMissingError(path) from None
            raise meaning_of(error, "reading an object") from error
        usage.count("local_get", len(found))
        usage.count("local_get_bytes", sum(map(len, found)))
        return found

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range of several objects, one after the other: a thread costs
        more than a read of a local file."""
        return [self.read(path, ranges) for path, ranges in wanted]

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths with the prefix, ascending. Holds the names of one folder at a time."""
        folder = prefix.rpartition("/")[0]
        if folder:
            try:
                check_path(folder)
            except InvalidError:
                return  # nothing can lie there
        usage.count("local_list")
        with translated("listing objects"):
            yield from _walk(self._objects, f"{folder}/" if folder else "", prefix, below)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, durably."""
        usage.count("local_delete")
        changed: set[Path] = set()
        try:
            for path in paths:
                file = self._file_of(path)
                with suppress(FileNotFoundError, NotADirectoryError):
                    file.unlink()
                    changed.add(file.parent)
            for folder in changed if self.durable else ():
                sync_remaining_folder(folder)
        except OSError as error:
            if error.errno in (errno.EISDIR, errno.EPERM) and file.is_dir():
                return  # a folder is no object, and what is missing is no error
            raise meaning_of(error, "deleting objects") from error

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove what dead writers left behind that was last written that long ago."""
        end = self._clock.now() / MICROS_PER_SECOND - older_than_seconds
        removed = 0
        with translated("removing unfinished objects"):
            for file in list(self._unfinished.iterdir()):
                with suppress(FileNotFoundError):
                    if file.stat().st_mtime <= end:
                        removed += remove_unless_held(file)
        return removed

    def unfinished(self) -> Sequence[str]:
        """Return the names of what dead writers left behind."""
        found = []
        with translated("listing unfinished objects"):
            for file in sorted(self._unfinished.iterdir()):
                with suppress(FileNotFoundError):
                    if not is_held(file):
                        found.append(file.name)
        return found

    def url_of(self, path: str) -> str:
        """Return the path by which other programs on this machine read an object."""
        return str(self._file_of(path).resolve())

    def _file_of(self, path: str) -> Path:
        return self._objects / check_path(path)

    def _unfinished_file(self) -> tuple[BinaryIO, Path]:
        """Return a new, locked file. A dead process of the same id may have left one."""
        while True:
            name = self._unfinished / f"{os.getpid()}-{next(_serial)}"
            try:
                file = name.open("xb", buffering=BUFFER_BYTES)
            except FileExistsError:
                continue
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            if is_still_at(file, name):
                return file, name
            file.close()  # between open and lock it looked like a dead writer's

    def _link(self, name: Path, path: str) -> None:
        """Give a finished, synced file its path. What is linked and not synced may yet vanish."""
        file = self._file_of(path)
        folder = file.parent
        try:
            make_folders(self._root, folder, self._known)
        except NotADirectoryError:
            hint = "an object's path cannot go on below another object"
            raise InvalidError("an object is in the way", path=path, hint=hint) from None
        try:
            os.link(name, file)
        except FileExistsError:
            raise ObjectExistsError(path) from None
        except FileNotFoundError:
            self._known.discard(folder)
            raise UnavailableError("the unfinished object was removed", path=path) from None
        try:
            if self.durable:
                sync_folder(folder)
        except OSError as error:
            raise UnknownOutcomeError("cannot sync a folder", path=path, why=error) from error


def _bytes_of(descriptor: int, start: int, end: int, path: str) -> bytes:
    if not 0 <= start <= end:
        raise AssertionError(f"a range runs forwards, got {start} to {end}")
    data = os.pread(descriptor, end - start, start)
    while len(data) < end - start:  # one call gives at most 2 GiB
        more = os.pread(descriptor, end - start - len(data), start + len(data))
        if not more:
            raise CorruptError("object is shorter", path=path, size=start + len(data), end=end)
        data += more
    return data


def _walk(root: Path, folder: str, prefix: str, below: str | None) -> Iterator[str]:
    """Yield the paths inside a folder, which is "" or ends in a slash, by code points."""
    try:
        with os.scandir(root / folder) as entries:
            # A folder's slash takes part in the order: "a-b" comes before "a/b", and "a0" after it.
            names = [f"{e.name}/" if e.is_dir(follow_symlinks=False) else e.name for e in entries]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        path = folder + name
        if below is not None and path >= below:
            return
        if name.endswith("/"):
            if path.startswith(prefix) or prefix.startswith(path):
                yield from _walk(root, path, prefix, below)
        elif path.startswith(prefix):
            yield path
