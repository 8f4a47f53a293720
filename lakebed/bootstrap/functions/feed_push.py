"""Opens what the function needs that takes what senders push into feeds: a receiver for each
feed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lakebed.backends.aws.feeds.url_requests import UrlRequest, request_of, response_of
from lakebed.bootstrap.feeds.pushed_feeds import landed_items, pushed_segments, rules_of
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import amazon_table_stores
from lakebed.config.environments import TableFunctionEnvironment, environment_of
from lakebed.config.feed_sources import PushFeed
from lakebed.config.feeds import landing_table_name
from lakebed.errors import LakebedError
from lakebed.feeds.known_definitions import FeedDefinition, KnownDefinitions, read_definitions
from lakebed.landing.push.receiver import Answer, Receiver, failed_answer
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TableName
from lakebed.ports.clock import Clock
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.statestore.open_table import OpenTable

BODY_BYTES_MAX = 4 << 20
"""Lambda takes 6 MB, of which a body that it does not take for text needs a third more than it
has bytes."""

FindTable = Callable[[TableName], OpenTable | None]

_NOT_HERE = Answer(
    404,
    {"problem": "no such feed here", "hint": "push to /FEED, a feed with `push` in its definition"},
)
_HAS_TOKEN = Answer(
    403,
    {
        "problem": "the feed has a token, which requests to this URL cannot show",
        "hint": "take `token` out of its definition: IAM says who may push here; or push to"
        " `lakebed feed receive`",
    },
)
_CHANGED = Answer(
    415,
    {
        "problem": "bytes of the body may have been changed on their way: they are no UTF-8",
        "hint": "send it as application/x-ndjson or application/octet-stream: these come as they"
        " are",
    },
)


class PushedFeeds:
    """Answers senders of every feed that is pushed into, as its own receiver does.

    definitions: of the lake. They are read again when they have changed.
    find_table: returns the table of a name; None: there is none.
    """

    def __init__(
        self,
        definitions: FeedRegistry,
        objects: ObjectStore,
        find_table: FindTable,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._registry = definitions
        self._objects = objects
        self._find_table = find_table
        self._clock = clock
        self._rng = rng
        self._known: KnownDefinitions | None = None
        self._receivers: dict[str, Receiver] = {}

    def respond(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the sender of a request hears. event, and what is returned: as Lambda writes
        them.

        Raises:
            InvalidError: it is no event of a URL.
        """
        return response_of(self._answer(request_of(event)))

    def _answer(self, request: UrlRequest) -> Answer:
        name = request.head.path.partition("?")[0].removeprefix("/")
        try:
            receiver = self._receiver_of(name)
        except LakebedError as error:
            return failed_answer(error, ascii(name)[1:64].rstrip("'"), is_body_read=True)
        if isinstance(receiver, Answer):
            return receiver
        body = request.body
        return _CHANGED if body is None else receiver.respond(request.head, lambda _: body)

    def _receiver_of(self, name: str) -> Receiver | Answer:
        """Return who answers the senders of a feed, or what they hear where there is none.

        Raises:
            LakebedError: definitions cannot be read.
        """
        known = self._definitions()
        if ("feed", name) not in known.entries:
            return _NOT_HERE
        if name in self._receivers:
            return self._receivers[name]
        definition = known.feed(name)
        source = definition.feed.source
        if not isinstance(source, PushFeed):
            return _NOT_HERE
        if source.token:
            return _HAS_TOKEN
        receiver = self._receivers[name] = self._receiver(definition, source)
        return receiver

    def _definitions(self) -> KnownDefinitions:
        known = self._known
        if known is None or self._registry.number() != known.number:
            known = self._known = read_definitions(self._registry)
            self._receivers = {}
        return known

    def _receiver(self, definition: FeedDefinition, source: PushFeed) -> Receiver:
        rules = rules_of(definition.feed.name, source, None)
        return Receiver(
            msgspec.structs.replace(
                rules, body_bytes_max=min(rules.body_bytes_max, BODY_BYTES_MAX)
            ),
            pushed_segments(self._objects, definition),
            lambda prefix: self._items_of(definition, prefix),
            clock=self._clock,
            token=lambda: self._rng.getrandbits(128),
        )

    def _items_of(self, definition: FeedDefinition, prefix: bytes) -> Sequence[bytes]:
        """Return items of the landing table that there is now. None before the first worker has
        made it."""
        table = self._find_table(landing_table_name(definition.feed.name))
        return [] if table is None else landed_items(table, connection_id(definition.id), prefix)


App = PushedFeeds


def find_in(registry: TableRegistry, opened: Callable[[TableEntry], OpenTable]) -> FindTable:
    """Return what finds tables in a registry, and asks it for nothing else. opened: opens one."""

    def find(name: TableName) -> OpenTable | None:
        entry = registry.find(name)
        return None if entry is None else opened(entry)

    return find


def pushed_feeds() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry

    environment = environment_of(TableFunctionEnvironment, os.environ)
    clients = amazon_clients()
    stores = amazon_table_stores(clients, environment)
    return PushedFeeds(
        DynamoFeedRegistry(clients, environment.registry_table, rng=stores.rng),
        stores.objects,
        find_in(stores.registry, stores.opened),
        clock=stores.clock,
        rng=stores.rng,
    )
