"""Finds which files a path names. Nothing is opened: a pipe, a device or a loop of links would
never end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from lakebed.errors import InvalidError, UnreadableInputError

ENTRIES_MAX = 1_000_000
"""Most entries that are looked at below one folder: more is a mistake, such as a whole disk."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_Identity = tuple[int, int]
"""Device and inode: one for all ways to a folder."""


def files_at(path: Path) -> list[Path]:
    """Return the file at a path, or the files below a folder, by name; `_` and `.` names in it are
    skipped. Empty: the folder has none.

    Raises:
        InvalidError: there is nothing, no file, the root of the file system, a folder that is
            reached by two ways, or one with too many entries. UnreadableInputError: it cannot be
            looked at.
    """
    facts = _facts(path)
    if not stat.S_ISDIR(facts.st_mode):
        return [path]
    if os.path.samestat(facts, _facts(Path("/"))):
        hint = "name the folder that holds the files"
        raise InvalidError("the whole file system is not an input", path=path, hint=hint)
    return sorted(_below(path, {_identity(facts): path}, [0]))


def _below(folder: Path, ways: dict[_Identity, Path], looked_at: list[int]) -> Iterator[Path]:
    for path in _entries(folder):
        looked_at[0] += 1
        if looked_at[0] > ENTRIES_MAX:
            hint = "name folders further down, one request each"
            raise InvalidError(
                "a folder with too many files", path=path, files_max=ENTRIES_MAX, hint=hint
            )
        if path.name.startswith(("_", ".")):
            continue
        facts = _facts(path)
        if not stat.S_ISDIR(facts.st_mode):
            yield path
            continue
        other = ways.setdefault(_identity(facts), path)
        if other != path:
            hint = "its rows would be taken twice, or for ever: remove the symbolic link"
            raise InvalidError("two paths lead to one folder", path=path, other=other, hint=hint)
        yield from _below(path, ways, looked_at)


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return [Path(entry.path) for entry in found]
    except OSError as error:
        raise _unreadable(folder, error) from None


def _facts(path: Path) -> os.stat_result:
    """Return what the system says of a file or folder. Raises: InvalidError: it is neither."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            hint = "mend the link, or remove it"
            raise UnreadableInputError(
                "a symbolic link leads nowhere", path=path, hint=hint
            ) from None
        hint = "look for it" if path.is_absolute() else f"paths are relative to {Path.cwd()}"
        raise InvalidError("no such file or directory", path=path, hint=hint) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    kind = _KINDS.get(stat.S_IFMT(facts.st_mode))
    if kind is not None:
        hint = "write the rows to a file, and name that one"
        raise InvalidError(f"{kind} is no file", path=path, hint=hint)
    return facts


def _identity(facts: os.stat_result) -> _Identity:
    return facts.st_dev, facts.st_ino


def _unreadable(path: Path, error: Exception) -> UnreadableInputError:
    reason = error.strerror if isinstance(error, OSError) else error
    hint = "check that it exists and that you may read it"
    return UnreadableInputError("cannot access an input", path=path, reason=reason, hint=hint)
