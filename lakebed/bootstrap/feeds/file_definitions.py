"""Feeds that are run from a file as it stands, without the registry."""

from __future__ import annotations

from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feeds import FeedFile
from lakebed.config.policy_definitions import policy_of
from lakebed.errors import InvalidError
from lakebed.feeds.known_definitions import (
    ConnectionDefinition,
    FeedDefinition,
    KnownDefinitions,
    by_table,
)


def definitions_in(
    file: FeedFile,
) -> tuple[list[FeedDefinition], list[ConnectionDefinition]]:
    """Return what a file says, to be run as it stands there and without the registry.

    Raises:
        InvalidError: a connection names a feed or a policy that there is not.
    """
    feeds = {
        name: FeedDefinition(
            feed=feed,
            id="",
            version=feed.version,
            policy=policy_of(feed.policy, file.policies, at=at_of("feed", name, "policy")),
            wanted="running",
            failed=None,
        )
        for name, feed in file.feeds.items()
    }
    connections = list[ConnectionDefinition]()
    for name, connection in file.connections.items():
        at = at_of("connection", name)
        if connection.feed not in feeds:
            hint = f"the file defines {', '.join(sorted(feeds)) or 'no feed'}"
            raise InvalidError("no feed has this name", at=f"{at}.feed", hint=hint)
        feed = feeds[connection.feed].feed
        policy = policy_of(connection.policy or feed.policy, file.policies, at=f"{at}.policy")
        connections += by_table(
            ConnectionDefinition(
                connection=connection,
                feed=feed,
                id="",
                feed_id="",
                version=feed.version,
                policy=policy,
                failed=None,
            )
        )
    return list(feeds.values()), connections


def refuse_defined(known: KnownDefinitions, file: FeedFile) -> None:
    """Refuse to run from a file what the lake defines, too: the two have positions of their own, so
    each record would be taken twice.

    Raises:
        InvalidError: the lake defines a feed or a connection of that name.
    """
    for kind, names in (("feed", file.feeds), ("connection", file.connections)):
        for name in names:
            if (kind, name) in known.entries:
                hint = "run it without the file: `lakebed feed run`"
                raise InvalidError(f"the lake defines this {kind}", at=at_of(kind, name), hint=hint)
