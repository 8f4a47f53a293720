"""Ends of jobs as events of EventBridge, on the default bus of the account."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_EVENTS, UnprocessedError
from lakebed.config.alarm_settings import JOB_EVENT_SOURCE, JOB_EVENT_TYPE
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.ports.job_end_bus import JobEnd

EVENTS_AT_ONCE = 10
"""Events that one request of EventBridge takes."""

_PUT = Request(what="publishing ends of jobs", needs="events:PutEvents", writes=True)


class EventBridgeBus:
    """Puts events whose detail is a `JobEnd`."""

    def __init__(self, clients: AmazonClients) -> None:
        self._clients = clients
        self._requests = clients.requests(AMAZON_EVENTS, "default")

    def put(self, ends: Sequence[JobEnd]) -> None:
        """Publish them, ten with a request; what the bus refuses of these is sent again."""
        entries = [_entry(end) for end in ends]
        for at in range(0, len(entries), EVENTS_AT_ONCE):
            waiting = entries[at : at + EVENTS_AT_ONCE]
            self._requests.run(_PUT, partial(self._put_some, waiting))

    def _put_some(self, waiting: list[dict[str, Any]]) -> None:
        """Send entries, and drop those that were taken from the list."""
        answer = self._clients.events.put_events(Entries=waiting)
        refused = [
            entry
            for entry, result in zip(waiting, answer["Entries"], strict=True)
            if result.get("ErrorCode")
        ]
        waiting[:] = refused
        if refused:
            raise UnprocessedError


def _entry(end: JobEnd) -> dict[str, Any]:
    at = datetime.fromtimestamp(end.at / MICROS_PER_SECOND, UTC)
    return {
        "Source": JOB_EVENT_SOURCE,
        "DetailType": JOB_EVENT_TYPE,
        "Time": at,
        "Detail": msgspec.json.encode(end).decode(),
    }
