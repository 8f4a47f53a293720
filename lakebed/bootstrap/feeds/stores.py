"""Opens what feeds of a lake need beside its tables: leases, definitions, secrets."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lakebed.backends.local.feed_registry import SqliteFeedRegistry
from lakebed.backends.local.leases import SqliteLeases
from lakebed.backends.local.secrets import EnvironmentSecrets, FileSecrets, FirstOfSecrets
from lakebed.config.decoders import Format
from lakebed.config.definitions.decoder_registries import RegistryOf
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.ports.clock import Clock
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.leases import Leases
from lakebed.ports.schema_registry import SchemaRegistry
from lakebed.ports.secrets import Secrets
from lakebed.tasks.failed_work import FailedTables

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.config.deployments.instance_resources import InstanceResources

SECRETS_FOLDER = "secrets"
"""The folder of the secrets of a lake in a directory: one file each, readable only by its owner."""


class FeedStores(NamedTuple):
    """Leases, definitions and secrets of one lake.

    held: what this process holds of its feeds.
    merging: bounds the time in which this process merges files beside its feeds.
    failed_merges: of those: what failed, and waits for its next try.
    known_schemas: of registries that decoders name, as far as this process has asked for them; by
        format.
    """

    leases: Leases
    definitions: FeedRegistry
    secrets: Secrets
    held: HeldBytes
    merging: TimeShare
    failed_merges: FailedTables
    known_schemas: dict[tuple[RegistryOf, Format], SchemaRegistry]


def local_feed_stores(path: Path, opened: ExitStack, clock: Clock) -> FeedStores:
    """Return those of a lake in a directory. opened: closes them."""
    environment, files = EnvironmentSecrets(os.environ), FileSecrets(path / SECRETS_FOLDER)
    return FeedStores(
        opened.enter_context(closing(SqliteLeases(path))),
        opened.enter_context(closing(SqliteFeedRegistry(path))),
        FirstOfSecrets(environment, files),
        HeldBytes(),
        TimeShare(),
        FailedTables(clock),
        {},
    )


def instance_feed_stores(
    clients: AmazonClients, resources: InstanceResources, rng: random.Random
) -> FeedStores:
    """Return those of an instance."""
    from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry
    from lakebed.backends.aws.feeds.leases import DynamoLeases
    from lakebed.backends.aws.feeds.secrets import SecretsManagerSecrets

    table = resources.registry_table
    return FeedStores(
        DynamoLeases(clients, table, rng=rng),
        DynamoFeedRegistry(clients, table, rng=rng),
        FirstOfSecrets(
            EnvironmentSecrets(os.environ),
            SecretsManagerSecrets(clients, f"lakebed/{resources.instance}/"),
        ),
        HeldBytes(),
        TimeShare(),
        FailedTables(clients.clock),
        {},
    )
