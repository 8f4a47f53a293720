"""Topics into landing tables: every byte as it came, each record once, whoever reads and dies."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.backends.kafka import KafkaRecordSource
from lakebed.bootstrap.app import App
from lakebed.errors import LakebedError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.land_records import LandRecords
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import table_name
from tests.contracts.sources.trials import KafkaTrial
from tests.servers.kafka import KafkaServer, RealKafka

TABLE = "topics_landing"
TURNS_MAX = 300


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        lake._app.catalog.create(table_name(TABLE), LANDING_SCHEMA)
        yield lake


def worker(
    lake: lakebed.Lake, source: KafkaRecordSource, *, rotate_records: int = 50
) -> Pipeline[Any]:
    app: App = lake._app
    return Pipeline(
        table=app.catalog.find(table_name(TABLE)),
        connection=FeedConnection(connection_id("abc"), 1),
        source=source,
        rounds=CommitRound(
            stage=StageRows(files=app.files), make_rows=LandRecords(), clock=app.clock
        ),
        clock=app.clock,
        rules=PipelineRules(limits=RotationLimits(records=rotate_records)),
    )


def rows(lake: lakebed.Lake) -> list[dict[str, object]]:
    found: list[dict[str, object]] = lake.table(TABLE).query().read_all().to_pylist()
    return found


def test_landed_records_are_what_was_sent_byte_for_byte(
    kafka_mock: KafkaServer, lake: lakebed.Lake
) -> None:
    trial = KafkaTrial(kafka_mock)
    topic = trial.topic("a")
    headers = [("a", b"\xff"), ("b", None), ("a", b"")]
    kafka_mock.put(topic, b"\x00\xff", key=b"k", headers=headers, timestamp=1_600_000_000_123)
    kafka_mock.put(topic, None, key=b"")
    kafka_mock.put(topic, b"")
    with closing(worker(lake, trial.connect())) as feed:
        while len(found := rows(lake)) < 3:
            feed.turn()
            feed.flush()
    first, tombstone, empty = found
    assert [row["position"] for row in found] == [0, 1, 2]
    assert (first["value"], first["key"], first["headers"]) == (b"\x00\xff", b"k", headers)
    assert first["time"].timestamp() == 1_600_000_000.123
    assert (tombstone["value"], tombstone["key"], tombstone["headers"]) == (None, b"", None)
    assert (empty["value"], empty["key"]) == (b"", None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_each_committed_record_is_landed_once_whoever_reads_and_dies(
    kafka: RealKafka, lake: lakebed.Lake, seed: int
) -> None:
    rng, trial = random.Random(seed), KafkaTrial(kafka)
    topic, sent = trial.topic("a"), 0
    with ExitStack() as opened:

        def begin() -> Pipeline[Any]:
            source = opened.enter_context(closing(trial.connect()))
            return worker(lake, source, rotate_records=rng.randrange(1, 40))

        workers = [begin(), begin()]
        for _ in range(25):
            values = [b"%d" % (sent + number) for number in range(rng.randrange(1, 30))]
            kind = rng.choice(["plain", "committed", "aborted"])
            if kind == "plain":
                kafka.put(topic, *values)
            else:
                kafka.put_in_transaction(topic, *values, commit=kind == "committed")
            sent += len(values) if kind != "aborted" else 0
            index = rng.randrange(2)
            try:
                for _ in range(rng.randrange(3)):
                    workers[index].turn()
            except LakebedError:
                workers[index].forget()
            if rng.random() < 0.3:  # it dies with what it holds
                workers[index] = begin()
        last = begin()
        for _ in range(TURNS_MAX):
            last.turn()
            last.flush()
            if len(found := rows(lake)) == sent:
                break
    assert [row["value"] for row in found] == [b"%d" % number for number in range(sent)]
