"""Kafka: Apache's, one broker that is killed and started again; and librdkafka's own mock.

The mock needs no Java and starts at once. It knows no topic ids, no transactions and no retention,
so it is no witness for those.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.servers.jars import Jars
from tests.servers.running import free_ports, kill, running

JARS = Jars("Kafka", "kafka", ("org.apache.kafka", "kafka_2.13"), "4.3.1")
MEMORY = ("-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = {"log_level": 0}
SECONDS_MAX = 30
_names = count()


@dataclass
class KafkaServer:
    """A broker. servers: as clients name it. has_topic_ids: and all that only a real one has."""

    servers: str
    has_topic_ids: bool = True
    _admin: list[AdminClient] = field(default_factory=list)

    @property
    def admin(self) -> AdminClient:
        if not self._admin:
            self._admin.append(AdminClient({"bootstrap.servers": self.servers, **QUIET}))
        return self._admin[0]

    def producer(self, **settings: object) -> Producer:
        return Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 0, **QUIET}
            | {name.replace("_", "."): value for name, value in settings.items()}
        )

    def new_topic(self, *, partitions: int = 1, **settings: str) -> str:
        """Make a topic that no test has used. Returns its name."""
        name = f"topic-{next(_names)}"
        self.make_topic(name, partitions=partitions, **settings)
        return name

    def make_topic(self, name: str, *, partitions: int = 1, **settings: str) -> None:
        if self.has_topic_ids:
            config = {key.replace("_", "."): value for key, value in settings.items()}
            _done(self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]))
            self._wait_until(lambda: self._has(name))
        else:
            assert not settings
            self.producer().list_topics(name, timeout=SECONDS_MAX)

    def delete_topic(self, name: str) -> None:
        """Delete a topic. The broker hears of that from the controller, and takes records for the
        old one until then."""
        _done(self.admin.delete_topics([name]))
        self._wait_until(lambda: not self._has(name))

    def _has(self, name: str) -> bool:
        return name in self.admin.list_topics(timeout=SECONDS_MAX).topics

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.02)

    def add_partitions(self, name: str, total: int) -> None:
        _done(self.admin.create_partitions([NewPartitions(name, total)]))

    def delete_records(self, name: str, *, before: int, partition: int = 0) -> None:
        """Do what retention does."""
        _done(self.admin.delete_records([TopicPartition(name, partition, before)]))

    def put(
        self,
        topic: str,
        *values: bytes | None,
        partition: int = 0,
        key: bytes | None = None,
        **more: object,
    ) -> None:
        """Write records, and wait until the broker has them. more: of each, as `produce` takes."""
        producer = self.producer()
        failed: list[object] = []

        def written(error: object, _: object) -> None:
            failed.extend([error] if error else [])

        for value in values:
            producer.produce(
                topic, value, partition=partition, key=key, on_delivery=written, **more
            )
        assert producer.flush(SECONDS_MAX) == 0
        assert not failed

    def deny(self, topic: str) -> None:
        """Let the user that logs in not read a topic."""
        name = ResourcePatternType.LITERAL
        rule = AclOperation.READ, AclPermissionType.DENY
        acl = AclBinding(ResourceType.TOPIC, topic, name, f"User:{USER}", "*", *rule)
        allow = AclOperation.DESCRIBE, AclPermissionType.ALLOW
        other = AclBinding(ResourceType.TOPIC, topic, name, f"User:{USER}", "*", *allow)
        _done(self.admin.create_acls([acl, other]))

    def deny_group(self, consumer_group: str) -> None:
        """Let the user that logs in not set offsets of a consumer group, or ask for them."""
        name = ResourcePatternType.LITERAL
        rule = AclOperation.ALL, AclPermissionType.DENY
        kind = ResourceType.GROUP
        _done(
            self.admin.create_acls(
                [AclBinding(kind, consumer_group, name, f"User:{USER}", "*", *rule)]
            )
        )

    def put_in_transaction(self, topic: str, *values: bytes, commit: bool) -> None:
        producer = self.producer(transactional_id=f"{topic}-writer")
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(SECONDS_MAX) == 0
        if commit:
            producer.commit_transaction(SECONDS_MAX)
        else:
            producer.abort_transaction(SECONDS_MAX)


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(SECONDS_MAX)


@dataclass
class RealKafka(KafkaServer):
    """A broker of Apache's in a process of its own, with what it keeps in a folder. login: where it
    asks for the user's name and password."""

    folder: Path = Path()
    login: str = ""
    again: Callable[[], None] = lambda: None

    def kill(self) -> None:
        """Kill it, as power that fails does."""
        kill(self.folder)

    def restart(self) -> None:
        """Start it again on what it kept, on the same port."""
        self.again()


@contextmanager
def mock_kafka(*, brokers: int = 1) -> Iterator[KafkaServer]:
    """Run librdkafka's mock of a cluster in this process. It keeps 5 MB of a topic partition."""
    cluster = Producer({"bootstrap.servers": "-", "test.mock.num.brokers": brokers, "log_level": 0})
    found = cluster.list_topics(timeout=SECONDS_MAX).brokers.values()
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in found)
    yield KafkaServer(servers, has_topic_ids=False)
    del cluster


@contextmanager
def kafka_server(folder: Path, extra: Sequence[str] = ()) -> Iterator[RealKafka]:
    """Run Apache Kafka. extra: lines of its configuration."""
    java = [JARS.java(), *MEMORY, "-cp", f"{JARS.folder}/*"]
    port, login, controller = free_ports(3)
    lines = CONFIGURATION.format(
        port=port, login=login, controller=controller, folder=folder / "logs", jaas=JAAS
    )
    (folder / "kafka.properties").write_text("\n".join([lines, *extra]))
    subprocess.run(
        [*java, *FORMAT],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    server = RealKafka(f"127.0.0.1:{port}", folder=folder, login=f"127.0.0.1:{login}")
    command = [*java, "kafka.Kafka", "kafka.properties"]

    def is_ready() -> bool:
        try:
            return bool(server.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    with ExitStack() as stack:

        def start() -> None:
            stack.enter_context(running(command, folder, is_ready=is_ready))

        server.again = start
        start()
        yield server


CLUSTER = "AAAAAAAAQACAAAAAAAAAAA"
FORMAT = [
    *("kafka.tools.StorageTool", "format", "--standalone"),
    *("-t", CLUSTER, "-c", "kafka.properties"),
]
USER, PASSWORD = "reader", "Right-Pass-word1"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
CONFIGURATION = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config={jaas}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}
auto.create.topics.enable=false
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=200
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=200
"""
