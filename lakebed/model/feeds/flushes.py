"""Decides which feeds are to commit what they hold, as a registry keeps it. Pure, and every backend
shares it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lakebed.feed_errors import DefinitionChangedError

FEEDS_MAX = 100
"""Feeds whose last wish is kept: those that were wished for last. A wish matters for seconds."""


class Flushes(msgspec.Struct, frozen=True):
    """Wishes of operators that feeds commit what they hold.

    number: of the last wish, of any feed. It rises by one with each.
    by_feed: number of the last wish, by the name of its feed.
    """

    number: int = 0
    by_feed: Mapping[str, int] = {}

    def of(self, feed: str) -> int:
        """Return the number of a feed's last wish; 0: none is known."""
        return self.by_feed.get(feed, 0)

    def after(self, feed: str, expected_number: int) -> Flushes:
        """Return them with one more. Raises: DefinitionChangedError: the last one has another
        number: another process wished meanwhile."""
        if expected_number != self.number:
            raise wished_meanwhile(feed, self.number)
        number = self.number + 1
        newest = sorted({**self.by_feed, feed: number}.items(), key=lambda one: -one[1])
        return Flushes(number, dict(newest[:FEEDS_MAX]))


def wished_meanwhile(feed: str, number: int) -> DefinitionChangedError:
    """Return the error of a wish that another came before. number: of the other, or one before."""
    return DefinitionChangedError("another feed is to be flushed", feed=feed, number=number)
