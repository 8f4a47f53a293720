"""Sources of feeds, by what their definitions say. Secrets are read here, and go nowhere else."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lakebed.backends.local.file_tail import FileTail
from lakebed.bootstrap.app import App
from lakebed.config.feed_fields import at_of
from lakebed.config.feed_sources import FilesSource, KafkaSource
from lakebed.config.feeds import Feed
from lakebed.errors import InvalidError
from lakebed.ports.record_source import RecordSource
from lakebed.ports.secrets import SECRET_SCHEME, Secrets

MEMORY_SHARE = 64 << 20
"""Bytes of records that wait in a source, each connection's own."""


def source_of_feed(app: App, feed: Feed) -> RecordSource[pa.RecordBatch]:
    """Return a source, not yet asked for anything.

    Raises:
        InvalidError: it is not built yet; a package is missing; a secret is no text.
        SecretMissingError, DeniedError: a secret cannot be read.
    """
    match feed.source:
        case FilesSource(files=pattern):
            return FileTail(pattern)
        case KafkaSource() as source:
            return _kafka(app, source)
        case other:
            raise InvalidError(
                "this release cannot read such a source",
                at=at_of("feed", feed.name, "source"),
                source=other.kind,
                hint="use files or kafka",
            )


def _kafka(app: App, source: KafkaSource) -> RecordSource[pa.RecordBatch]:
    from lakebed.backends.kafka.kafka_source import KafkaSource as Reader
    from lakebed.backends.kafka.settings import KafkaSecurity, KafkaSettings

    given = msgspec.structs.asdict(source)
    given["servers"] = given.pop("kafka")
    login = msgspec.structs.asdict(source.security)
    for name in ("password", "key_password"):
        login[name] = _revealed(app.feeds.secrets, login[name])
    given["security"] = KafkaSecurity(**login)
    return Reader(KafkaSettings(memory_bytes=MEMORY_SHARE, **given), clock=app.clock)


def _revealed(secrets: Secrets, named: str) -> str:
    return secrets.read(named.removeprefix(SECRET_SCHEME)).reveal() if named else ""
