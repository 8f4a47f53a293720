"""Topics of Kafka as sources of feeds. Only this package knows confluent-kafka, and imports it when
a source is made: a lake without the extra `feeds` works."""

from lakebed.backends.kafka.kafka_source import KafkaSource
from lakebed.backends.kafka.settings import KafkaSecurity, KafkaSettings

__all__ = ["KafkaSecurity", "KafkaSettings", "KafkaSource"]
