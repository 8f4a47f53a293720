"""One consumer for all source splits of a source: a reader gets what came for it, and one that does
not read is paused.

A topic partition is fetched for one reader at a time, the one that read last. No consumer group is
joined: partitions are assigned, never subscribed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import groupby, repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lakebed.backends.kafka.gathering import Gathered, gathered
from lakebed.backends.kafka.kafka_errors import DENIED, ENOUGH
from lakebed.backends.kafka.librdkafka import Client
from lakebed.backends.kafka.settings import KafkaSettings
from lakebed.errors import UnavailableError
from lakebed.ports.clock import Clock

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

MESSAGES_MAX = 5_000
"""Most messages that are taken from librdkafka at once, where they are small."""
BYTES_AT_ONCE = 4 << 20
WAIT_SECONDS = 0.1
"""Seconds that one reader keeps the consumer for itself while it waits."""
SHARE_BYTES_MIN = 64 << 10
AWAY_SECONDS = 2.0
"""Seconds that all brokers must be away before a reader hears of it."""


class At(NamedTuple):
    """A topic partition."""

    topic: str
    partition: int


class Came(NamedTuple):
    """Records that wait.

    round: of the consumer, in which they came.
    """

    round: int
    records: Gathered


class LastRecord(NamedTuple):
    """The record before a position.

    epoch: of the leader that took it. Another record at this offset has another one, so both say
        whether a log is the one that was read. -1: not known.
    """

    offset: int = -1
    epoch: int = -1


class Lane:
    """The buffer of records that wait for one reader.

    next: the offset behind the last record that came, and behind the holes after it.
    last: that record; where fetching begins anew, it is looked at again.
    end: the offset at which Kafka had no more; None: it did not say so since.
    lock: held while what waits is changed.
    """

    def __init__(self, at: At, begin: int, last: LastRecord) -> None:
        self.at = at
        self.next = begin
        self.last = last
        self.is_doubted = False
        self.waiting: deque[Came] = deque()
        self.bytes = 0
        self.end: int | None = None
        self.failure: KafkaError | None = None
        self.is_other_log = False
        self.is_paused = False
        self.lock = threading.Lock()


class SharedConsumer:
    """Fills lanes from one consumer. Safe for several threads."""

    def __init__(self, settings: KafkaSettings, clock: Clock) -> None:
        self.client = Client(settings, on_error=self._note)
        self.round = 0
        self._settings = settings
        self._clock = clock
        self._lock = threading.RLock()
        self._lanes: dict[At, Lane] = {}
        self._trouble: KafkaError | None = None
        self._mean_bytes = 1_000.0

    def fill(self, lane: Lane, wait_seconds: float) -> bool:
        """Return when a lane has records, or a failure, or when Kafka said that there are none and
        that long has been waited for one. False: Kafka said nothing, and not why.

        Raises:
            DeniedError: our credentials are refused.
            UnavailableError: Kafka does not answer.
        """
        begin = self._clock.monotonic()
        waits = 0.0
        while True:
            with self._lock:
                self._fetch_for(lane)
                self._receive(waits)
                if lane.waiting or lane.failure is not None or lane.is_other_log:
                    return True
                trouble = self._trouble
            passed = self._clock.monotonic() - begin
            if trouble is not None and self._is_hopeless(trouble, passed):
                self._trouble = None  # the next call tries again
                raise self.client.error(trouble, topic=lane.at.topic)
            if lane.end is not None and passed >= wait_seconds:
                if trouble is not None:  # it may be over: nothing else would show that
                    self._ask(lane)
                return True
            if passed >= max(wait_seconds, self._settings.answer_seconds):
                if trouble is None:
                    return False
                raise self._no_answer(lane)
            waits = WAIT_SECONDS

    def prepare(self, lane: Lane) -> None:
        """Fetch for a lane from now on, if its topic partition has no other reader."""
        with self._lock:
            if lane.at not in self._lanes:
                self._fetch_for(lane)

    def position(self, lane: Lane) -> TopicPartition:
        """Return a lane's topic partition at the offset to fetch, as librdkafka wants it."""
        made: TopicPartition = self.client.module.TopicPartition(
            *lane.at, lane.last.offset if lane.is_doubted else lane.next
        )
        return made

    def restart(self, lane: Lane) -> None:
        """Forget a lane's failure; the next filling begins where its records end."""
        with self._lock:
            lane.failure, lane.is_other_log = None, False
            self._stop(lane)

    def high_watermark(self, lane: Lane) -> int | None:
        """Return the offset behind the last record that may be read, as Kafka said last."""
        if self._lanes.get(lane.at) is not lane:
            return None
        at = self.client.module.TopicPartition(*lane.at)
        _, high = self.client.consumer.get_watermark_offsets(at, cached=True)
        return high if high >= 0 else None

    def commit(self, lane: Lane, end: int) -> None:
        """Set the offset of the group. What comes of it is not looked at."""
        if self.client.is_closed:
            return
        at = self.client.module.TopicPartition(*lane.at, end)
        try:
            self.client.consumer.commit(offsets=[at], asynchronous=True)
        except self.client.module.KafkaException:
            return  # the next one sets it

    def let_go(self, lane: Lane) -> None:
        """Fetch no more for a lane, and forget what waits in it."""
        with self._lock:
            self._stop(lane)
            with lane.lock:
                lane.waiting.clear()
                lane.bytes = 0

    def close(self) -> None:
        """Close connections. Closing twice does no harm."""
        with self._lock:
            self._lanes.clear()
            self.client.close()

    def _fetch_for(self, lane: Lane) -> None:
        if self._lanes.get(lane.at) is lane:
            if lane.is_paused:
                lane.is_paused = False
                self._try(self.client.consumer.resume, lane)
            return
        if lane.at in self._lanes:
            self._stop(self._lanes[lane.at])
        lane.end, lane.is_paused = None, False
        lane.is_doubted = lane.last.epoch >= 0
        self._lanes[lane.at] = lane
        self._try(self.client.consumer.incremental_assign, lane)

    def _stop(self, lane: Lane) -> None:
        if self._lanes.get(lane.at) is lane:
            del self._lanes[lane.at]
            self._try(self.client.consumer.incremental_unassign, lane)

    def _try(self, do: Any, lane: Lane) -> None:  # noqa: ANN401 - a method of a client
        try:
            do([self.position(lane)])
        except self.client.module.KafkaException as error:
            raise self.client.error(error.args[0], topic=lane.at.topic) from None

    def _receive(self, wait_seconds: float) -> None:
        """Hand out what came. What could not be handed out is fetched again: librdkafka has passed
        it, and would go on behind it."""
        try:
            self._hand_out(self._consumed(wait_seconds))
        except BaseException:
            for lane in list(self._lanes.values()):
                self._stop(lane)
            raise

    def _consumed(self, wait_seconds: float) -> list[Message]:
        """Return what came. It waits for the first message only, not for as many as are wanted."""
        wanted = min(max(int(BYTES_AT_ONCE / self._mean_bytes), 1), MESSAGES_MAX)
        consume = self.client.consumer.consume
        first: list[Message] = consume(1, wait_seconds) if wait_seconds else []
        return first + consume(wanted, 0)

    def _hand_out(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        self.round += 1
        type_: Any = self.client.module.Message
        errors: list[Message] = []
        if any(map(is_not, map(type_.error, messages), repeat(None))):
            errors = [each for each in messages if each.error() is not None]
            messages = [each for each in messages if each.error() is None]
        for topic, of_topic in groupby(messages, type_.topic):
            for partition, run in groupby(of_topic, type_.partition):
                lane = self._lanes.get(At(topic, partition))
                if lane is not None:
                    self._put(lane, gathered(list(run), type_))
        self._hand_out_errors(errors)

    def _put(self, lane: Lane, came: Gathered) -> None:
        if not (came.offsets[1:] > came.offsets[:-1]).all():
            raise AssertionError("offsets of a partition rise")
        self._trouble = None
        if lane.is_doubted:
            lane.is_doubted = False
            if came.offsets[0] == lane.last.offset and came.epochs[0] != lane.last.epoch:
                lane.is_other_log = True
        if lane.is_other_log:
            return
        came = came.behind(int(np.searchsorted(came.offsets, lane.next)))  # none comes twice
        if not len(came.offsets):
            return
        size = int(came.sizes[-1])
        self._mean_bytes = size / len(came.offsets) + 100
        with lane.lock:
            lane.waiting.append(Came(self.round, came))
            lane.bytes += size
            lane.last = LastRecord(int(came.offsets[-1]), int(came.epochs[-1]))
            lane.next, lane.end = lane.last.offset + 1, None
        share = self._settings.memory_bytes // 2 // len(self._lanes)
        if lane.bytes > max(share, SHARE_BYTES_MIN) and not lane.is_paused:
            lane.is_paused = True
            self._try(self.client.consumer.pause, lane)

    def _hand_out_errors(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error, topic, partition = message.error(), message.topic(), message.partition()
            assert error is not None, "only these are given"
            lane = None
            if topic is not None and partition is not None:
                lane = self._lanes.get(At(topic, partition))
            if lane is None:
                self._note(error)
            elif error.name() == "_PARTITION_EOF":
                self._trouble, end = None, message.offset()
                with lane.lock:
                    if end is not None and end >= lane.next:  # else records came behind it
                        lane.end = end
            elif error.name() not in ENOUGH:
                lane.failure = error

    def _is_hopeless(self, trouble: KafkaError, passed: float) -> bool:
        return trouble.name() in DENIED or (
            trouble.name() == "_ALL_BROKERS_DOWN" and passed >= AWAY_SECONDS
        )

    def _note(self, error: KafkaError) -> None:
        if error.name() not in ENOUGH:
            self._trouble = error

    def _ask(self, lane: Lane) -> None:
        at = self.client.module.TopicPartition(*lane.at)
        trouble = self._trouble
        try:
            found = self.client.consumer.get_watermark_offsets(
                at, timeout=self._settings.answer_seconds
            )
        except self.client.module.KafkaException as error:
            raise self.client.error(error.args[0], topic=lane.at.topic) from None
        if found is None:
            raise self._no_answer(lane)
        if self._trouble is trouble:
            self._trouble = None

    def _no_answer(self, lane: Lane) -> Exception:
        if self._trouble is not None:
            return self.client.error(self._trouble, topic=lane.at.topic)
        return UnavailableError(
            "Kafka does not answer", topic=lane.at.topic, partition=lane.at.partition
        )
