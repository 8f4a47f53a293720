"""What each role of people may do works, and what it may not is denied; a policy for one table lets
the library use that table, and not its neighbour."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from lakebed.bootstrap.aws import open_instance
from lakebed.bootstrap.doctor.examinations import Examination
from lakebed.cli.main import program
from lakebed.config.people.table_access import LakeArns, TablePatterns, on_items, reading
from lakebed.doctor.check import DoctorReport
from lakebed.errors import DeniedError, InvalidError
from lakebed.lake import Lake
from lakebed.model.names import TableId
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, PEOPLE, RunningInstance, with_variables
from tests.cloud.outside.acting_people import (
    DATA,
    NAME,
    OBJECTS,
    Action,
    Person,
    queue_url,
    user,
    with_role,
)
from tests.cloud.outside.people_actions import ACTIONS
from tests.cloud.users import put, send, stop_tasks
from tests.dsl.table_rows import SCHEMA, rows, same_rows

TABLE = TableId("0" * 32)
DIRECT = "direct"
EXAMINATIONS_MAX = 3
LAKE = LakeArns(
    partition="aws",
    region=REGION,
    account=ACCOUNT,
    parameter=f"/lakebed/{INSTANCE}",
    bucket=DATA,
    objects=OBJECTS,
    log_table=f"{NAME}-log",
    registry_table=f"{NAME}-registry",
    tracker_table=f"{NAME}-tracker",
    batches_table=f"{NAME}-batches",
)
EVERY_TABLE = TablePatterns(
    id="*", files="tables/*/files/*", snapshots="tables/*/snapshots/*", bodies="logs/*"
)
FILES_OF_USERS = [
    {"Effect": "Allow", "Action": action, "Resource": f"arn:aws:s3:::landing{of}"}
    for action, of in (("s3:GetObject", "/files/*"), ("s3:ListBucket", ""))
]
"""What somebody with a policy for one table has beside it, to submit files."""
RARE = {
    ("Files", "s3:AbortMultipartUpload"): "an upload of parts that fails half-way",
    ("Formats", "dynamodb:Query"): "an entry whose form not all lakes allow",
    ("Log", "dynamodb:GetItem"): "an entry that was emptied meanwhile",
    ("BatchJobs", "dynamodb:GetItem"): "a batch whose job has not ended",
    ("Entries", "dynamodb:ConditionCheckItem"): "a library of the release before",
    ("Release", "dynamodb:PutItem"): "a process that lives for a minute reports its release",
}
"""Actions of a policy for one table that a short story does not need, and what needs them."""


@pytest.fixture(scope="module")
def people(running_instance: RunningInstance) -> Iterator[dict[str, Person]]:
    """Who has each role; of `direct` the reader's and what `people_direct` adds to it."""
    instance = running_instance
    with instance.led_here():
        put(instance, "there.parquet", rows(1))  # of a bucket that is not there none is denied
        found = {
            name: with_role(instance, user(instance, name), f"{NAME}-{name}") for name in PEOPLE
        }
        more = [
            *reading(LAKE, EVERY_TABLE),
            on_items("AllNames", LAKE.table(LAKE.registry_table), ["names"], "Query"),
        ]
        found[DIRECT] = given(instance, DIRECT, more, attached=[f"{NAME}-reader"])
        yield found


def given(
    instance: RunningInstance,
    name: str,
    statements: list[dict[str, Any]],
    *,
    attached: list[str] | None = None,
) -> Person:
    """Return a user whose role, of their name, has a policy of these statements."""
    iam = instance.cloud.client("iam")
    person = user(instance, name)
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{name}"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    with suppress(iam.exceptions.EntityAlreadyExistsException):  # these tests had a turn before
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy)
    for one in attached or []:
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::{ACCOUNT}:policy/{one}")
    return with_role(instance, person, name)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_is_allowed_to_its_roles_and_denied_to_all_others(
    instance: RunningInstance, people: dict[str, Person], action: Action
) -> None:
    allowed = {name for name, person in people.items() if person.may(action, TABLE)}
    assert allowed == set(action.roles.split())


def test_a_role_is_assumed_by_who_is_named_and_by_nobody_else(
    instance: RunningInstance, people: dict[str, Person]
) -> None:
    assert set(people) == {*PEOPLE, DIRECT}
    for stranger in (user(instance, "stranger"), user(instance, "reader")):
        with pytest.raises(ClientError, match="AccessDenied"):
            with_role(instance, stranger, f"{NAME}-admin")


