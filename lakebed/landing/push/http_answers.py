"""An answer as HTTP has it, the same from every server of receivers."""

from __future__ import annotations

import msgspec

from lakebed.landing.push.receiver import Answer

CONTENT_TYPE = "application/json"
UNAUTHORIZED, METHOD_NOT_ALLOWED = 401, 405


def fields_of(answer: Answer) -> dict[str, str]:
    """Return the fields of an answer's head, but for those of the connection."""
    fields = {"Content-Type": CONTENT_TYPE}
    if answer.retry_after is not None:
        fields["Retry-After"] = str(answer.retry_after)
    if answer.status == UNAUTHORIZED:
        fields["WWW-Authenticate"] = "Bearer"
    if answer.status == METHOD_NOT_ALLOWED:
        fields["Allow"] = "GET, POST"
    return fields


def text_of(answer: Answer) -> bytes:
    """Return the body of an answer."""
    return msgspec.json.encode(answer.said) + b"\n"
