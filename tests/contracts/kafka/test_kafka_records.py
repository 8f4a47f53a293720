"""What Kafka's records look like here, and who gets them, on librdkafka's mock of a cluster."""

import builtins
import gc
import logging
import time
from collections.abc import Iterator
from contextlib import closing

import confluent_kafka
import pytest

from lakebed.backends.kafka import (
    KafkaCredentials,
    KafkaRecordSource,
    KafkaSettings,
    shared_consumer,
)
from lakebed.backends.kafka.gathering import LAST_MILLIS
from lakebed.backends.system import SystemClock
from lakebed.errors import InvalidError, UnavailableError
from lakebed.ports.record_source import SourceSplit
from tests.contracts.sources.trials import KafkaTrial
from tests.servers.kafka import KafkaServer, mock_kafka

WAIT = 15.0


@pytest.fixture
def trial(kafka_mock: KafkaServer) -> KafkaTrial:
    return KafkaTrial(kafka_mock)


@pytest.fixture
def topic(trial: KafkaTrial) -> str:
    return trial.topic("a")


@pytest.fixture
def source(trial: KafkaTrial) -> Iterator[KafkaRecordSource]:
    with closing(trial.connect()) as source:
        yield source


def split_of(source: KafkaRecordSource, topic: str, partition: int = 0) -> SourceSplit:
    (found,) = (
        split for split in source.splits() if split.title == f"{topic}, partition {partition}"
    )
    return found


def test_keys_headers_times_and_tombstones_come_as_they_were_sent(
    kafka_mock: KafkaServer, topic: str, source: KafkaRecordSource
) -> None:
    headers = [("a", b"1"), ("b", None), ("a", b"")]
    kafka_mock.put(topic, b"whole", key=b"k", headers=headers, timestamp=1_234_567_890_123)
    kafka_mock.put(topic, None, key=b"", timestamp=1)
    kafka_mock.put(topic, b"", timestamp=LAST_MILLIS + 1)
    with closing(source.open(split_of(source, topic), 0)) as reader:
        rows, size = [], 0
        while len(rows) < 3:
            records = reader.read(bytes_max=1, wait_seconds=WAIT)
            assert records is not None
            rows += records.batch.to_pylist()
            size += records.size
    whole, tombstone, empty = rows
    assert size == len(b"wholeka1ba")
    assert whole["headers"] == headers
    assert whole["time"].timestamp() == 1_234_567_890.123
    assert (whole["key"], whole["value"]) == (b"k", b"whole")
    assert (tombstone["key"], tombstone["value"], tombstone["headers"]) == (b"", None, None)
    assert (empty["key"], empty["value"]) == (None, b"")
    assert empty["time"] is None  # beyond the year 9999: some producer's mistake


def test_what_is_not_read_is_paused_and_none_of_it_is_lost(
    kafka_mock: KafkaServer, trial: KafkaTrial, topic: str
) -> None:
    values = [b"%06d" % number + b"x" * 1_000 for number in range(3_000)]
    for partition in (0, 1):
        kafka_mock.put(topic, *values, partition=partition)
    with closing(trial.connect(memory_bytes=1 << 20)) as source:
        slow, fast = (source.open(split_of(source, topic, number), 0) for number in (0, 1))
        first = slow.read(bytes_max=1, wait_seconds=WAIT)
        assert first is not None
        assert first.count == 1
        came = 0
        while came < len(values):
            records = fast.read(bytes_max=64 << 10, wait_seconds=WAIT)
            assert records is not None
            came += records.count
            held = slow._lane.bytes + fast._lane.bytes
            assert held < (3 << 20), f"{held} bytes wait"
        assert slow._lane.is_paused
        at = first.end
        while at < len(values):
            records = slow.read(bytes_max=64 << 10, wait_seconds=WAIT)
            assert records is not None
            assert records.begin == at
            assert records.batch["value"].to_pylist() == values[at : records.end]
            at = records.end


