"""Topics of Kafka as sources of feeds. Only this package knows confluent-kafka, and imports it when
a source is made: a lake without the extra `feeds` works."""

from lakebed.backends.kafka.kafka_source import KafkaRecordSource
from lakebed.backends.kafka.settings import KafkaCredentials, KafkaSettings

__all__ = ["KafkaCredentials", "KafkaRecordSource", "KafkaSettings"]
