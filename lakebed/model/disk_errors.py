"""Translates the operating system's errors into what the catcher should do next."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakebed.errors import (
    DeniedError,
    LakebedError,
    OutOfMemoryError,
    StorageFullError,
    UnavailableError,
)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)


def meaning_of(error: OSError, doing: str) -> LakebedError:
    """Return the error of this system that says what to do next. doing: what was tried."""
    facts: dict[str, Any] = {"doing": doing}
    if error.filename is not None:
        facts["path"] = os.fsdecode(error.filename)
    if is_full(error):
        return StorageFullError("the disk is full", hint="free space, then try again", **facts)
    facts["why"] = error.strerror or error
    if error.errno in _DENIED:
        hint = "let the user who runs this read and write there"
        return DeniedError("the file system denies it", hint=hint, **facts)
    if error.errno in _TOO_MANY_OPEN:
        hint = "raise the limit (`ulimit -n`), then try again"
        return UnavailableError("too many files are open", hint=hint, **facts)
    return UnavailableError("the file system refused", **facts)


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's share of it, has no room."""
    return error.errno in _FULL


def is_too_many_open(error: OSError) -> bool:
    """Return whether nothing is wrong with a file, but this process or machine can open no more."""
    return error.errno in _TOO_MANY_OPEN


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn the operating system's errors into this system's."""
    try:
        yield
    except OSError as error:
        raise meaning_of(error, doing) from error


def out_of_memory(error: Exception) -> OutOfMemoryError:
    """Return what an allocation that failed means: another try may have more room."""
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = "try again on a machine with more memory, or with fewer or smaller rows"
    return OutOfMemoryError("not enough memory", problem=problem, hint=hint)
