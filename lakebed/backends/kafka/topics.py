"""Finds which topics there are, by what ids, with how many partitions.

A topic that was deleted and made anew has another id, so its partitions are other source splits
(protocol R16). librdkafka goes on in the new topic at the old offset: ask for the id *after*
records came, and they are of the topic that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lakebed.backends.kafka.kafka_errors import UNKNOWN_TOPIC
from lakebed.backends.kafka.librdkafka import Client
from lakebed.backends.kafka.settings import KafkaSettings, pattern_of
from lakebed.errors import InvalidError, did_you_mean
from lakebed.ports.record_source import SourceSplit

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

TOPICS_A_REQUEST = 500
KAFKAS_OWN = "__"
NO_ID = "-"
ZERO = "A" * 22
"""Text form of 16 zero bytes, which stand for no id."""
_NAME = re.compile(r"([\w.-]{1,249}):(\d{1,10})@([\w-]{1,40})", re.ASCII)


class SplitName(NamedTuple):
    """A topic partition of one topic.

    id: of the topic; `NO_ID`: the broker gives none.
    """

    topic: str
    partition: int
    id: str

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}@{self.id}"


def parsed(name: str) -> SplitName:
    """Return what a source split's name says. Raises: InvalidError: it is not of this source."""
    match = _NAME.fullmatch(name)
    if match is None:
        hint = "let the feed go on with the source that it began with"
        raise InvalidError("not a source split of Kafka", source_split=name[:300], hint=hint)
    return SplitName(match[1], int(match[2]), match[3])


class Topics:
    """The topics that a source asks for."""

    def __init__(self, client: Client, settings: KafkaSettings) -> None:
        self._client = client
        self._settings = settings

    def splits(self) -> list[SourceSplit]:
        """Return a source split for each partition there is.

        Raises:
            InvalidError: a topic that is asked for by name is not there; the broker gives no ids.
            DeniedError: our credentials are refused. UnavailableError: ask again.
        """
        names = self._names()
        if self._settings.topic_ids:
            is_wanted = not isinstance(self._settings.topics, str)
            found = [
                name
                for part in _parts(names)
                for name in self._described(part, is_wanted=is_wanted)
            ]
        else:
            partitions = self._listed()
            found = [
                SplitName(topic, number, NO_ID)
                for topic in names
                for number in sorted(partitions[topic])
            ]
        return [
            SourceSplit(str(name), f"{name.topic}, partition {name.partition}") for name in found
        ]

    def has(self, name: SplitName) -> bool:
        """Return whether the topic of this id is there now. True, where brokers give no ids."""
        if name.id == NO_ID:
            return True
        return any(found.id == name.id for found in self._described([name.topic], is_wanted=False))

    def watermarks(self, at: TopicPartition) -> tuple[int, int]:
        """Return the first offset of a partition, and the one behind its last record."""
        try:
            found = self._client.consumer.get_watermark_offsets(at, timeout=self._seconds)
        except self._client.module.KafkaException as error:
            raise self._client.error(error.args[0], topic=at.topic) from None
        if found is None:  # no answer in time
            raise self._client.error(self._timeout(), topic=at.topic)
        return found

    def offset_at(self, at: TopicPartition, millis: int) -> int:
        """Return the first record that is not older. -1: there is none."""
        asked = self._client.module.TopicPartition(at.topic, at.partition, millis)
        try:
            (found,) = self._client.consumer.offsets_for_times([asked], timeout=self._seconds)
        except self._client.module.KafkaException as error:
            raise self._client.error(error.args[0], topic=at.topic) from None
        if found.error is not None:
            raise self._client.error(found.error, topic=at.topic)
        return int(found.offset)

    @property
    def _seconds(self) -> float:
        return self._settings.answer_seconds

    def _timeout(self) -> Any:  # noqa: ANN401 - an error of a package that is imported late
        error = self._client.module.KafkaError
        return error(error._TIMED_OUT)  # noqa: SLF001 - its public name begins so

    def _names(self) -> list[str]:
        topics = self._settings.topics
        if not isinstance(topics, str):
            if not self._settings.topic_ids:
                _check_known(topics, self._listed())
            found = sorted(set(topics))
        else:
            wanted = pattern_of(topics, "topics")
            found = sorted(
                topic
                for topic in self._listed()
                if not topic.startswith(KAFKAS_OWN) and wanted.fullmatch(topic)
            )
        if self._settings.exclude:
            exclude = pattern_of(self._settings.exclude, "exclude")
            found = [topic for topic in found if not exclude.fullmatch(topic)]
        return found

    def _listed(self) -> dict[str, list[int]]:
        """Return all topics that we may see, with their partitions."""
        try:
            listed = self._client.admin.list_topics(timeout=self._seconds)
        except self._client.module.KafkaException as error:
            raise self._client.error(error.args[0]) from None
        return {name: list(topic.partitions) for name, topic in listed.topics.items()}

    def _described(self, topics: Sequence[str], *, is_wanted: bool) -> Iterator[SplitName]:
        """Yield the partitions of topics by their ids. A topic that is not there has none, or is an
        error where it is wanted."""
        if not topics:
            return
        module = self._client.module
        collection = module.TopicCollection(list(topics))
        asked = self._client.admin.describe_topics(collection, request_timeout=self._seconds)
        for topic, future in asked.items():
            try:
                found = future.result()
            except module.KafkaException as error:
                if error.args[0].name() not in UNKNOWN_TOPIC or is_wanted:
                    raise self._client.error(error.args[0], topic=topic) from None
                continue
            id_ = _id_of(found.topic_id)
            yield from (SplitName(topic, each.id, id_) for each in found.partitions)


def _id_of(id_: Any) -> str:  # noqa: ANN401 - of a package that is imported late
    if id_ is None or str(id_) == ZERO:
        hint = "give the source `topic_ids = false`: a topic made anew then passes for the old one"
        raise InvalidError("the broker gives topics no ids", hint=hint)
    return str(id_).replace("+", "-").replace("/", "_")


def _check_known(topics: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for topic in topics:
        if topic not in names:
            hint = did_you_mean(topic, names, what="topic")
            raise InvalidError("Kafka does not know the topic", topic=topic, hint=hint)


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), TOPICS_A_REQUEST):
        yield names[start : start + TOPICS_A_REQUEST]
