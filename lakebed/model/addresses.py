"""Addresses: what begins with a scheme, as `s3://bucket/key` does, and is no path of this
machine."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from lakebed.errors import InvalidError

FILE_SCHEME = "file"
NAMED_FILES_MAX = 10_000
"""Names of files in one message."""
NAME_LENGTH_MAX = 2_048
"""Characters of a file's name in a message."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two letters at least, for `C:/` is a disk. One slash: so a `Path` has it of `s3://`."""

_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.+")


def scheme_of(address: str | os.PathLike[str]) -> str | None:
    """Return the scheme of an address, in lower case; None: it is a path of this machine."""
    found = _SCHEME.match(os.fspath(address))
    return found[1].lower() if found else None


def without_file_scheme(address: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path that `file:///PATH` means; anything else as it is.

    Raises:
        InvalidError: a file of another machine.
    """
    if scheme_of(address) != FILE_SCHEME:
        return address
    parts = urlsplit(os.fspath(address))
    if parts.netloc not in {"", "localhost"}:
        hint = "write file:///PATH, or the path alone"
        raise InvalidError("a file of another machine", address=address, hint=hint)
    return unquote(parts.path)


def directory_named(path: str | os.PathLike[str], *, instances: str) -> str | os.PathLike[str]:
    """Return the directory that is meant. instances: what the address of an instance begins with.

    Raises:
        InvalidError: the address of anything else.
    """
    path = without_file_scheme(path)
    scheme = scheme_of(path)
    if scheme is None:
        return path
    hint = f"give a directory, or {instances}INSTANCE for what was deployed"
    if scheme == "s3":
        address = re.sub("^s3:/+", "s3://", os.fspath(path))
        hint = f"only its objects can lie there: connect('./lake', objects='{address}')"
    raise InvalidError("a lake lies in a directory of this machine", lake=path, hint=hint)


def check_named_file(name: str) -> None:
    """Raise InvalidError if a message may not name a file so: it is neither a URL of S3 nor a
    path."""
    if not name.isprintable() or ("://" in name and not _URL.fullmatch(name)):
        hint = "write s3://BUCKET/KEY, or s3://BUCKET/FOLDER/ for all files below"
        raise InvalidError("not the name of a file", file=ascii(name)[:80], hint=hint)