def test_readers_of_one_partition_take_turns_and_each_gets_all(
    kafka_mock: KafkaServer, topic: str, source: KafkaRecordSource
) -> None:
    kafka_mock.put(topic, *(b"%d" % number for number in range(500)))
    split = split_of(source, topic)
    for begin in [0, 400, 10, 490, 250, 499, 0] * 5:
        with closing(source.open(split, begin)) as reader:
            records = reader.read(bytes_max=1, wait_seconds=WAIT)
            assert records is not None
            assert records.batch["position"].to_pylist() == [begin]


@pytest.mark.parametrize(
    ("settings", "begin"),
    [
        ({"start": "earliest"}, 0),
        ({"start": "latest"}, 3),
        ({"offsets": {"TOPIC:0": 2}}, 2),
        ({"offsets": {"TOPIC:1": 2}, "start": "latest"}, 3),
    ],
)
def test_a_feed_begins_where_its_source_says(
    kafka_mock: KafkaServer,
    trial: KafkaTrial,
    topic: str,
    settings: dict[str, object],
    begin: int,
) -> None:
    kafka_mock.put(topic, b"one", b"two", b"three")
    if isinstance(offsets := settings.get("offsets"), dict):
        offsets = {name.replace("TOPIC", topic): offset for name, offset in offsets.items()}
        settings = settings | {"offsets": offsets}
    with closing(trial.connect(**settings)) as source:
        assert source.start(split_of(source, topic)) == begin


def test_what_appears_while_a_source_is_open_begins_at_its_first_record(
    kafka_mock: KafkaServer, trial: KafkaTrial, topic: str
) -> None:
    kafka_mock.put(topic, b"one")
    with closing(trial.connect(start="latest")) as source:
        assert source.start(split_of(source, topic)) == 1
        trial.write("later", b"not passed over")
        assert source.start(split_of(source, trial.topic("later"))) == 0


def test_topics_are_found_by_names_and_by_patterns_without_those_that_are_left_out(
    trial: KafkaTrial,
) -> None:
    for name in ("orders", "orders.test", "stock"):
        trial.topic(name)
    prefix = trial.prefix.replace(".", r"\.")

    def topics(**settings: object) -> set[str]:
        with closing(trial.connect(**settings)) as source:
            found = {split.title.partition(",")[0] for split in source.splits()}
        return {topic.removeprefix(f"{trial.prefix}.") for topic in found}

    assert topics() == {"orders", "orders.test", "stock"}
    assert topics(exclude=r".*\.test") == {"orders", "stock"}
    assert topics(topics=f"{prefix}.ord") == set()  # the whole name
    assert topics(topics=(trial.topic("stock"),)) == {"stock"}
    with pytest.raises(InvalidError, match=r"does not know the topic .*did you mean '.*stock'"):
        topics(topics=(trial.topic("stock") + "s",))


def test_offsets_of_a_group_are_set_for_people_and_never_read(
    kafka_mock: KafkaServer, trial: KafkaTrial, topic: str, source: KafkaRecordSource
) -> None:
    kafka_mock.put(topic, b"one", b"two", b"three")
    split = split_of(source, topic)
    with closing(source.open(split, 0)) as reader:
        reader.acknowledge(2)
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka_mock.servers, "group.id": trial.prefix, "log_level": 0}
        )
        with closing(consumer):
            end = time.monotonic() + WAIT
            at = confluent_kafka.TopicPartition(topic, 0)
            while consumer.committed([at], timeout=WAIT)[0].offset != 2:
                assert time.monotonic() < end
                time.sleep(0.05)
    with closing(trial.connect()) as other, closing(other.open(split, 0)) as reader:
        records = reader.read(bytes_max=100, wait_seconds=WAIT)
        assert records is not None
        assert records.begin == 0
    assert source.start(split) == 0


