"""Receivers of what is pushed into feeds, put together from the services of a lake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lakebed.backends.web.bounded_server import BoundedServer
from lakebed.backends.web.push_server import push_server
from lakebed.backends.web.push_socket import push_socket
from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.file_definitions import definitions_in, refuse_defined
from lakebed.bootstrap.feeds.pipelines import landing_of
from lakebed.bootstrap.feeds.pushed_feeds import landed_items, pushed_segments, rules_of
from lakebed.bootstrap.open_lake import OpenLake
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feed_sources import PushFeed, SocketFeed
from lakebed.config.feeds import feed_file
from lakebed.errors import InvalidError
from lakebed.feeds.known_definitions import FeedDefinition, read_definitions
from lakebed.landing.push.framed_records import FramedRecords
from lakebed.landing.push.receiver import Receiver, ReceiverRules
from lakebed.ports.secrets import SECRET_SCHEME, Secret

LOCAL = "127.0.0.1"


class FeedReceiver(OpenLake):
    """A server that senders push a feed's records to. It listens from now on, and answers while it
    serves. Workers land what it has put; they need not run.

    feed: its name.
    text: of a file that defines it; None: the lake does.
    host: to listen on; None: as the definition says, else 127.0.0.1.
    port: None: as the definition says; 0: a free one.

    Raises:
        InvalidError: no such feed, nothing is pushed into it, or it cannot listen there.
        DeniedError, SecretMissingError: the secret that the feed names.
    """

    def __init__(
        self,
        lake: OpenLake,
        feed: str,
        *,
        text: str | None = None,
        host: str | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(lake._app)  # noqa: SLF001 - a lake's own face
        self.host, self._server = _listening(self._app, feed, text, host, port)

    @property
    def port(self) -> int:
        """Return the port on which the receiver listens."""
        return self._server.port

    def serve(self, should_stop: Callable[[], bool]) -> None:
        """Answer senders until it is to stop; then finish what is in hand.

        should_stop: asked all the time.
        """
        self._server.serve(should_stop)


def receiver_of(
    app: App, feed: str, text: str | None = None
) -> tuple[Receiver, PushFeed | SocketFeed]:
    """Return what answers the senders of a feed, and what the feed's definition says of it. The
    landing table is created where there is none.

    text: of a file that defines the feed; None: the lake does.

    Raises:
        InvalidError: no such feed, or nothing is pushed into it.
        DeniedError, SecretMissingError: the secret that it names.
    """
    definition = _definition_of(app, feed, text)
    source = definition.feed.source
    if not isinstance(source, PushFeed | SocketFeed):
        at = at_of("feed", feed, "source")
        hint = "let its definition say `source = { push = true }`"
        raise InvalidError("nothing is pushed into this feed", at=at, source=source.kind, hint=hint)
    table, connection = landing_of(app, definition.feed, definition.id, definition.version)
    receiver = Receiver(
        _rules_of(app, feed, source),
        pushed_segments(app.objects, definition),
        lambda prefix: landed_items(table, connection.id, prefix),
        clock=app.clock,
        token=lambda: app.rng.getrandbits(128),
    )
    return receiver, source


def _listening(
    app: App, feed: str, text: str | None, host: str | None, port: int | None
) -> tuple[str, BoundedServer]:
    """Return a server for the senders of a feed, and on which host it listens.

    host, port: None: as the definition says, else this machine's own address.

    Raises:
        InvalidError: as `receiver_of`; no port is said; it cannot listen there.
    """
    receiver, source = receiver_of(app, feed, text)
    said_host, said_port = _address_of(source)
    host = host or said_host or LOCAL
    port = said_port if port is None else port
    if port is None:
        at = at_of("feed", feed, "source", "push")
        hint = 'give --port, or let the definition say `push = ":8080"`'
        raise InvalidError("no port to listen on", at=at, hint=hint)
    if isinstance(source, SocketFeed):
        cut = partial(FramedRecords, source.framing, source.record_bytes_max)
        return host, push_socket(receiver, (host, port), cut, clock=app.clock)
    return host, push_server(receiver, (host, port), clock=app.clock)


def _address_of(source: PushFeed | SocketFeed) -> tuple[str, int | None]:
    """Return where a definition lets its receiver listen: "" and None where it does not say."""
    said = source.push if isinstance(source, PushFeed) else source.socket
    if isinstance(said, bool):
        return "", None
    host, _, port = said.rpartition(":")
    return host.strip("[]"), int(port)


def _rules_of(app: App, feed: str, source: PushFeed | SocketFeed) -> ReceiverRules:
    if isinstance(source, SocketFeed):
        return ReceiverRules(feed=feed)
    return rules_of(feed, source, _token_of(app, source))


def _definition_of(app: App, feed: str, text: str | None) -> FeedDefinition:
    known = read_definitions(app.feeds.definitions)
    if text is None:
        return known.feed(feed)
    file = feed_file(text)
    refuse_defined(known, file)
    for definition in definitions_in(file)[0]:
        if definition.feed.name == feed:
            return definition
    hint = f"the file defines {', '.join(sorted(file.feeds)) or 'no feed'}"
    raise InvalidError("no feed has this name", feed=ascii(feed)[:80], hint=hint)


def _token_of(app: App, source: PushFeed) -> Secret | None:
    return (
        app.feeds.secrets.read(source.token.removeprefix(SECRET_SCHEME)) if source.token else None
    )
