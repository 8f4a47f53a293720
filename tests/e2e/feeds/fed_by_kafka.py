"""A lake that is fed by a topic of Kafka, and what its producer knows of it."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from lakebed.backends.kafka.topics import parsed
from lakebed.bootstrap.app import App
from tests.e2e.feeds.fed_lake import FedLake
from tests.e2e.feeds.watcher import IdOf
from tests.servers.kafka import KafkaServer

PARTITIONS, PARTITIONS_OF_MANY = 4, 16
"""Of 4 one of two workers may have none, by chance."""


class FedByKafka(FedLake):
    """A lake fed by a topic, and a producer that has no record doubled."""

    def __init__(
        self,
        folder: Path,
        server: KafkaServer,
        partitions: int = PARTITIONS,
        *,
        rotate_seconds: float = 1.0,
        rotate_idle_seconds: float = 0.2,
    ) -> None:
        self.server = server
        self.partitions = partitions
        self.topic = server.new_topic(partitions=partitions)
        source = f'kafka = "{server.servers}", topics = ["{self.topic}"]'
        source += "" if server.has_topic_ids else ", topic_ids = false"
        super().__init__(
            folder,
            f"{{ {source} }}",
            rotate_seconds=rotate_seconds,
            rotate_idle_seconds=rotate_idle_seconds,
        )
        self.producer = server.producer(enable_idempotence=True, delivery_timeout_ms=120_000)
        self.at: list[dict[int, int]] = [{} for _ in range(partitions)]
        """Of each partition, which id is at which offset."""

    def produce(self, count: int) -> None:
        for _ in range(count):
            id_, value = self.written, self.next_record().encode()

            def written(error: KafkaError | None, message: Message, id_: int = id_) -> None:
                assert error is None
                self.at[message.partition() or 0][message.offset() or 0] = id_

            partition = self.rng.randrange(self.partitions)
            self.producer.produce(self.topic, value, partition=partition, on_delivery=written)
            self.producer.poll(0)

    def produce_some(self, _killed: int = 0) -> None:
        self.produce(self.rng.randrange(20))

    def ids(self, _app: App) -> IdOf:
        """Return what says which id a record of the topic has."""
        return lambda split, offset: self.at[parsed(split).partition].get(offset)

    def has_two_owners(self) -> bool:
        return len(self.owners()) == 2 and "" not in self.owners()

    def check_topic(self) -> None:
        """The producer doubled and lost nothing."""
        assert self.producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": self.server.servers, "group.id": "looks"})
        ends = [
            consumer.get_watermark_offsets(TopicPartition(self.topic, n), timeout=30)[1]
            for n in range(self.partitions)
        ]
        consumer.close()
        assert sum(ends) == self.written == sum(map(len, self.at))
