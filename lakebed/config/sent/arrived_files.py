"""Reads what S3 says of a file that arrived, as EventBridge hands it on.

Source: "EventBridge event message structure", Amazon S3 User Guide. Unlike in S3's own
notifications, the key is as it is, not encoded.
"""

from __future__ import annotations

import msgspec

SOURCE, ARRIVED = "aws.s3", "Object Created"
"""The source that a rule selects, and the type of its events."""


class _Bucket(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    key: str


class _Detail(msgspec.Struct):
    bucket: _Bucket
    object: _Object


class _Event(msgspec.Struct):
    source: str
    detail: _Detail
    kind: str = msgspec.field(name="detail-type")


def arrived_file(body: bytes) -> str | None:
    """Return the URL of the file that an event tells of; None: it is no such event."""
    try:
        event = msgspec.json.decode(body, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if (event.source, event.kind) != (SOURCE, ARRIVED):
        return None
    return f"s3://{event.detail.bucket.name}/{event.detail.object.key}"
