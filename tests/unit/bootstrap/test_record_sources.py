"""Definitions become sources: each kind by its backend, with secrets read and shown nowhere."""

from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.aws.feeds.object_notices import ObjectNotices
from lakebed.backends.aws.sqs_source import SqsRecordSource, SqsSettings
from lakebed.backends.kafka import KafkaRecordSource
from lakebed.backends.local.file_tail import FileTail
from lakebed.backends.local.secrets import EnvironmentSecrets
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.backends.system import system_random
from lakebed.bootstrap.feeds.record_sources import (
    SourceParts,
    amazon_clients,
    local_objects,
    record_source,
)
from lakebed.config import feed_sources as said
from lakebed.config.feed_sources import SOURCES, source_of
from lakebed.decoding.listed_objects import ListedObjects, ObjectSettings
from lakebed.errors import InvalidError
from lakebed.feed_errors import SecretMissingError
from lakebed.landing.push.segment_source import SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.feeds.positions import connection_id

SAID: dict[str, dict[str, Any]] = {
    "files": {"files": "x/*.log"},
    "kafka": {"kafka": "b:9092", "topics": "t", "start": "latest"},
    "s3": {"s3": "s3://bucket/in/", "pattern": "*.json", "list_seconds": 5},
    "sqs": {"sqs": "https://sqs.eu-central-1.amazonaws.com/1/q", "receivers": 2},
    "push": {"push": ":8080"},
    "socket": {"socket": ":8081"},
}
LISTENING = {"push", "socket"}


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> SourceParts:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    clock = VirtualClock()
    return SourceParts(
        clock=clock,
        secrets=EnvironmentSecrets({"LAKEBED_SECRET_KAFKA": "hunter2"}),
        files=LocalSourceFiles,
        clients=lambda: amazon_clients(clock, system_random()),
    )


@pytest.mark.parametrize("kind", [form.kind for form in SOURCES])
def test_every_kind_of_source_has_a_backend_or_says_that_it_has_none(
    parts: SourceParts, kind: str
) -> None:
    source = source_of(SAID[kind], "source")
    if kind in LISTENING:
        with pytest.raises(InvalidError, match="landed first"):
            record_source(source, parts)
        segments = SegmentStore(MemoryObjectStore(parts.clock), connection_id("fe" * 16))
        made = record_source(source, parts._replace(segments=segments))
        assert isinstance(made, SegmentSource)
        return
    made = record_source(source, parts)
    kinds = {"files": FileTail, "kafka": KafkaRecordSource, "s3": ListedObjects}
    if kind == "sqs":
        assert [split.name[-2:] for split in made.splits()] == ["#0", "#1"]
    else:
        assert isinstance(made, kinds[kind])
    made.close()


def test_a_queue_keeps_messages_out_of_sight_as_long_as_its_definition_says(
    parts: SourceParts,
) -> None:
    made = record_source(source_of(SAID["sqs"] | {"hidden_seconds": 7}, "source"), parts)
    assert isinstance(made, SqsRecordSource)
    assert made._settings.hidden_seconds == 7
    assert SqsSettings(queue="q").hidden_seconds == said.SqsFeed(sqs="q").hidden_seconds


def test_a_password_is_read_from_its_secret(parts: SourceParts) -> None:
    login = {"mechanism": "PLAIN", "user": "me", "password": "secret:kafka"}
    topic = {"kafka": "b:9092", "topics": ["t"], "security": login}
    made = record_source(source_of(topic, "source"), parts)
    assert isinstance(made, KafkaRecordSource)
    assert made._settings.security.password == "hunter2"
    assert "hunter2" not in repr(made._settings)
    login["password"] = "secret:absent"
    with pytest.raises(SecretMissingError):
        record_source(source_of(topic, "source"), parts)


def test_a_folder_with_notices_is_listed_when_some_came(parts: SourceParts) -> None:
    queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/notices"
    made = record_source(source_of(SAID["s3"] | {"notifications": queue}, "source"), parts)
    assert isinstance(made, ListedObjects)
    assert isinstance(made._news, ObjectNotices)
    silent = record_source(source_of(SAID["s3"], "source"), parts)
    assert isinstance(silent, ListedObjects)
    assert silent._news() == 0


def test_objects_by_name_wait_for_those_that_are_late(parts: SourceParts) -> None:
    made = record_source(source_of(SAID["s3"] | {"order": "name", "parts": 3}, "source"), parts)
    assert isinstance(made, ListedObjects)
    assert made._settings.settle_seconds > 0
    assert len(made.splits()) == 3


def test_a_lake_without_access_to_s3_says_so(parts: SourceParts) -> None:
    with pytest.raises(InvalidError, match="does not reach S3"):
        record_source(source_of(SAID["s3"], "source"), parts._replace(files=lambda: None))


def test_files_of_a_folder_are_items(parts: SourceParts, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    source = local_objects(tmp_path, ObjectSettings(folder="-"), parts)
    (split,) = source.splits()
    records = source.open(split, 0).read(bytes_max=100)
    assert records is not None
    assert len(records.items) == 1
