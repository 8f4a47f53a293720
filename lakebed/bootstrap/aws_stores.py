"""Stores of an instance on AWS, for whoever opens it: without Arrow, and without a parameter."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from lakebed.bootstrap.object_places import ENDPOINTS

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.backends.aws.object_store import S3ObjectStore


def objects_of(
    clients: AmazonClients, bucket: str, prefix: str, chance: random.Random
) -> S3ObjectStore:
    """Return the objects, asked for with the same credentials and in the same region."""
    from lakebed.backends.aws.object_store import S3ObjectStore

    return S3ObjectStore(
        bucket,
        prefix,
        clock=clients.clock,
        chance=chance,
        config=config_of(clients),
        credentials=clients.credentials_for_objects(),
    )


def config_of(clients: AmazonClients) -> dict[str, str]:
    """Return where S3 is reached."""
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    return {"region": clients.region} | ({"endpoint": endpoint} if endpoint else {})
