"""The door to secrets: definitions name them, and only what speaks to a source reads them."""

from __future__ import annotations

import hmac
import re
from typing import NoReturn, Protocol

from lakebed.errors import InvalidError

SECRET_SCHEME = "secret:"  # noqa: S105 - what stands before a secret's name
SECRET_BYTES_MAX = 64 << 10
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_HIDDEN = "<secret>"


class Secret:
    """A secret that is shown nowhere: not in texts, logs, errors or stored bytes."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]  # a set of secrets is of no use

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself, for what speaks to the source."""
        return self._value

    def __repr__(self) -> str:
        return _HIDDEN

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")


class Secrets(Protocol):
    """Secrets by name. Every implementation passes `tests/contracts/feeds/test_secrets.py`."""

    def read(self, name: str) -> Secret:
        """Return the secret of that name, as it is now.

        Raises:
            SecretMissingError: there is none.
            InvalidError: not a name; what is stored is no text, or too large.
            DeniedError: it may not be read, or others than its owner may read it, too.
            UnavailableError: try again.
        """
        ...


def secret_name(name: object) -> str:
    """Return `name` as that of a secret.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "use 1 to 63 of A-Z, a-z, 0-9, '_' and '-', beginning with a letter"
        raise InvalidError("not a name of a secret", hint=hint)  # what is there may be the secret
    return name


def secret_of(name: str, value: bytes) -> Secret:
    """Return what is stored as a secret; the line feed that editors leave at its end is none of it.

    Raises:
        InvalidError: it is empty, too large, or no text.
    """
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        hint = "store it as UTF-8"
        raise InvalidError("a secret is no text", secret=name, hint=hint) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or len(value) > SECRET_BYTES_MAX:
        hint = f"store 1 to {SECRET_BYTES_MAX} bytes"
        raise InvalidError("a secret is empty or too large", secret=name, hint=hint)
    return Secret(text)
