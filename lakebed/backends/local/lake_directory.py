"""A directory that is a lake: made, recognised, and refused where it could not keep its promises.

lakebed.json     the format of the directory, and where its objects are if not below it
objects/         sorted files and snapshots          unfinished/   objects on their way
logs/            a SQLite file per table             queues/       jobs, in SQLite
cache/           state of tables; may be deleted     spill/        rows being sorted; may be deleted
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import structs

from lakebed.backends.local.durable_folder import sync_file, sync_folder
from lakebed.backends.local.mounts import Mount, mount_of, mounts_of_this_machine
from lakebed.backends.local.process_folder import is_still_at
from lakebed.errors import CorruptError, InvalidError, NewerFormatError
from lakebed.model.disk_errors import meaning_of

FORMAT, FORMAT_ELSEWHERE = 1, 2
"""Formats of a lake with objects in the directory, and in another place. The second has a number of
its own, so that a Lakebed that would not look there refuses it."""

MARK = "lakebed.json"
LOGS = "logs"
_LOG = re.compile(r"[0-9a-f]{32}\.sqlite")
FOLDERS = ("objects", "unfinished", LOGS, "queues", "cache", "spill")


class LakeDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """The directory of a lake, and the paths of its parts. Every path is absolute.

    objects: None: in the directory.
    """

    path: Path
    objects: str | None
    logs: Path
    queues: Path
    cache: Path
    spill: Path


class _Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """The text of `lakebed.json`.

    checksum: of the format and of where objects lie, whatever a newer release adds; None: a release
        before checksums wrote it, or a person by hand.
    """

    format: int
    objects: str | None = None
    checksum: int | None = None

    def summed(self) -> int:
        """Return the CRC-32 of what the mark says."""
        return crc32(msgspec.json.encode([self.format, self.objects]))


def open_lake_directory(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    objects: str | None = None,
    before_making: Callable[[], None] = lambda: None,
    mounts: Sequence[Mount] | None = None,
) -> LakeDirectory:
    """Return the lake at `path`, made if `create` and there is none yet. Safe to race and repeat.

    objects: where they lie, once and for all; None: as the lake says, a new one in the directory.
    before_making: called before a new lake is made; what it raises ends it.
    mounts: the mount table; None: this machine's.

    Raises:
        InvalidError: a file, another directory, one that cannot be written, or on a network; its
            objects lie in another place.
        NewerFormatError: a newer Lakebed made it.
        CorruptError: its mark cannot be read, or is gone.
        StorageFullError, UnavailableError: the file system refused.
    """
    root = Path(path).resolve()
    _refuse_network(root, mounts_of_this_machine() if mounts is None else mounts)
    try:
        found = _mark_in(root)
        if found is None:
            _refuse_others(root, create=create)
            before_making()
            root.mkdir(parents=True, exist_ok=True)
            _write_mark(root, objects)
        mark = found or _mark_in(root) or _Mark(FORMAT)
        _refuse_other_location(root, mark, objects)
        for folder in FOLDERS:
            (root / folder).mkdir(exist_ok=True)
        _probe(root)
        sync_folder(root)
        if found is None:
            sync_folder(root.parent)
    except OSError as error:
        raise _refusal(error, root) from error
    parts = {part: root / part for part in (LOGS, "queues", "cache", "spill")}
    return LakeDirectory(path=root, objects=mark.objects, **parts)


def _mark_in(root: Path) -> _Mark | None:
    """Return the mark of the lake in a directory; None: it holds no lake."""
    try:
        with (root / MARK).open("rb") as file:
            text = file.read(4096)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        mark = msgspec.json.decode(text, type=_Mark)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = f'write {{"format": {FORMAT}}} into it if this is a lake'
        raise CorruptError("cannot read the lake's mark", path=root, hint=hint) from error
    is_unknown = mark.format > FORMAT_ELSEWHERE
    if mark.checksum != mark.summed() and (mark.checksum is not None or is_unknown):
        hint = (
            f'restore it; or write {{"format": {FORMAT}}} into it if objects lie in the directory'
        )
        raise CorruptError("the lake's mark contradicts its checksum", path=root, hint=hint)
    if is_unknown:
        hint = "upgrade this installation"
        raise NewerFormatError("a newer Lakebed made it", path=root, format=mark.format, hint=hint)
    if mark.format < FORMAT or (mark.format == FORMAT_ELSEWHERE) != (mark.objects is not None):
        hint = "it was edited by hand: undo that"
        raise CorruptError("the lake's mark contradicts itself", path=root, hint=hint)
    return mark


def _refuse_other_location(root: Path, mark: _Mark, objects: str | None) -> None:
    if objects is not None and objects != mark.objects:
        raise InvalidError(
            "the lake's objects lie in another place",
            path=root,
            asked=objects,
            objects=mark.objects or "the directory",
            hint="open it without saying where; a lake keeps its place",
        )


def _refuse_others(root: Path, *, create: bool) -> None:
    if root.exists() and not root.is_dir():
        raise InvalidError("a lake is a directory, this is a file", path=root, hint="name another")
    has_logs = any(_LOG.fullmatch(path.name) for path in root.glob(f"{LOGS}/*.sqlite"))
    if (root / MARK).exists():  # by another process, meanwhile
        return
    if has_logs:
        hint = (
            f'restore {MARK} from a backup, or write {{"format": {FORMAT}}} into it; where objects'
            f' lie in another place {{"format": {FORMAT_ELSEWHERE}, "objects": "THERE"}}'
        )
        raise CorruptError(
            "logs of tables are here, and the lake's mark is gone", path=root, hint=hint
        )
    if not create:
        raise InvalidError("there is no lake", path=root, hint="is the path right?")
    if root.is_dir():
        # What a crash, or another process that makes it right now, may have left is no stranger.
        names = [entry.name for entry in root.iterdir()]
        strangers = [n for n in names if n not in FOLDERS and not n.startswith(MARK)]
        if strangers:
            hint = "name an empty or a new directory"
            raise InvalidError("the directory holds other things", path=root, hint=hint)


def _write_mark(root: Path, objects: str | None) -> None:
    """Write the mark whole or not at all; one that another process wrote meanwhile stays."""
    new = root / f"{MARK}.{os.getpid()}.new"
    try:
        with new.open("wb") as file:
            mark = _Mark(FORMAT) if objects is None else _Mark(FORMAT_ELSEWHERE, objects)
            text = msgspec.json.encode(structs.replace(mark, checksum=mark.summed()))
            file.write(text + b"\n")
            file.flush()
            sync_file(file.fileno())
        with suppress(FileExistsError):
            os.link(new, root / MARK)
    finally:
        new.unlink(missing_ok=True)


def _probe(root: Path) -> None:
    """Do once what every object needs: make a file, link it, remove it."""
    new = root / "unfinished" / f"probe-{os.getpid()}"
    linked = new.with_name(f"{new.name}-linked")
    probed = False
    while not probed:
        with new.open("wb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # a sweep removes what is not locked
            if not is_still_at(file, new):
                continue
            try:
                linked.unlink(missing_ok=True)  # of a dead process with the same id
                os.link(new, linked)
                probed = True
            finally:
                for name in (new, linked):
                    name.unlink(missing_ok=True)


def _refuse_network(root: Path, mounts: Sequence[Mount]) -> None:
    mount = mount_of(str(root), mounts)
    if mount is not None and mount.is_network:
        raise InvalidError(
            "a network file system loses writes and locks",
            path=root,
            mount=mount.path,
            kind=mount.kind,
            hint="choose a directory on a local disk",
        )


def _refusal(error: OSError, root: Path) -> Exception:
    if error.errno in (errno.EACCES, errno.EROFS):
        hint = "choose a directory that you may write"
        return InvalidError("the directory cannot be written", path=root, hint=hint)
    if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
        hint = "choose a directory on a file system with hard links"
        return InvalidError("the file system has no hard links", path=root, hint=hint)
    if error.errno in (errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP):
        return InvalidError("not a directory", path=root, why=error.strerror, hint="name another")
    return meaning_of(error, "opening a lake")
