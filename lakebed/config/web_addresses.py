"""Addresses of servers on the web, as settings name them."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from lakebed.errors import InvalidError

SCHEMES: Final = ("https", "http")


def check_address(url: str, *, at: str = "") -> SplitResult:
    """Return the parts of a server's address. at: path of the setting, for messages.

    Raises:
        InvalidError: it is none that we ask; a login has no part in one.
    """
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_known = False
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if not is_known or not is_plain or parts.query or parts.fragment or parts.username is not None:
        hint = "write https://HOST, https://HOST:PORT or https://HOST/PATH"
        facts = {"at": at} if at else {}
        raise InvalidError("not an address of a server", hint=hint, **facts)
    return parts
