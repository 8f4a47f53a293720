"""Sources of feeds by their definitions: a backend for each kind, and adaptors of other authors."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa

from lakebed.backends.kafka import KafkaCredentials, KafkaRecordSource, KafkaSettings
from lakebed.backends.local.file_tail import FileTail
from lakebed.bootstrap.feeds.custom_sources import custom_source
from lakebed.config import feed_sources as said
from lakebed.config.definitions.custom_sources import CustomFeed
from lakebed.decoding.listed_objects import ListedObjects, ObjectSettings
from lakebed.errors import InvalidError
from lakebed.landing.push.segment_source import SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import RecordSource
from lakebed.ports.secrets import SECRET_SCHEME, Secrets
from lakebed.ports.source_files import SourceFiles

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

AnySource = RecordSource[pa.RecordBatch]
NAMES_SETTLE_SECONDS = 60.0
"""Most seconds that an object may appear later than one whose name sorts behind its own."""


class SourceParts(NamedTuple):
    """The dependencies that record sources are built from.

    secrets: for those that definitions name.
    files: objects of S3, as far as our credentials may read them; None: there is no access.
    clients: of AWS, made when they are needed.
    is_taken: says of an item of a source without order whether the table knows it.
    segments: what was pushed into the feed; None: who asks does not land it.
    """

    clock: Clock
    secrets: Secrets
    files: Callable[[], SourceFiles | None]
    clients: Callable[[], AmazonClients]
    is_taken: Callable[[bytes], bool] = lambda _: False
    segments: SegmentStore | None = None


def record_source(source: said.Source, parts: SourceParts) -> AnySource:
    """Return the source that a definition says. Nothing is asked of it yet.

    Raises:
        InvalidError: what it needs is not installed, or not built yet; only a feed's landing reads
            what was pushed.
        DeniedError, SecretMissingError: a secret that it names.
    """
    if isinstance(source, said.KafkaFeed):
        return KafkaRecordSource(_kafka_settings(source, parts.secrets), clock=parts.clock)
    if isinstance(source, said.FilesFeed):
        return FileTail(source.files)
    if isinstance(source, said.S3Feed):
        return _objects(source, parts)
    if isinstance(source, said.SqsFeed):
        from lakebed.backends.aws.sqs_source import SqsRecordSource, SqsSettings

        settings = SqsSettings(
            queue=source.sqs, receivers=source.receivers, hidden_seconds=source.hidden_seconds
        )
        return SqsRecordSource(parts.clients(), settings)
    if isinstance(source, CustomFeed):
        return custom_source(source, parts.secrets)
    if parts.segments is None:
        hint = "read its landing table"
        raise InvalidError("what is pushed is landed first", kind=source.kind, hint=hint)
    return SegmentSource(parts.segments, clock=parts.clock, is_taken=parts.is_taken)


def local_objects(folder: Path, settings: ObjectSettings, parts: SourceParts) -> AnySource:
    """Return files that appear in a folder of this machine, each an item."""
    from lakebed.backends.local.source_files import LocalSourceFiles

    given = msgspec.structs.replace(settings, folder=str(folder))
    files = LocalSourceFiles()
    return ListedObjects(files, given, clock=parts.clock, is_taken=parts.is_taken)


def amazon_clients(clock: Clock, rng: random.Random) -> AmazonClients:
    """Return clients of AWS, for queues. Raises: InvalidError: boto3 is not installed."""
    from lakebed.bootstrap.aws import new_clients

    return new_clients(clock, rng)


def _kafka_settings(source: said.KafkaFeed, secrets: Secrets) -> KafkaSettings:
    fields = msgspec.structs.asdict(source.security)
    for name in ("password", "key_password"):
        if fields[name]:
            fields[name] = secrets.read(fields[name].removeprefix(SECRET_SCHEME)).reveal()
    return KafkaSettings(
        servers=source.kafka,
        topics=source.topics,
        exclude=source.exclude,
        start=source.start,
        offsets=source.offsets,
        consumer_group=source.group,
        security=KafkaCredentials(**fields),
        topic_ids=source.topic_ids,
        rack=source.rack,
    )


def _objects(source: said.S3Feed, parts: SourceParts) -> AnySource:
    files = parts.files()
    if files is None:
        hint = "install it: pip install 'lakebed[aws]', and give credentials"
        raise InvalidError("this lake does not reach S3", source=source.s3, hint=hint)
    settings = ObjectSettings(
        folder=source.s3,
        pattern=source.pattern,
        order=source.order,
        parts=source.parts,
        settle_seconds=NAMES_SETTLE_SECONDS if source.order == "name" else 0.0,
        list_seconds=source.list_seconds,
        once_seconds=source.once_seconds,
    )
    if not source.notifications:
        return ListedObjects(files, settings, clock=parts.clock, is_taken=parts.is_taken)
    from lakebed.backends.aws.feeds.object_notices import ObjectNotices

    news = ObjectNotices(parts.clients(), source.notifications)
    return ListedObjects(files, settings, clock=parts.clock, is_taken=parts.is_taken, news=news)
