"""Builds the parts of a feed's receivers, on any machine: without Arrow, so that functions start
with it."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.config.feed_sources import PushFeed
from lakebed.feeds.known_definitions import FeedDefinition
from lakebed.landing.push.receiver import SAME_KEY_MAX, ReceiverRules
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import ConnectionId, digest_of
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.secrets import Secret
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, taken_items_of


def pushed_segments(objects: ObjectStore, definition: FeedDefinition) -> SegmentStore:
    """Return what is pushed into a feed, and waits."""
    id_ = connection_id(definition.id) if definition.id else id_in_file(definition.feed.name)
    return SegmentStore(objects, id_)


def id_in_file(feed: str) -> ConnectionId:
    """Return the id of a feed that no registry knows, as only a file defines it: it follows from
    its name, whatever becomes of its landing table."""
    return connection_id(digest_of(b"pushed", feed.encode()).hex())


def rules_of(feed: str, source: PushFeed, token: Secret | None) -> ReceiverRules:
    """Return how senders of a feed are answered, by its definition. token: what they show."""
    return ReceiverRules(
        feed=feed,
        token=token,
        body_bytes_max=source.body_bytes_max,
        buffer_bytes=source.buffer_bytes,
        answer=source.answer,
    )


def landed_items(table: OpenTable, connection: ConnectionId, prefix: bytes) -> Sequence[bytes]:
    """Return items of a landing table that begin with some bytes, as its log is now."""
    with table.head.reading() as state:
        known = connection_of(state, connection)
        return [] if known is None else taken_items_of(state, known, prefix, SAME_KEY_MAX)
