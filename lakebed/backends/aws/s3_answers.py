"""Reads from an exception of obstore whether a request was done, was refused, or may be either.

obstore gives classes for some answers and one class, GenericError, for all others; status, error
code and kind of failure stand in its text. What is not recognised counts as no answer: that is
always truthful. Texts hold key ids and addresses, so nothing but status and code leaves here.
"""

from __future__ import annotations

import re

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from lakebed.backends.aws.answers import Language, Meaning, RequestFailure

OBSTORE_ERRORS = (BaseError, OSError, ValueError)
"""All that obstore raises; FileNotFoundError is an OSError."""


_REFUSED_CODES = {
    "BadDigest",  # the bytes were damaged on their way
    "ConditionalRequestConflict",  # another request for the key runs: S3 says to try again
    "OperationAborted",
    "RequestTimeTooSkewed",
    "RequestTimeout",
    "SlowDown",
    "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
}
_DENIED_CODES = {
    "AccessDenied",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
_BY_CODE = {
    **dict.fromkeys(_REFUSED_CODES, Meaning.REFUSED),
    **dict.fromkeys(_DENIED_CODES, Meaning.DENIED),
    "NoSuchBucket": Meaning.NO_RESOURCE,
    "InternalError": Meaning.UNANSWERED,
}
_BY_STATUS = {
    401: Meaning.DENIED,
    403: Meaning.DENIED,
    404: Meaning.MISSING,
    408: Meaning.REFUSED,
    409: Meaning.REFUSED,
    412: Meaning.EXISTS,
    416: Meaning.SHORT,
    429: Meaning.REFUSED,
    503: Meaning.REFUSED,
}
_BY_CLASS: tuple[tuple[type[Exception], Meaning], ...] = (
    (AlreadyExistsError, Meaning.EXISTS),
    (PreconditionError, Meaning.EXISTS),
    (PermissionDeniedError, Meaning.DENIED),
    (UnauthenticatedError, Meaning.DENIED),
    (FileNotFoundError, Meaning.MISSING),
    (InvalidPathError, Meaning.INVALID),
    (NotSupportedError, Meaning.INVALID),
    (UnknownConfigurationKeyError, Meaning.INVALID),
    (ValueError, Meaning.INVALID),
)
_METADATA_SERVICE = re.compile(r"https?://(169\.254\.\d+\.\d+|\[fd00:ec2::\w+\])")
_CODE = re.compile(r"<Code>(\w+)</Code>|\bcode: \"(\w+)\"")
_STATUS = re.compile(r"\bstatus: (\d{3})\b|status code: (\d{3})\b")
_KIND = re.compile(r"HttpError \{\s*kind: (\w+)")


def answer_of(error: Exception) -> RequestFailure:
    """Return what an exception out of `OBSTORE_ERRORS` means."""
    text = str(error)
    status = int(_first(_STATUS, text) or 0)
    code = _first(_CODE, text)
    kind = _first(_KIND, text)
    why = " ".join(str(part) for part in (status or None, code, kind) if part)
    return RequestFailure(_meaning(error, text, status, code, kind), why or type(error).__name__)


S3 = Language("bucket", OBSTORE_ERRORS, answer_of)


def _meaning(error: Exception, text: str, status: int, code: str, kind: str) -> Meaning:
    if _METADATA_SERVICE.search(text):
        return Meaning.NO_CREDENTIALS
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if kind == "Connect":
        return Meaning.UNREACHABLE
    if "inner: BareRedirect" in text or 300 <= status < 500:
        return Meaning.INVALID
    for class_, meaning in _BY_CLASS:
        if isinstance(error, class_):
            return meaning
    return Meaning.UNANSWERED


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[found.lastindex or 0] if found else ""
