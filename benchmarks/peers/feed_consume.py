"""All that topics have, consumed and dropped: `feed_consume SERVERS NAME RECORDS`."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.processes import run_measured

BATCH = 10_000


def main(servers: str, name: str, records: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "alone", "enable.auto.commit": False}
    )
    topics = consumer.list_topics(timeout=30).topics.items()
    consumer.assign(
        [
            TopicPartition(topic, partition, OFFSET_BEGINNING)
            for topic, found in topics
            for partition in found.partitions
            if topic.startswith(f"{name}-")
        ]
    )
    left = int(records)
    while left > 0:
        found = consumer.consume(BATCH, 5.0)
        assert found, "there is more"
        left -= len([message.value() for message in found if message.error() is None])
    consumer.close()


if __name__ == "__main__":
    run_measured(main)
