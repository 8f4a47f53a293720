"""Addresses: what begins with a scheme, as `s3://bucket/key` does, and is no path of this
machine."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from lakebed.errors import InvalidError

FILE_SCHEME = "file"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two letters at least, for `C:/` is a disk. One slash: so a `Path` has it of `s3://`."""


def scheme_of(place: str | os.PathLike[str]) -> str | None:
    """Return the scheme of an address, in lower case; None: it is a path of this machine."""
    found = _SCHEME.match(os.fspath(place))
    return found[1].lower() if found else None


def without_file_scheme(place: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path that `file:///PATH` means; anything else as it is.

    Raises:
        InvalidError: a file of another machine.
    """
    if scheme_of(place) != FILE_SCHEME:
        return place
    parts = urlsplit(os.fspath(place))
    if parts.netloc not in {"", "localhost"}:
        hint = "write file:///PATH, or the path alone"
        raise InvalidError("a file of another machine", address=place, hint=hint)
    return unquote(parts.path)
