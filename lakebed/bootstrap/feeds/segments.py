"""Lists, shows and drops what was pushed into feeds and waits, by the names of feeds, also of those
that were dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pushed_feeds import id_in_file
from lakebed.config.feed_sources import PushFeed, SocketFeed
from lakebed.errors import InvalidError, LakebedError, did_you_mean
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.landing.landing_listing import LandedRecord
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.waiting_segments import (
    WaitingSegment,
    WaitingSegments,
    drop_segments,
    listed_segments,
    waiting_records,
    waiting_segments,
)
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import ConnectionId
from lakebed.model.paths import FEEDS_PREFIX

PATHS_MAX = 1_000_000
"""Objects below `feeds/` among which folders are looked for."""
LIMIT_MAX = 1_000_000
_ID = re.compile("[0-9a-f]{32,64}")


class FeedSegments(msgspec.Struct, frozen=True, kw_only=True):
    """The segments that wait in the folder of one feed.

    feed: its name; "": the lake defines no feed of this id: it was dropped, or only a file defines
        it.
    id: names the folder.
    """

    feed: str
    id: str
    waiting: WaitingSegments


def segments_of_feeds(app: App) -> list[FeedSegments]:
    """Return what waits in the folder of each feed, by name. Folders that are empty are left out,
    but for those of feeds into which records are pushed."""
    known = read_definitions(app.feeds.definitions)
    names = {
        connection_id(feed.id): feed.feed.name
        for feed in known.feeds()
        if isinstance(feed.feed.source, PushFeed | SocketFeed)
    }
    found = [
        FeedSegments(
            feed=names.get(id_, ""),
            id=id_,
            waiting=waiting_segments(SegmentStore(app.objects, id_), app.clock.now()),
        )
        for id_ in sorted({*names, *_folders(app)})
    ]
    return sorted(found, key=lambda one: (not one.feed, one.feed, one.id))


def segments_listed(app: App, feed: str, limit: int) -> Iterator[WaitingSegment]:
    """Yield the segments of a feed that wait. feed: its name, or its id. Raises: InvalidError: no
    such feed."""
    return listed_segments(_store(app, feed), _checked(limit))


def segments_shown(
    app: App, feed: str, limit: int, failed: Callable[[str, LakebedError], None]
) -> Iterator[LandedRecord]:
    """Yield records that wait. Raises: as `segments_listed`."""
    return waiting_records(_store(app, feed), _checked(limit), failed)


def segments_counted(app: App, feed: str) -> WaitingSegments:
    """Return what waits of a feed. Raises: as `segments_listed`."""
    return waiting_segments(_store(app, feed), app.clock.now())


def segments_dropped(app: App, feed: str, *, although_defined: bool) -> WaitingSegments:
    """Remove what waits of a feed, for good.

    although_defined: also of a feed that the lake defines: senders have heard that it is kept.

    Raises:
        InvalidError: no such feed, or the lake defines it.
    """
    check_droppable(app, feed, although_defined=although_defined)
    return drop_segments(_store(app, feed))


def waits_in_file(app: App, feed: str) -> bool:
    """Return whether something waits that was pushed into a feed while only a file defined it."""
    return any(True for _ in SegmentStore(app.objects, id_in_file(feed)).names(1))


def check_droppable(app: App, feed: str, *, although_defined: bool) -> None:
    """Refuse to remove what workers will land, unless that is said. Raises: InvalidError."""
    known = read_definitions(app.feeds.definitions)
    names = [
        one.feed.name for one in known.feeds() if feed in {one.feed.name, connection_id(one.id)}
    ]
    if names and not although_defined:
        hint = f"drop the feed first: `lakebed feed drop {names[0]}`; or add --although-defined"
        raise InvalidError("the lake defines this feed: what waits is landed", feed=feed, hint=hint)


def _store(app: App, feed: str) -> SegmentStore:
    known = read_definitions(app.feeds.definitions)
    return SegmentStore(app.objects, _id_of(app, known, feed))


def _id_of(app: App, known: KnownDefinitions, feed: str) -> ConnectionId:
    """Return the id of a feed that the lake defines, that only a file does, or that was dropped."""
    if feed in known.file.feeds:
        return connection_id(known.feed(feed).id)
    folders = _folders(app)
    id_ = connection_id(feed) if _ID.fullmatch(feed) else id_in_file(feed)
    if id_ in folders:
        return id_
    hint = did_you_mean(feed, [*known.file.feeds, *sorted(folders)], what="feed")
    raise InvalidError("no feed has this name or id", feed=ascii(feed)[:80], hint=hint)


def _folders(app: App) -> set[ConnectionId]:
    """Return the ids of feeds that have something in their folders."""
    paths = islice(app.objects.list(FEEDS_PREFIX), PATHS_MAX)
    ids = {path.removeprefix(FEEDS_PREFIX).partition("/")[0] for path in paths}
    return {connection_id(id_) for id_ in ids if _ID.fullmatch(id_)}


def _checked(limit: int) -> int:
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidError("not a limit", limit=limit, hint=f"give 1 to {LIMIT_MAX:,}")
    return limit
