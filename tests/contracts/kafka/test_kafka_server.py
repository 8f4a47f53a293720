"""What only a real broker does: topics made anew, retention, transactions, logins, being killed."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import confluent_kafka
import pytest

from lakebed.backends.kafka import KafkaCredentials, KafkaRecordSource
from lakebed.backends.kafka.kafka_source import KafkaReader
from lakebed.errors import DeniedError, UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import SourceSplit
from tests.contracts.sources.trials import KafkaTrial
from tests.servers.kafka import PASSWORD, USER, RealKafka

pytestmark = pytest.mark.slow
WAIT = 15.0


@pytest.fixture
def trial(kafka: RealKafka) -> KafkaTrial:
    return KafkaTrial(kafka)


@pytest.fixture
def source(trial: KafkaTrial) -> Iterator[KafkaRecordSource]:
    with closing(trial.connect()) as source:
        yield source


def split_of(source: KafkaRecordSource, topic: str) -> SourceSplit:
    (found,) = (split for split in source.splits() if split.title == f"{topic}, partition 0")
    return found


def values(source: KafkaRecordSource, split: SourceSplit, begin: int, count: int) -> list[bytes]:
    """Return records from a position on, until so many have come."""
    came: list[bytes] = []
    with closing(source.open(split, begin)) as reader:
        while len(came) < count:
            records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
            assert records is not None
            came += records.batch["value"].to_pylist()
    return came


def test_a_topic_made_anew_gives_none_of_its_records_under_the_old_id(
    trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    trial.write("a", *(b"old %d" % number for number in range(20)))
    old = split_of(source, trial.topic("a"))
    with closing(source.open(old, 0)) as reader:
        records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
        assert records is not None
        for _ in range(3):  # librdkafka goes on at the old offset of whatever has the name
            trial.make_anew("a")
            trial.write("a", *(b"new %d" % number for number in range(40)))
            assert reader.read(bytes_max=1 << 20, wait_seconds=3.0) is None
    new = split_of(source, trial.topic("a"))
    assert new.name != old.name
    assert values(source, new, 0, 40)[0] == b"new 0"


def test_a_topic_that_is_gone_has_no_source_split_and_no_records(
    kafka: RealKafka, trial: KafkaTrial
) -> None:
    trial.write("a", b"one")
    with closing(trial.connect(answer_seconds=3.0)) as source:
        split = split_of(source, trial.topic("a"))
        kafka.delete_topic(trial.topic("a"))
        assert source.splits() == []
        with closing(source.open(split, 0)) as reader:
            assert reader.read(bytes_max=100) is None


def test_a_position_beyond_the_end_is_not_taken_for_the_newest(
    trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    trial.write("a", b"one", b"two")
    split = split_of(source, trial.topic("a"))
    with pytest.raises(PositionGoneError, match="lost records that were taken") as caught:
        values(source, split, 5, 1)
    assert (caught.value.first, caught.value.end) == (5, 2)


def test_aborted_records_never_come_and_open_transactions_hold_back(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    topic = trial.topic("a")
    kafka.put(topic, b"before")
    kafka.put_in_transaction(topic, b"x1", b"x2", commit=False)
    kafka.put_in_transaction(topic, b"c1", commit=True)
    split = split_of(source, topic)
    assert values(source, split, 0, 2) == [b"before", b"c1"]
    producer = kafka.producer(transactional_id=f"{topic}-open")
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(WAIT)
    kafka.put(topic, b"behind")
    with closing(source.open(split, 0)) as reader:
        records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
        assert records is not None
        end = records.end
        while (records := reader.read(bytes_max=1 << 20, wait_seconds=1.0)) is not None:
            end = records.end
        producer.commit_transaction(WAIT)
        records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
        assert records is not None
        assert records.begin == end
        assert records.batch["value"].to_pylist() == [b"open", b"behind"]


def test_a_start_in_time_is_the_first_record_that_is_not_older(
    kafka: RealKafka, trial: KafkaTrial
) -> None:
    topic = f"{trial.prefix}.old"
    kafka.make_topic(topic, retention_ms="-1")
    for second in (10, 20, 30):
        kafka.put(topic, b"x", timestamp=1_700_000_000_000 + second * 1_000)
    for start, offset in (("2023-11-14T22:13:40", 1), ("2023-11-15T00:00:00+01:00", 3)):
        with closing(trial.connect(start=start)) as source:
            assert source.start(split_of(source, topic)) == offset


def test_partitions_that_are_added_are_found(kafka: RealKafka, trial: KafkaTrial) -> None:
    topic = trial.topic("a")
    with closing(trial.connect(start="latest")) as source:
        (first,) = source.splits()
        kafka.add_partitions(topic, 3)
        kafka.put(topic, b"one", partition=2)
        deadline = time.monotonic() + WAIT
        while len(found := source.splits()) < 3:
            assert time.monotonic() < deadline
        assert found[0] == first
        assert source.start(found[2]) == 0
        assert values(source, found[2], 0, 1) == [b"one"]


def test_a_record_larger_than_what_is_fetched_at_once_comes(
    kafka: RealKafka, trial: KafkaTrial
) -> None:
    topic = trial.topic("a")
    kafka.delete_topic(topic)
    kafka.make_topic(topic, max_message_bytes="12000000")
    large = b"x" * 10_000_000
    producer = kafka.producer(message_max_bytes=12_000_000)
    for value in (b"before", large, b"behind"):
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT) == 0
    with closing(trial.connect(memory_bytes=1 << 20)) as source:
        assert values(source, split_of(source, topic), 0, 3) == [b"before", large, b"behind"]


def test_a_wrong_password_is_denied_and_shown_nowhere(
    kafka: RealKafka, trial: KafkaTrial, caplog: pytest.LogCaptureFixture
) -> None:
    trial.write("a", b"one")
    right = KafkaCredentials(mechanism="PLAIN", user=USER, password=PASSWORD, tls=False)
    with closing(trial.connect(servers=kafka.login, security=right)) as source:
        split = split_of(source, trial.topic("a"))
        assert values(source, split, 0, 1) == [b"one"]
    wrong = KafkaCredentials(mechanism="PLAIN", user=USER, password="Wr0ng-pass", tls=False)
    with closing(trial.connect(servers=kafka.login, security=wrong, answer_seconds=5.0)) as source:
        for _ in range(2):
            with closing(source.open(split, 0)) as reader, pytest.raises(DeniedError) as caught:
                reader.read(bytes_max=100)
            assert "Wr0ng" not in str(caught.value)
        with pytest.raises(DeniedError):
            source.splits()
    assert "Wr0ng" not in caplog.text
    assert PASSWORD not in caplog.text


def test_a_topic_that_may_not_be_read_is_denied(kafka: RealKafka, trial: KafkaTrial) -> None:
    trial.write("a", b"one")
    kafka.deny(trial.topic("a"))
    login = KafkaCredentials(mechanism="PLAIN", user=USER, password=PASSWORD, tls=False)
    with closing(trial.connect(servers=kafka.login, security=login)) as source:
        split = split_of(source, trial.topic("a"))
        with closing(source.open(split, 0)) as reader, pytest.raises(DeniedError, match="refuses"):
            reader.read(bytes_max=100, wait_seconds=WAIT)


def test_a_consumer_group_that_is_forbidden_keeps_no_record_back(
    kafka: RealKafka, trial: KafkaTrial
) -> None:
    trial.write("a", b"one", b"two")
    kafka.deny_group(trial.prefix)
    login = KafkaCredentials(mechanism="PLAIN", user=USER, password=PASSWORD, tls=False)
    with closing(trial.connect(servers=kafka.login, security=login)) as source:
        split = split_of(source, trial.topic("a"))
        with closing(source.open(split, 0)) as reader:
            for end in (1, 2):
                records = reader.read(bytes_max=1, wait_seconds=WAIT)
                assert records is not None
                assert records.end == end
                reader.acknowledge(end)
                time.sleep(0.5)
            assert reader.read(bytes_max=1, wait_seconds=2.0) is None


def test_acknowledged_records_survive_a_broker_that_is_killed_and_come_once(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    topic = trial.topic("a")
    producer = kafka.producer(enable_idempotence=True)
    acknowledged: list[int] = []

    def written(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            acknowledged.append(int(message.value() or b""))

    split, came, at = split_of(source, topic), [], 0
    reader = source.open(split, 0)
    for number in range(300):
        producer.produce(topic, b"%d" % number, partition=0, on_delivery=written)
        producer.poll(0)
        if number == 100:
            producer.flush(WAIT)
            kafka.kill()
        if number == 200:
            kafka.restart()
    assert producer.flush(60) == 0
    deadline = time.monotonic() + 60
    while len(came) < len(acknowledged) and time.monotonic() < deadline:
        try:
            records = reader.read(bytes_max=500, wait_seconds=1.0)
        except UnavailableError:
            continue
        if records is not None:
            assert records.begin == at
            at = records.end
            came += [int(value) for value in records.batch["value"].to_pylist()]
    assert came == sorted(acknowledged)


def test_changing_readers_of_a_partition_never_take_a_record_of_each_other(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    trial.write("a", *(b"%d" % number for number in range(5_000)))
    split = split_of(source, trial.topic("a"))
    begins = [0, 4_000, 17, 2_500, 4_999, 1]
    readers = [source.open(split, begin) for begin in begins]
    ends = list(begins)
    for turn in range(60):
        index = turn % len(readers)
        records = readers[index].read(bytes_max=2_000, wait_seconds=0.0)
        if records is not None:
            assert records.batch["position"].to_pylist() == list(range(ends[index], records.end))
            ends[index] = records.end
    assert all(end > begin for begin, end in zip(begins, ends, strict=True))


def test_holes_that_compaction_leaves_are_passed(kafka: RealKafka, trial: KafkaTrial) -> None:
    topic = f"{trial.prefix}.compacted"
    kafka.make_topic(
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    deadline = time.monotonic() + 40
    written, positions = 0, [0]
    while positions == list(range(len(positions))):
        assert time.monotonic() < deadline, "the broker compacts nothing"
        kafka.put(topic, b"%d" % written, b"%d" % (written + 1), key=b"same")
        written += 2
        time.sleep(0.3)
        with closing(trial.connect()) as source:
            begin, positions = 0, []
            with closing(source.open(split_of(source, topic), begin)) as reader:
                while (records := reader.read(bytes_max=1 << 20)) is not None:
                    assert records.begin == begin
                    begin = records.end
                    positions += records.batch["position"].to_pylist()
                assert begin == written
                assert reader.behind() == 0


def test_readers_in_several_threads_share_a_consumer(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    topic = f"{trial.prefix}.many"
    kafka.make_topic(topic, partitions=4)
    wanted = [b"%d" % number for number in range(3_000)]
    for partition in range(4):
        kafka.put(topic, *wanted, partition=partition)
    splits = source.splits()

    def read(split: SourceSplit) -> list[bytes]:
        return values(source, split, 0, len(wanted))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, splits)) == [wanted] * 4


def test_a_log_that_was_lost_and_has_grown_again_is_not_taken_for_the_old_one(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    """As after an unclean election: the offsets are there, and other records have them."""
    topic = trial.topic("a")
    kafka.put(topic, *(b"old %d" % number for number in range(10)))
    split = split_of(source, topic)
    reader = source.open(split, 0)
    records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
    assert records is not None
    kafka.kill()
    for file in (kafka.folder / "logs" / f"{topic}-0").iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    kafka.restart()
    kafka.put(topic, *(b"new %d" % number for number in range(20)))
    with closing(trial.connect()) as other:
        again = other.open(split, records.end, resume=records.resume)
        for view in (reader, again, again):
            with pytest.raises(PositionGoneError, match="lost records that were taken") as caught:
                read_on(view)
            assert caught.value.end <= caught.value.first == 10
        assert values(other, split, 0, 20)[9] == b"new 9"


def read_on(reader: KafkaReader) -> None:
    """Read until something comes, over times without an answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if reader.read(bytes_max=1 << 20, wait_seconds=1.0) is not None:
                return
        except UnavailableError:
            continue


def test_the_record_before_a_position_may_be_gone(
    kafka: RealKafka, trial: KafkaTrial, source: KafkaRecordSource
) -> None:
    topic = trial.topic("a")
    kafka.put(topic, b"one", b"two", b"three")
    split = split_of(source, topic)
    with closing(source.open(split, 0)) as reader:
        first = reader.read(bytes_max=6, wait_seconds=WAIT)
        assert first is not None
    kafka.delete_records(topic, before=first.end)
    with closing(source.open(split, first.end, resume=first.resume)) as reader:
        records = reader.read(bytes_max=1 << 20, wait_seconds=WAIT)
        assert records is not None
        assert records.batch["value"].to_pylist() == [b"three"]
