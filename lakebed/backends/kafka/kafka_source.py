"""Topic partitions as source splits: the same offset gives the same records, as long as Kafka has
them, and says so when it has not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebed.backends.kafka.kafka_errors import GONE, UNKNOWN_TOPIC
from lakebed.backends.kafka.settings import EARLIEST, KafkaSettings, start_millis
from lakebed.backends.kafka.shared_consumer import At, Came, Lane, LastRecord, SharedConsumer
from lakebed.backends.kafka.topics import NO_ID, SplitName, Topics, parsed
from lakebed.errors import LakebedError, UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import Records, SourceSplit

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_LAST = struct.Struct(">qi")
AGAIN = "try again"
LOST = "Kafka lost records that were taken, and gave their offsets to other ones"


class KafkaRecordSource:
    """Topics of Kafka, by their names or by a pattern.

    Raises:
        InvalidError: confluent-kafka is not installed.
    """

    def __init__(self, settings: KafkaSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._consumer = SharedConsumer(settings, clock)
        self._topics = Topics(self._consumer.client, settings)
        self._first: set[str] | None = None

    def splits(self) -> list[SourceSplit]:
        """Return the partitions of all topics that are asked for."""
        found = self._topics.splits()
        if self._first is None:
            self._first = {split.name for split in found}
        return found

    def start(self, split: SourceSplit) -> int:
        """Return the offset at which to begin."""
        name = parsed(split.name)
        given = self._settings.offsets.get(f"{name.topic}:{name.partition}")
        if given is not None:
            return given
        at = self._consumer.client.module.TopicPartition(name.topic, name.partition)
        low, high = self._topics.watermarks(at)
        millis = start_millis(self._settings.start)
        if millis is not None:
            found = self._topics.offset_at(at, millis)
            return high if found < 0 else found
        is_new = self._first is not None and split.name not in self._first
        return low if self._settings.start == EARLIEST or is_new else high

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> KafkaReader:
        """Return a reader of a topic partition from an offset on.

        resume: offset and epoch of the record before it, which must still be there as it was, or
            be gone.
        """
        last = LastRecord(*_LAST.unpack(resume)) if len(resume) == _LAST.size else LastRecord()
        name = parsed(split.name)
        lane = Lane(At(name.topic, name.partition), begin, last)
        self._consumer.prepare(lane)
        return KafkaReader(self._consumer, self._topics, name, lane, self._settings.consumer_group)

    def close(self) -> None:
        """Close connections. Closing twice does no harm."""
        self._consumer.close()


class KafkaReader:
    """Reads a topic partition. Readers of one source share its consumer; two of one partition take
    turns in it, which costs a fetch each time."""

    def __init__(
        self,
        consumer: SharedConsumer,
        topics: Topics,
        name: SplitName,
        lane: Lane,
        group_id: str,
    ) -> None:
        self._consumer = consumer
        self._topics = topics
        self._name = name
        self._next = lane.next
        self._last = lane.last
        self._group_id = group_id
        self._lane = lane
        self._checked = 0
        self._is_over = False

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the next records. None: Kafka said that there are none, or the topic is gone.

        It waits until Kafka has answered once, also where `wait_seconds` is shorter.
        """
        lane = self._lane
        if not lane.waiting and not self._is_over:
            self._fill(wait_seconds)
        if self._is_over or not lane.waiting:
            return None
        if lane.waiting[0].round > self._checked:  # of the topic that was meant (R16)?
            as_of = self._consumer.round
            if not self._has_topic():
                return None
            self._checked = as_of
        with lane.lock:
            return self._taken(bytes_max)

    def behind(self) -> int | None:
        """Return how many offsets there are behind the last record that was read. Some of them may
        have no record."""
        high = self._consumer.high_watermark(self._lane)
        if high is None:
            return None
        ends = self._lane.end if self._lane.end is not None and not self._lane.waiting else 0
        return max(0, high - max(self._next, ends))

    def acknowledge(self, end: int) -> None:
        """Set the offset of the consumer group, if there is one."""
        if self._group_id:
            self._consumer.commit(self._lane, end)

    def close(self) -> None:
        """Fetch no more. Closing twice does no harm."""
        self._is_over = True
        self._consumer.let_go(self._lane)

    def _fill(self, wait_seconds: float) -> None:
        lane = self._lane
        if not self._consumer.fill(lane, wait_seconds):
            if not self._has_topic():  # one that was deleted does not answer
                return
            raise UnavailableError("Kafka does not answer", hint=AGAIN, topic=self._name.topic)
        failure, is_other_log = lane.failure, lane.is_other_log
        if lane.waiting or (failure is None and not is_other_log):
            return
        self._consumer.restart(lane)
        if not self._has_topic():
            return
        if failure is not None and failure.name() not in GONE:
            raise self._meaning(failure)
        low = self._first_offset(is_other_log=is_other_log)
        if lane.last.epoch >= 0 and lane.last.offset < low:  # retention took it, and no more
            lane.last = LastRecord()
            self._fill(wait_seconds)
            return
        # Where reading begins anew, the record before the position is looked at again.
        raise UnavailableError("Kafka begins anew", hint=AGAIN, topic=self._name.topic)

    def _meaning(self, failure: KafkaError) -> LakebedError:
        if failure.name() in UNKNOWN_TOPIC and self._name.id != NO_ID:  # it is there by now
            return UnavailableError(
                "Kafka lost sight of the topic", hint=AGAIN, topic=self._name.topic
            )
        return self._consumer.client.error(failure, topic=self._name.topic)

    def _has_topic(self) -> bool:
        """Return whether the topic is still the one that was meant. If not, all is over here."""
        if not self._topics.has(self._name):
            self._is_over = True
            self._consumer.let_go(self._lane)
        return not self._is_over

    def _first_offset(self, *, is_other_log: bool) -> int:
        """Return the first offset that Kafka has. Raises: PositionGoneError: ours is not there."""
        at = self._consumer.client.module.TopicPartition(*self._lane.at)
        low, high = self._topics.watermarks(at)
        first = self._next
        if first < low:
            raise PositionGoneError(
                "Kafka has no longer the records from here on",
                first=first,
                end=low,
                topic=self._name.topic,
                partition=self._name.partition,
            )
        if first > high or is_other_log:
            end = min(first, high)
            raise PositionGoneError(
                LOST,
                first=first,
                end=end,
                low_watermark=low,
                topic=self._name.topic,
                partition=self._name.partition,
            )
        return low

    def _taken(self, bytes_max: int) -> Records[pa.RecordBatch]:
        lane, size, begin = self._lane, 0, self._next
        batches: list[pa.RecordBatch] = []
        while lane.waiting and lane.waiting[0].round <= self._checked:
            round_, came = lane.waiting[0]
            fits = int(np.searchsorted(came.sizes, bytes_max - size, side="right"))
            if not batches:
                fits = max(fits, 1)
            if not fits:
                break
            size += int(came.sizes[fits - 1])
            batches.append(came.batch.slice(0, fits))
            self._last = LastRecord(int(came.offsets[fits - 1]), int(came.epochs[fits - 1]))
            self._next = self._last.offset + 1
            lane.waiting.popleft()
            if fits < len(came.offsets):
                lane.waiting.appendleft(Came(round_, came.behind(fits)))
                break
        lane.bytes -= size
        if not lane.waiting and lane.end is not None:
            self._next = max(self._next, lane.end)  # holes at the end: markers, aborted records
        batch = pa.concat_batches(batches)
        return Records(
            begin=begin,
            end=self._next,
            count=batch.num_rows,
            size=size,
            batch=batch,
            resume=_LAST.pack(*self._last),
        )
