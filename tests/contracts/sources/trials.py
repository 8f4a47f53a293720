"""Every source of records on trial: how each is written to, and what may happen to it."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow as pa

from lakebed.backends.aws.source_files import S3SourceFiles
from lakebed.backends.aws.sqs_source import SqsRecordSource, SqsSettings
from lakebed.backends.kafka import KafkaRecordSource, KafkaSettings
from lakebed.backends.local.file_tail import FileTail
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource
from lakebed.backends.system import SystemClock, system_random
from lakebed.decoding.listed_objects import ListedObjects, ObjectSettings
from lakebed.landing.push.segment_source import SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import segment_without_key
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import Micros
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.record_source import RecordSource, SourceSplit
from lakebed.source_kit import NotOfferedError, SourceTrial
from tests.servers.kafka import KafkaServer, RealKafka
from tests.servers.s3 import BUCKET, S3Server

_prefixes = count()


class FileTrial(SourceTrial):
    """Files that grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def connect(self) -> RecordSource[pa.RecordBatch]:
        return FileTail(str(self.folder / "*.log"))

    def write(self, name: str, *values: bytes) -> None:
        with (self.folder / f"{name}.log").open("ab") as file:
            file.write(b"".join(value + b"\n" for value in values))

    def is_called(self, name: str, split: SourceSplit) -> bool:
        return split.title.endswith(f"{name}.log")

    def make_anew(self, name: str) -> None:
        (self.folder / f"{name}.log").unlink()


class MemoryTrial(SourceTrial):
    """The model."""

    make: Callable[[MemoryBroker], RecordSource[pa.RecordBatch]] = MemoryRecordSource

    def __init__(self) -> None:
        self.broker = MemoryBroker()

    def connect(self) -> RecordSource[pa.RecordBatch]:
        return type(self).make(self.broker)

    def write(self, name: str, *values: bytes) -> None:
        self.broker.write(name, *values)

    def cut(self) -> None:
        self.broker.is_away = True

    def mend(self) -> None:
        self.broker.is_away = False

    def forget(self, name: str, count: int) -> None:
        self.broker.forget(name, count)

    def make_anew(self, name: str) -> None:
        self.broker.make(name)

    def leave_hole(self, name: str) -> None:
        self.broker.leave_hole(name, 2)


class KafkaTrial(SourceTrial):
    """Topics whose names begin alike, with one partition that is written to."""

    wait_seconds = 15.0

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.prefix = f"trial{next(_prefixes)}"
        self.made: set[str] = set()

    def connect(self, **settings: object) -> KafkaRecordSource:
        given = {
            "servers": self.server.servers,
            "topics": rf"{self.prefix}\..*",
            "topic_ids": self.server.has_topic_ids,
            "consumer_group": self.prefix,
            "answer_seconds": 20.0,
        }
        return KafkaRecordSource(KafkaSettings(**(given | settings)), clock=SystemClock())

    def topic(self, name: str) -> str:
        topic = f"{self.prefix}.{name}"
        if topic not in self.made:
            self.server.make_topic(topic)
            self.made.add(topic)
        return topic

    def write(self, name: str, *values: bytes) -> None:
        self.server.put(self.topic(name), *values)

    def is_called(self, name: str, split: SourceSplit) -> bool:
        return split.title == f"{self.prefix}.{name}, partition 0"

    def cut(self) -> None:
        self._real().kill()

    def mend(self) -> None:
        self._real().restart()

    def forget(self, name: str, count: int) -> None:
        self._real().delete_records(self.topic(name), before=count)

    def make_anew(self, name: str) -> None:
        self._real().delete_topic(self.topic(name))
        self.made.clear()
        with suppress(KeyError):
            self.topic(name)

    def leave_hole(self, name: str) -> None:
        self._real().put_in_transaction(self.topic(name), b"aborted", b"as well", commit=False)

    def _real(self) -> RealKafka:
        if not isinstance(self.server, RealKafka):
            raise NotOfferedError
        return self.server


class FolderTrial(SourceTrial):
    """Files that appear in a folder, each with its lines."""

    wait_seconds = 5.0
    has_items = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = count()

    def connect(self) -> RecordSource[pa.RecordBatch]:
        settings = ObjectSettings(folder=str(self.folder), list_seconds=0.05)
        return ListedObjects(LocalSourceFiles(), settings, clock=SystemClock())

    def write(self, name: str, *values: bytes) -> None:
        lines = b"".join(value + b"\n" for value in values)
        part = self.folder / f"_part{next(self.written)}"
        part.write_bytes(lines)
        part.rename(self.folder / f"{next(self.written):03}.txt")

    def is_called(self, name: str, split: SourceSplit) -> bool:
        return True

    def let_unacknowledged_return(self) -> None:
        """They are there."""


class S3Trial(FolderTrial):
    """Objects that appear below a prefix."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        super().__init__(folder)
        self.server = server
        self.prefix = server.new_prefix()
        self.clients = server.clients()

    def connect(self) -> RecordSource[pa.RecordBatch]:
        config = {
            "endpoint": self.server.url,
            "access_key_id": "test",
            "secret_access_key": self.server.secret,
            "region": "us-east-1",
        }
        files = S3SourceFiles(self.folder, clock=SystemClock(), rng=system_random(), config=config)
        settings = ObjectSettings(folder=f"s3://{BUCKET}/{self.prefix}/", list_seconds=0.1)
        return ListedObjects(files, settings, clock=SystemClock())

    def write(self, name: str, *values: bytes) -> None:
        lines = b"".join(value + b"\n" for value in values)
        key = f"{self.prefix}/{next(self.written):03}.txt"
        self.clients.s3.put_object(Bucket=BUCKET, Key=key, Body=lines)


class SqsTrial(SourceTrial):
    """Messages of a standard queue."""

    wait_seconds = 5.0
    has_items = True

    def __init__(self, server: S3Server) -> None:
        self.clients = server.clients()
        self.url = self.clients.sqs.create_queue(QueueName=server.new_prefix())["QueueUrl"]

    def connect(self, **settings: int) -> SqsRecordSource:
        return SqsRecordSource(self.clients, SqsSettings(queue=self.url, **settings))

    def write(self, name: str, *values: bytes) -> None:
        for value in values:
            self.clients.sqs.send_message(QueueUrl=self.url, MessageBody=value.decode())

    def is_called(self, name: str, split: SourceSplit) -> bool:
        return True

    def let_unacknowledged_return(self) -> None:
        """Whoever closes a reader shows them again."""


class PushTrial(SourceTrial):
    """Segments that receivers put, each with its lines."""

    wait_seconds = 5.0
    has_items = True

    def __init__(self, objects: ObjectStore) -> None:
        self.segments = SegmentStore(objects, connection_id("fe" * 16))
        self.written = count(1)

    def connect(self) -> RecordSource[pa.RecordBatch]:
        return SegmentSource(self.segments, clock=SystemClock(), list_seconds=0.05)

    def write(self, name: str, *values: bytes) -> None:
        lines = b"".join(value + b"\n" for value in values)
        token = next(self.written) << 100
        self.segments.put(segment_without_key(token, "lines", Micros(token >> 100), lines))

    def let_unacknowledged_return(self) -> None:
        """They are there."""

    def is_called(self, name: str, split: SourceSplit) -> bool:
        return True
