"""Requests of DynamoDB with many items, whose bodies are written here.

botocore looks at each attribute of each item twice: to encode it, and to find the names of tables
in it. Of a write of a hundred items that is three quarters of the processor time. msgspec writes
the same JSON, bytes as base64; what remains botocore's is all but the body: address, signature,
connection, and what the answer means.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from lakebed.backends.aws.costs.counted_requests import WITH_UNITS

Answer = TypeVar("Answer")


class EncodedRequests:
    """Puts bodies into the requests of clients that it was given. Safe to share among threads."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def join(self, client: Any) -> None:  # noqa: ANN401 - boto3's classes are made at run time
        """Let a client of DynamoDB send what `send` encodes."""
        client.meta.events.register("before-call.dynamodb", self._put_body)

    def send(
        self, call: Callable[..., Answer], member: str, asked: Mapping[str, Any] | Sequence[Any]
    ) -> Answer:
        """Return what one of boto3's functions answers.

        member: the name of its one argument.
        asked: that argument, of which botocore sees nothing.
        """
        empty: object = {} if isinstance(asked, Mapping) else []
        self._thread.body = msgspec.json.encode({member: asked, **WITH_UNITS})
        try:
            return call(**{member: empty})
        finally:
            self._thread.body = None

    def _put_body(self, params: dict[str, Any], **_: object) -> None:
        body = getattr(self._thread, "body", None)
        if body is not None:
            params["body"] = body