def test_a_broker_that_is_away_is_said_to_be(caplog: pytest.LogCaptureFixture) -> None:
    with mock_kafka() as server:
        trial = KafkaTrial(server)
        trial.write("a", b"one", b"two")
        source = trial.connect(answer_seconds=3.0)
        split = split_of(source, trial.topic("a"))
        reader = source.open(split, 0)
        records = reader.read(bytes_max=1, wait_seconds=WAIT)
        assert records is not None
    gc.collect()  # the mock ends with its producer
    second = reader.read(bytes_max=100)  # it had come already
    assert second is None or second.count == 1
    caplog.clear()
    with pytest.raises(UnavailableError, match="does not answer"):
        list(iter(lambda: reader.read(bytes_max=100, wait_seconds=0.1), source))  # again and again
    with pytest.raises(UnavailableError, match="does not answer"):
        source.splits()
    with pytest.raises(UnavailableError, match="does not answer"):
        source.start(split)
    source.close()
    lines = [record for record in caplog.records if record.name == "lakebed.kafka"]
    assert 0 < len(lines) < 40, "librdkafka logs each of twenty tries a second"


def test_a_new_reader_of_a_broker_that_is_away_does_not_wait_for_ever() -> None:
    settings = KafkaSettings(servers="127.0.0.1:9", topics=("t",), answer_seconds=2.5)
    with closing(KafkaRecordSource(settings, clock=SystemClock())) as source:
        reader = source.open(SourceSplit("t:0@-", "t, partition 0"), 0)
        begin = time.monotonic()
        with pytest.raises(UnavailableError):
            reader.read(bytes_max=1)
        assert time.monotonic() - begin < 10


def test_without_the_extra_a_source_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: object) -> object:
        if name.startswith("confluent_kafka"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidError, match=r"pip install lakebed\[feeds\]"):
        KafkaRecordSource(KafkaSettings(servers="x:1", topics="t"), clock=SystemClock())


def test_settings_that_cannot_work_are_refused_without_their_secrets() -> None:
    security = KafkaCredentials(mechanism="PLAIN", user="me", password="hunter2", key_password="h3")
    assert "hunter2" not in repr(security)
    assert "h3" not in repr(KafkaSettings(servers="x:1", topics="t", security=security))
    with pytest.raises(InvalidError, match="half of a login"):
        KafkaCredentials(mechanism="PLAIN", user="me")
    with pytest.raises(InvalidError, match=r"not a regular expression .*field=exclude"):
        KafkaSettings(servers="x:1", topics="t", exclude="(")
    with pytest.raises(InvalidError, match="not a start"):
        KafkaSettings(servers="x:1", topics="t", start="yesterday")
    with pytest.raises(InvalidError, match="without topics"):
        KafkaSettings(servers="x:1", topics=())
    broken = KafkaCredentials(
        mechanism="PLAIN", user="me", password="hunter2", ca_file="/absent/hunter2.pem"
    )
    settings = KafkaSettings(servers="x:1", topics="t", security=broken)
    source = KafkaRecordSource(settings, clock=SystemClock())
    with pytest.raises(InvalidError, match="Kafka's client refuses") as caught:
        source.splits()
    assert "hunter2" not in str(caught.value)


def test_a_log_line_is_one_line_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    security = KafkaCredentials(mechanism="PLAIN", user="me", password="hunter2")
    settings = KafkaSettings(servers="127.0.0.1:9", topics="t", security=security)
    source = KafkaRecordSource(settings, clock=SystemClock())
    logger = source._consumer.client._logger
    with caplog.at_level(logging.INFO):
        logger.error("FAIL [x]: password %s\nrefused", "hunter2")
        for _ in range(100):
            logger.error("FAIL [x]: again")
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "FAIL [x]: password *** refused"
    assert len(lines) == 5


def test_what_came_and_could_not_be_handed_out_is_fetched_again(
    kafka_mock: KafkaServer,
    topic: str,
    source: KafkaRecordSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka_mock.put(topic, b"one", b"two")
    with closing(source.open(split_of(source, topic), 0)) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(shared_consumer, "gathered", interrupted)
            with pytest.raises(KeyboardInterrupt):
                reader.read(bytes_max=100, wait_seconds=WAIT)
        records = reader.read(bytes_max=100, wait_seconds=WAIT)
        assert records is not None
        assert records.begin == 0
        assert records.batch["position"].to_pylist()[0] == 0


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