@pytest.mark.timeout(300)
def test_roles_do_with_the_library_what_they_are_for(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path
) -> None:
    with instance.lake() as lake:
        lake.create_table("common", SCHEMA).ingest(rows(50))
    send(instance, "query", '{"id": "q", "table": "nowhere", "ranges": [{}]}', message_group="one")
    instance.cloud.settle()
    with as_person(instance, people["writer"], tmp_path / "writer") as lake:
        table = lake.table("common")
        table.ingest(rows(50, seed=1), job="in")
        table.ingest(rows(50, seed=2), job="queued", queued=True)
    instance.cloud.settle()
    with as_person(instance, people[DIRECT], tmp_path / DIRECT) as lake:
        assert same_rows(lake.table("common"), *(rows(50, seed=seed) for seed in range(3)))
    with as_person(instance, people["operator"], tmp_path / "operator") as lake:
        (status,) = lake.status("common")
        assert status.rows == 150
        assert [report.job for report in lake.table("common").jobs(job="in")]
        assert lake.redrive(queues=["query"]).sent == 0, "what can never be asked stays"
        lake.set_online("common", online=False)
        assert lake.tasks() is not None
        with pytest.raises(DeniedError):
            lake.table("common").query().read_all()
    with as_person(instance, people["admin"], tmp_path / "admin") as lake:
        lake.set_online("common", online=True)
        lake.run(["common"])
        assert not lake.fsck("common", deep=True).findings
        lake.drop_table("common")


@pytest.mark.timeout(300)
def test_roles_submit_files_and_see_their_batches(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path
) -> None:
    with instance.lake() as lake:
        lake.create_table("fed", SCHEMA, settings={"batch_seconds_max": 0})
    files = [put(instance, f"fed/{number}.parquet", rows(9, seed=number)) for number in range(3)]
    people["sender"].client("sqs").send_message(
        QueueUrl=queue_url(people["sender"], "submissions"),
        MessageBody=json.dumps({"table": "fed", "files": files[:1]}),
        MessageGroupId="fed",
        MessageDeduplicationId="fed",
    )
    instance.cloud.settle()
    for role, name in (("writer", files[1]), ("admin", files[2])):
        with as_person(instance, people[role], tmp_path / role) as lake:
            assert lake.table("fed").submit([name]).added == 1
    with as_person(instance, people["operator"], tmp_path / "operator") as lake:
        assert {one.file for one in lake.table("fed").pending_files()} == set(files)
        with pytest.raises(InvalidError, match="permission=s3:ListBucket"):
            lake.table("fed").submit(files)
    instance.cloud.fire(f"{NAME}-batching")
    instance.cloud.settle()
    for role in ("writer", "operator", "admin"):
        with as_person(instance, people[role], tmp_path / role) as lake:
            (batch,) = lake.table("fed").batches()
            assert (batch.state, set(batch.names)) == ("sent", set(files))
    with as_person(instance, people[DIRECT], tmp_path / DIRECT) as lake, pytest.raises(DeniedError):
        lake.table("fed").batches()


@pytest.mark.timeout(300)
def test_who_asks_queries_only_gets_their_rows_and_opens_no_lake(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path
) -> None:
    with instance.lake() as lake:
        lake.create_table("asked", SCHEMA).ingest(rows(5))
    answer = (
        people["reader"]
        .client("lambda")
        .invoke(
            FunctionName=f"{NAME}-query-answer",
            Payload=json.dumps({"table": "asked", "ranges": [{}]}).encode(),
        )
    )
    assert "FunctionError" not in answer
    assert json.loads(answer["Payload"].read())["rows"]
    for role in ("reader", "sender"):
        with pytest.raises(DeniedError), as_person(instance, people[role], tmp_path / role):
            pass


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("role", "kind"), [("operator", "compaction"), ("admin", "ingest")])
def test_who_looks_after_an_instance_starts_tasks(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path, role: str, kind: str
) -> None:
    with as_person(instance, people[role], tmp_path) as lake:
        assert lake.start_tasks(kind).started == 1
    with as_person(instance, people["writer"], tmp_path / "w") as lake, pytest.raises(DeniedError):
        lake.start_tasks(kind)
    stop_tasks(instance)


def examined() -> DoctorReport:
    """Examine the instance; again, as its readers would, when a service was too busy. Returns when
    no check looks any more: their threads read the variables that are put back next."""
    for _ in range(EXAMINATIONS_MAX):
        examination = Examination(f"aws:{INSTANCE}")
        report = examination.run()
        while not examination.close():
            time.sleep(0.1)
        if not any("is busy" in one.why for one in report.outcomes):
            break
    return report


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["operator", "admin"])
def test_the_doctor_is_denied_nothing(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path, role: str
) -> None:
    with instance.lake() as lake:
        lake.create_table("examined", SCHEMA).ingest(rows(5))
    with people[role].at_work(), with_variables({"LAKEBED_CACHE": str(tmp_path)}):
        report = examined()
    denied = [f"{one.id}: {one.why}" for one in report.outcomes if "must permit" in one.why]
    assert not denied
    found = {one.id for one in report.of("found")}
    assert not [one for one in found if one.startswith("may-not-")]
    asked = {one.id: one for one in report.outcomes}
    for check in ("bucket-overwrites", "tables-unprotected", "event-sources-off", "images-missing"):
        assert not asked[check].why, check


