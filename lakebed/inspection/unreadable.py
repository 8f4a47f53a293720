"""Errors that fsck takes for findings, of one part of one table, and goes on."""

from __future__ import annotations

from lakebed.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)

BROKEN = (AssertionError, CorruptError, LookupError, TypeError, ValueError)
"""Errors that say that what was read contradicts itself."""
UNREADABLE = (DeniedError, InvalidError, OSError, UnavailableError, UnknownOutcomeError)
"""A disk, a permission or a store refuses: whether what lies there is whole is not known."""


def problem_of(error: Exception) -> str:
    """Return what a finding says of an error.

    Raises:
        StorageFullError: the error is one: it is of this machine, and says nothing of the lake.
    """
    if isinstance(error, StorageFullError):
        raise error
    return str(error) or type(error).__name__
