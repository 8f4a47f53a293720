"""Starts, stops, suspends and resumes feeds: what is wanted of them, in the registry. Workers see
it there and do it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from lakebed.errors import InvalidError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.model.feeds.definitions import WantedState
from lakebed.ports.feed_registry import FeedRegistry

Action = Literal["start", "stop", "suspend", "resume"]
Standing = Literal["stopped", "running", "suspended", "failed"]

WANTED: Mapping[Action, WantedState] = {
    "start": "running",
    "stop": "stopped",
    "suspend": "suspended",
    "resume": "running",
}
ALLOWED: Mapping[Standing, tuple[Action, ...]] = {
    "stopped": ("start",),
    "running": ("stop", "suspend"),
    "suspended": ("start", "stop", "resume"),
    "failed": ("start", "stop"),
}
"""Actions that may be asked of a feed, by its standing."""

TRIES_MAX = 10


class FeedStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a feed, and the state that it should have.

    failed: why it, `feed.NAME`, or one of its connections, `connection.NAME`, does not go on;
        empty: nothing failed.
    """

    feed: str
    standing: Standing
    wanted: WantedState
    failed: Mapping[str, str] = {}


class FeedLifecycle:
    """Changes what is wanted of feeds, by compare and set."""

    def __init__(self, registry: FeedRegistry) -> None:
        self._registry = registry

    def run(self, action: Action, name: str) -> FeedStanding:
        """Start, stop, suspend or resume a feed. Returns how it stands then. To start or to stop
        one that failed forgets why, also of its connections.

        Raises:
            InvalidError: there is none of that name, or as it stands it cannot be; nothing was
                changed.
            DefinitionChangedError: other processes change it all the time.
            UnknownOutcomeError: no answer came; look how it stands.
        """
        failure: DefinitionChangedError | None = None
        for _ in range(TRIES_MAX):
            known = read_definitions(self._registry)
            before = standing_of(known, name)
            if action not in ALLOWED[before.standing]:
                hint = f"it may {' or '.join(ALLOWED[before.standing])}"
                raise InvalidError(
                    f"a feed that is {before.standing} cannot {action}", feed=name, hint=hint
                )
            try:
                self._forget_failures(known, name)
                entry = known.entries["feed", name]
                self._registry.want("feed", name, WANTED[action], entry.revision)
            except DefinitionChangedError as error:
                failure = error
                continue
            return FeedStanding(feed=name, standing=_standing(action), wanted=WANTED[action])
        assert failure is not None, "each try ends or fails"
        raise failure

    def _forget_failures(self, known: KnownDefinitions, feed: str) -> None:
        failed = [one.defined_as for one in known.connections_of(feed) if one.failed is not None]
        for name in dict.fromkeys(failed):
            entry = known.entries["connection", name]
            self._registry.want("connection", name, entry.wanted, entry.revision)


def standing_of(known: KnownDefinitions, name: str) -> FeedStanding:
    """Return how a feed stands. Raises: InvalidError: there is none of that name."""
    feed = known.feed(name)
    failures = {f"connection.{c.connection.name}": c.failed for c in known.connections_of(name)}
    failures = {f"feed.{name}": feed.failed, **failures}
    failed = {of: f"{one.code}: {one.reason}" for of, one in failures.items() if one is not None}
    standing: Standing = "failed" if failed and feed.wanted == "running" else feed.wanted
    return FeedStanding(feed=name, standing=standing, wanted=feed.wanted, failed=failed)


def _standing(action: Action) -> Standing:
    return WANTED[action]
