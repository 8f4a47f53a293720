"""Translates a failed request to a store, of any client, into what its caller can do next."""

from __future__ import annotations

import enum
from collections.abc import Callable

import msgspec


class Meaning(enum.Enum):
    """The meaning of a failed request for its caller."""

    EXISTS = "the key is taken"
    UNMET = "the condition that it came with does not hold"
    MISSING = "there is no such key"
    NO_RESOURCE = "there is no such bucket, table or queue"
    DENIED = "the credentials do not suffice"
    NO_CREDENTIALS = "none were found, so nothing was sent"
    SHORT = "the object ends before the range"
    INVALID = "it can never work"
    UNREACHABLE = "nothing was sent"
    REFUSED = "it was not done, and may work later"
    UNANSWERED = "it may be done, now or later"

    @property
    def may_pass(self) -> bool:
        """Return whether the same request may work later."""
        return self in (Meaning.UNREACHABLE, Meaning.REFUSED, Meaning.UNANSWERED)


class RequestFailure(msgspec.Struct, frozen=True):
    """A failed request.

    why: status and error code, or the kind of failure.
    permission: the one that lacks, where the store names it.
    unmet: of several writes, those whose condition does not hold, by position.
    """

    meaning: Meaning
    why: str
    permission: str = ""
    unmet: tuple[int, ...] = ()


class Language(msgspec.Struct, frozen=True):
    """The way in which a client reports failures.

    errors: what it raises.
    answer_of: what one of them means.
    noun: what its requests go to.
    """

    noun: str
    errors: tuple[type[Exception], ...]
    answer_of: Callable[[Exception], RequestFailure]
