"""Stores of an instance on AWS. They need neither Arrow nor the instance's parameter."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.bootstrap.object_locations import ENDPOINTS
from lakebed.bulk_import.requests import ImportRequests
from lakebed.config.instance import IMPORTS_PREFIX
from lakebed.ports.source_files import SourceFiles

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.backends.aws.object_store import S3ObjectStore


def objects_of(
    clients: AmazonClients, bucket: str, prefix: str, rng: random.Random
) -> S3ObjectStore:
    """Return the objects, asked for with the same credentials and in the same region."""
    from lakebed.backends.aws.object_store import S3ObjectStore

    return S3ObjectStore(
        bucket,
        prefix,
        clock=clients.clock,
        rng=rng,
        config=config_of(clients),
        clients=clients,
    )


def import_requests_of(clients: AmazonClients, bucket: str, rng: random.Random) -> ImportRequests:
    """Return the requests for bulk imports, which lie in the instance's bucket beside the lake."""
    return ImportRequests(objects_of(clients, bucket, IMPORTS_PREFIX, rng))


def source_files_of(clients: AmazonClients, rng: random.Random, folder: Path) -> SourceFiles:
    """Return users' files in S3, as far as these credentials may read them. folder: for them while
    they are read."""
    from lakebed.backends.aws.source_files import S3SourceFiles

    return S3SourceFiles(
        folder,
        clock=clients.clock,
        rng=rng,
        config=config_of(clients),
        credentials=clients.credentials_for_objects(),
    )


def config_of(clients: AmazonClients) -> dict[str, str]:
    """Return where S3 is reached."""
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    return {"region": clients.region} | ({"endpoint": endpoint} if endpoint else {})
