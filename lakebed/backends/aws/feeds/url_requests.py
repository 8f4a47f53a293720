"""Requests that came to a function's URL, and what their senders hear, as Lambda writes both:
payload format 2.0."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from lakebed.errors import InvalidError
from lakebed.landing.push.http_answers import fields_of, text_of
from lakebed.landing.push.receiver import Answer, RequestHead

OF_PIECES = "transfer-encoding"
"""A header of a body that came in pieces: Lambda has put it together."""
UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""The character that may stand for bytes that are no UTF-8, in a body that Lambda took for text."""


class _Http(msgspec.Struct, frozen=True):
    method: str


class _Context(msgspec.Struct, frozen=True):
    http: _Http


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    raw_path: str
    request_context: _Context
    headers: dict[str, str] = {}
    body: str | None = None
    is_base64_encoded: bool = False


class UrlRequest(msgspec.Struct, frozen=True):
    """A request with all of its body.

    head: of its headers, Lambda has joined those of one name, with commas.
    body: as it came; None: that is not known. Lambda takes some content types for text, and has
        changed what is no UTF-8 in it.
    """

    head: RequestHead
    body: bytes | None


def request_of(event: Mapping[str, Any]) -> UrlRequest:
    """Return the request of an event. Raises: InvalidError: it is no such event."""
    try:
        found = msgspec.convert(event, _Event)
        body = _body_of(found)
    except ValueError as error:
        raise InvalidError(
            "the event is not a request to a function's URL",
            reason=error,
            hint="call the function by its URL, not by an invocation",
        ) from None
    headers = {name.lower(): value for name, value in found.headers.items()}
    headers.pop(OF_PIECES, None)
    headers.setdefault("content-length", str(len(body or b"")))
    head = RequestHead(found.request_context.http.method, found.raw_path, [*headers.items()])
    return UrlRequest(head, body)


def response_of(answer: Answer) -> dict[str, Any]:
    """Return what Lambda makes a sender hear."""
    return {
        "statusCode": answer.status,
        "headers": fields_of(answer),
        "body": text_of(answer).decode(),
        "isBase64Encoded": False,
    }


def _body_of(event: _Event) -> bytes | None:
    """Return the bytes of a body. Raises: ValueError: they are not to be read."""
    said = event.body or ""
    if event.is_base64_encoded:
        return base64.b64decode(said, validate=True)
    return None if UNREADABLE in said else said.encode()