def spend(instance: RunningInstance, table: str) -> TableId:
    """Let a table have used in this month what no budget is enough for."""
    with instance.lake() as lake:
        id_ = lake._app.catalog.entry(table).id
        ledger = lake._app.paying.ledger
        assert ledger is not None
        hour = hour_of(instance.cloud.clock.now())
        ledger.add(LedgerEntry(table=id_, hour=hour, kind="query", counts={"s3_put": 1e9}))
    return id_


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["writer", DIRECT, "admin"])
def test_a_spent_budget_stops_people_whose_usage_is_kept(
    instance: RunningInstance, people: dict[str, Person], tmp_path: Path, role: str
) -> None:
    table = f"paid_{role}"
    settings = {"budget_dollars": 1, "budget_stops": True}
    with instance.lake() as lake:
        lake.create_table(table, SCHEMA, settings=settings).ingest(rows(5))
    before = usage_of(instance, table)
    with as_person(instance, people[role], tmp_path) as lake:
        assert same_rows(lake.table(table), rows(5))
    assert usage_of(instance, table) > before
    spend(instance, table)
    with as_person(instance, people[role], tmp_path) as lake:
        with pytest.raises(InvalidError, match="budget"):
            lake.table(table).query().read_all()
        if role != DIRECT:
            with pytest.raises(InvalidError, match="budget"):
                lake.table(table).ingest(rows(5, seed=1))


def usage_of(instance: RunningInstance, table: str) -> float:
    """How many queries of a table the ledger knows."""
    with instance.lake() as lake:
        id_ = lake._app.catalog.entry(table).id
        ledger = lake._app.paying.ledger
        assert ledger is not None
        hour = hour_of(instance.cloud.clock.now())
        entries = ledger.read(id_, since=hour - 1, until=hour + 1)
    return sum(entry.counts.get("queries", 0.0) for entry in entries)


class as_person:  # noqa: N801 - reads as contextlib's `closing` does
    """The lake as a person opens it, with states of their own."""

    def __init__(self, instance: RunningInstance, person: Person, cache: Path) -> None:
        self._instance = instance
        self._work = person.at_work()
        self._cache = cache

    def __enter__(self) -> Lake:
        self._work.__enter__()
        clock = self._instance.cloud.clock
        self._lake = Lake(open_instance(INSTANCE, clock=clock, folder=self._cache))
        return self._lake

    def __exit__(self, *_: object) -> None:
        self._lake.close()
        self._work.__exit__(None, None, None)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("access", ["read", "write"])
def test_a_policy_for_one_table_is_enough_for_it_and_not_for_its_neighbour(
    instance: RunningInstance, tmp_path: Path, access: str
) -> None:
    mine, neighbour = f"mine_{access}", f"neighbour_{access}"
    with instance.lake() as lake:
        settings = {"budget_dollars": 1, "budget_stops": True}
        for name in (mine, neighbour):
            lake.create_table(name, SCHEMA, settings=settings).ingest(rows(50))
            lake.run([name])
    command = ["--at", INSTANCE, "table", "policy", mine, "--may", access]
    printed = CliRunner().invoke(program, command, prog_name="lakebed")
    assert printed.exit_code == 0, printed.output
    statements = json.loads(printed.stdout)["Statement"]
    instance.cloud.note_judgements()
    file = put(instance, f"{mine}.parquet", rows(9))
    person = given(instance, f"of-{access}", [*statements, *FILES_OF_USERS])
    with as_person(instance, person, tmp_path) as lake:
        table = lake.table(mine)
        assert same_rows(table, rows(50))
        if access == "write":
            table.ingest(rows(50, seed=1))
            assert same_rows(table, rows(50), rows(50, seed=1))
            assert table.submit([file]).added == 1
            assert [one.file for one in table.pending_files()] == [file]
            assert table.batches() == []
        else:
            with pytest.raises(DeniedError):
                table.ingest(rows(50, seed=1))
            with pytest.raises(DeniedError):
                lake.drop_table(mine)
        with pytest.raises(DeniedError):
            lake.table(neighbour)
        with pytest.raises(DeniedError):
            lake.tables()
    spend(instance, mine)
    with as_person(instance, person, tmp_path) as lake:
        table = lake.table(mine)
        with pytest.raises(InvalidError, match="budget"):
            table.query().read_all()
    notes = [note for note in instance.cloud.judgements() if note["role"] == f"of-{access}"]
    used = {note["statement"]: set(note["used"]) for note in notes}
    idle = {
        (statement["Sid"], action)
        for index, statement in enumerate(statements)
        for action in statement["Action"]
        if action not in used.get(index, set()) and (statement["Sid"], action) not in RARE
    }
    assert not idle, "printed, and of no use"
