"""A lake on AWS: the whole story of the demo, and what is said when something is not there."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from demo import flights as demo
from lakebed.bootstrap.aws import open_instance
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.dynamo_tables import LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    LakebedError,
    LogConflictError,
    LogTruncatedError,
    NewerFormatError,
    UnavailableError,
)
from lakebed.lake import Lake
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.model.names import TransactionNumber
from lakebed.statestore import snapshots
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from tests.e2e.test_objects_in_s3 import ROWS, SCHEMA, exit_code, rows
from tests.servers.cdk import DeployedInstance
from tests.servers.faulty_proxy import Answer, FaultyProxy
from tests.servers.fixtures import (  # noqa: F401 - they are fixtures
    deployed_instance,
    ministack,
    proxy,
)
from tests.servers.s3 import BUCKET, S3Server
from tests.servers.sqs import make_queue

AIRPORTS = ["EWR", "JFK", "LGA"]
CARRIERS = ["9E", "AA", "B6", "DL", "EV", "UA"]
FLIGHTS = 2_400
ENVIRONMENT = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")


@pytest.fixture
def server(
    ministack: S3Server,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> S3Server:
    """Where the variables AWS_... of this test lead."""
    for name, value in ministack.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    return ministack


def tell(server: S3Server, name: str, text: str) -> None:
    with closing(server.clients()) as clients:
        clients.ssm.put_parameter(
            Name=parameter_name(InstanceId(name)), Value=text, Type="String", Overwrite=True
        )


@pytest.fixture
def instance(server: S3Server) -> InstanceResources:
    """An instance that was put together by hand."""
    prefix = server.new_prefix()
    with closing(server.clients()) as clients:
        queues = {
            kind: make_queue(clients, f"{prefix}-{kind}", receives_max=3)
            for kind in (COMPACTION_QUEUE, COMMIT_QUEUE)
        }
    resources = InstanceResources(
        instance=InstanceId(f"by-hand-{prefix.rpartition('-')[2]}"),
        bucket=BUCKET,
        prefix=prefix,
        log_table=server.new_table(LOG_TABLE),
        registry_table=server.new_table(REGISTRY_TABLE),
        tracker_table=server.new_table(TRACKER_TABLE),
        queues=queues,
    )
    tell(server, resources.instance, encode_resources(resources))
    return resources


def some_flights() -> pa.Table:
    """Return flights like those of the demo, fewer."""
    first = datetime(2013, 1, 1, tzinfo=UTC)
    hours = [first + timedelta(hours=n * 8_760 // FLIGHTS) for n in range(FLIGHTS)]
    hours[10] = first + timedelta(hours=10)  # what the demo asks for
    return pa.table(
        {
            "month": [hour.month for hour in hours],
            "carrier": ["UA" if n == 10 else CARRIERS[n % 6] for n in range(FLIGHTS)],
            "flight": [1545 if n == 10 else n % 300 for n in range(FLIGHTS)],
            "origin": [AIRPORTS[n % 3] for n in range(FLIGHTS)],
            "delay": [None if n % 7 == 0 else n / 10 for n in range(FLIGHTS)],
            "time_hour": pa.array(hours, pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_whole_story_of_the_demo_on_what_was_deployed(
    deployed_instance: DeployedInstance,  # noqa: F811 - the fixture
    server: S3Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flights, show = some_flights(), demo.Show()
    place = f"aws:{deployed_instance.instance}"
    with lakebed.connect(place) as lake:
        assert place in repr(lake)
        settings = demo.SETTINGS | {"leaf_rows_max": 400}
        table = lake.create_table("flights", demo.columns_of(flights), settings=settings)
        demo.fill(show, table, flights)
        demo.settle(show, lake)
        demo.tidy(show, lake, table)
        (status,) = lake.status("flights")
        assert status.rows == FLIGHTS
        assert len(table.split_points) > 3
    shutil.rmtree(tmp_path / "cache")
    with lakebed.connect(place) as lake:  # another machine
        demo.compare(show, lake.table("flights"), flights)
        assert not show.wrong, capsys.readouterr().out
        again = lake.table("flights").ingest(flights.slice(0, 0), job="nothing")
        assert again.rows == 0
        assert not [f for f in lake.fsck(deep=True).findings if f.severity != "notice"]
        lake.rename_table("flights", "departures")
        assert lake.tables() == ["departures"]
        lake.drop_table("departures")
        lake.run()
        assert lake.tables() == []


def test_the_command_works_at_an_instance(
    instance: InstanceResources, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        lake.create_table("t", SCHEMA)
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(rows(0), path)
    for at in (["--at", instance.instance], ["--lake", f"aws:{instance.instance}"]):
        assert exit_code([*at, "ingest", "t", str(path), "--job", "first"]) == 0
    at = ["--at", f"aws:{instance.instance}"]
    assert exit_code([*at, "run"]) == 0
    capsys.readouterr()
    assert exit_code([*at, "--json", "query", "t", "--key", "id=3"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {"id": 3, "name": "n3"}
    assert exit_code([*at, "status", "t"]) == 0
    assert f"{ROWS:,}" in capsys.readouterr().out
    assert exit_code([*at, "fsck", "--deep"]) == 0


def test_a_compaction_job_goes_through_the_queue_and_any_process_may_run_it(
    instance: InstanceResources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = open_instance(instance.instance)
    with Lake(app) as lake:
        table = lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": 0})
        for first in range(3):
            table.ingest(rows(first))
        assert app.create_jobs.run(table._opened, everything=True) == 1
        assert app.queue.depth() == (1, 0)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "another machine"))
    other = open_instance(instance.instance)
    with Lake(other) as lake:
        done = lake.run()
        assert done.jobs_done == 1
        assert done.files_collected == 3
        assert other.queue.depth() == (0, 0)
        (status,) = lake.status("t")
        assert status.files == 1
        id_ = lake.table("t")._opened.id
        reports = other.tracker.find(id_, events=["committed"], reports_max=10)
        assert [report.kind for report in reports].count("compaction") == 1


def test_queued_commits_of_many_go_into_one_entry_by_a_committer_elsewhere(
    instance: InstanceResources,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    app = open_instance(instance.instance)
    with Lake(app) as lake:
        table = lake.create_table("t", SCHEMA)
        for first in range(3):
            assert table.ingest(rows(first), job=f"day {first}", queued=True).number == 0
        table.ingest(rows(3), job="direct")
        assert app.commit_queue.depth() == (3, 0)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "another machine"))
    at = ["--at", instance.instance]
    assert exit_code([*at, "commit"]) == 0
    assert "3 queued commits answered" in capsys.readouterr().out
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        table = lake.table("t")
        assert table.query().read_all().num_rows == 4 * ROWS
        told = {report.job: report for report in table.jobs(events=["committed"])}
        assert {told[f"day {n}"].number for n in range(3)} == {3}
        assert told["direct"].number == 2
        assert table.ingest(rows(0), job="day 0").repeated
        assert lake.tasks() == []


def test_scheduled_work_empties_the_log_and_another_machine_begins_with_a_snapshot(
    instance: InstanceResources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(snapshots, "LOG_ENTRIES_MAX", 5)
    app = open_instance(instance.instance)
    with Lake(app) as lake:
        table = lake.create_table("t", SCHEMA)
        written = 0
        for first in range(4):
            for part in range(3):
                table.ingest(rows(first).slice(part * 300, 300), job=f"{first}-{part}")
            written += lake.run().snapshots_written
        assert written >= 2
        log = app.logs.open(table._opened.id)
        with pytest.raises(LogTruncatedError):
            list(log.read_after(TransactionNumber(0)))
        with pytest.raises(LogConflictError):
            log.append(TransactionNumber(2), b"a stalled writer wakes up")
        wanted = table.query().read_all()
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "another machine"))
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        table = lake.table("t")
        assert table.query().read_all() == wanted
        assert table.ingest(rows(0).slice(0, 300), job="0-0").repeated, "its id is remembered"
        assert not [f for f in lake.fsck().findings if f.severity == "damage"]


def test_an_instance_that_is_not_there_is_named_with_region_and_account(server: S3Server) -> None:
    with pytest.raises(InvalidError, match=r"instance=nowhere region=us-east-1 account=0{12}"):
        lakebed.connect("aws:nowhere")
    for wrong in ("aws:", "aws:No", "aws:a--b", f"aws:{'a' * 40}"):
        with pytest.raises(InvalidError, match="not a name of an instance"):
            lakebed.connect(wrong)
    with pytest.raises(InvalidError, match="its own objects"):
        lakebed.connect("aws:nowhere", objects="s3://bucket/x")


def test_what_a_newer_lakebed_deployed_or_nobody_is_refused(server: S3Server) -> None:
    tell(server, "newer", '{"format": 99}')
    with pytest.raises(NewerFormatError, match="upgrade"):
        lakebed.connect("aws:newer")
    tell(server, "mangled", "{")
    with pytest.raises(CorruptError, match="deploy the instance again"):
        lakebed.connect("aws:mangled")


def through(passing: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", passing.url)


@pytest.mark.parametrize(
    ("operation", "permission"),
    [
        ("GetParameter", "ssm:GetParameter"),
        ("DynamoDB_20120810.GetItem", "dynamodb:GetItem"),
        ("DynamoDB_20120810.TransactWriteItems", "dynamodb:PutItem"),
    ],
)
def test_a_permission_that_lacks_is_named_and_nothing_changes(
    instance: InstanceResources,
    proxy: FaultyProxy,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    permission: str,
) -> None:
    with monkeypatch.context() as patch:
        through(proxy, patch)
        denied = Answer(400, "AccessDeniedException")
        proxy.rule = lambda _, target: denied if target.endswith(operation) else None
        with (
            pytest.raises(DeniedError, match=permission),
            lakebed.connect(f"aws:{instance.instance}") as lake,
        ):
            lake.create_table("t", SCHEMA)
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        assert lake.tables() == []


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (Answer(403, "AccessDenied"), (DeniedError, "s3:PutObject")),
        (Answer(404, "NoSuchBucket"), (InvalidError, "no such bucket")),
    ],
)
def test_a_bucket_of_another_account_is_told_and_nothing_is_lost(
    instance: InstanceResources,
    proxy: FaultyProxy,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    refusal: tuple[type[LakebedError], str],
) -> None:
    through(proxy, monkeypatch)
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        table = lake.create_table("t", SCHEMA)
        table.ingest(rows(0), job="before")
        proxy.rule = lambda method, target: (
            answer if method == "PUT" and target.startswith(f"/{BUCKET}/") else None
        )
        with pytest.raises(refusal[0], match=refusal[1]):
            table.ingest(rows(1), job="after")
        proxy.rule = lambda _method, _target: None
        assert table.ingest(rows(1), job="after").rows == ROWS
        assert table.query().read_all().num_rows == 2 * ROWS


def test_throttling_is_a_bounded_wait_and_the_same_request_works_later(
    instance: InstanceResources,
    proxy: FaultyProxy,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    through(proxy, monkeypatch)
    app = open_instance(instance.instance)
    with Lake(app) as lake:
        table = lake.create_table("t", SCHEMA)
        clock = app.clock
        head = table._opened.head
        head._retry = type(head._retry)(seconds_max=1.0)
        busy = Answer(400, "ProvisionedThroughputExceededException")
        proxy.rule = lambda _, target: busy if target.endswith("TransactWriteItems") else None
        began = clock.monotonic()
        with pytest.raises(UnavailableError, match="Throughput"):
            table.ingest(rows(0), job="a")
        assert clock.monotonic() - began < 60
        proxy.rule = lambda _method, _target: None
        assert table.ingest(rows(0), job="a").rows == ROWS
        assert table.query().read_all().num_rows == ROWS


def test_states_on_this_machine_are_kept_within_a_bound(
    instance: InstanceResources, tmp_path: Path
) -> None:
    states = tmp_path / "cache" / instance.instance / "states"
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        for name in ("a", "b"):
            lake.create_table(name, SCHEMA).ingest(rows(0))
    assert len(list(states.glob("*.sqlite"))) == 2
    with Lake(open_instance(instance.instance, states_bytes_max=100_000)) as lake:
        assert len(list(states.glob("*.sqlite"))) < 2
        assert lake.table("a").query().read_all().num_rows == ROWS
        assert lake.table("b").query().read_all().num_rows == ROWS


def test_a_lake_in_a_directory_starts_without_amazons_clients(tmp_path: Path) -> None:
    program = (
        "import sys, lakebed\n"
        "lakebed.connect(sys.argv[1]).close()\n"
        "print(sorted({'boto3', 'botocore', 'obstore'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.timeout(300)
def test_a_lake_on_aws_is_backed_up_into_a_directory_that_is_a_lake(
    instance: InstanceResources, tmp_path: Path
) -> None:
    with lakebed.connect(f"aws:{instance.instance}") as lake:
        table = lake.create_table("t", SCHEMA, split_points=[5])
        table.ingest(rows(0), job="a")
        table.compact()
        assert lake.backup(tmp_path / "backup").failure is None
        (again,) = lake.backup(tmp_path / "backup").tables
        assert again.files_copied == 0
        with pytest.raises(InvalidError, match="not supported yet"):
            lake.restore(tmp_path / "backup")
        found = table.query().read_all()
    with lakebed.connect(tmp_path / "backup", create=False) as backup:
        assert backup.table("t").query().read_all() == found
        assert not [f for f in backup.fsck(deep=True).findings if f.severity == "damage"]
