"""`lakebed doctor`: what it says, and lakes examined: in a directory, and on an emulator."""

import json
import random
import time
from pathlib import Path

import boto3
import msgspec
import pytest
from moto import mock_aws

from lakebed.backends.local.process_folder import SUFFIX
from lakebed.bootstrap.local import open_local
from lakebed.cli.doctor import exit_code_of, report_text
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.doctor.check import CheckOutcome, DoctorReport
from lakebed.ports.job_queue import Message
from tests.unit.cli.programs import Shell

WELL = CheckOutcome(
    id="python-old", section="this machine", state="healthy", found_when="", cure=""
)
FOUND = CheckOutcome(
    id="dead-letters",
    section="how it goes",
    state="found",
    found_when="messages were given up",
    cure="send them again",
    signs=("ingest: 3",),
)
HIDDEN = CheckOutcome(
    id="alarms-on",
    section="what was deployed",
    state="could not look",
    found_when="an alarm is on",
    cure="read it",
    why="the credentials must permit cloudwatch:DescribeAlarms",
)
OF_THIS_MACHINE = {"kernels-missing", "disk-nearly-full", "disk-slow", "memory-small"}
"""What a machine that tests run on may lack."""


def test_the_section_of_a_check_is_its_group_in_json() -> None:
    """Programs of users read it under this key."""
    assert msgspec.to_builtins(WELL)["group"] == "this machine"


def report(*outcomes: CheckOutcome) -> DoctorReport:
    return DoctorReport(outcomes=outcomes, seconds=1.25)


def test_findings_are_told_with_their_cure_and_what_is_well_is_counted() -> None:
    assert report_text(report(WELL, HIDDEN, FOUND), every=False) == (
        "what was deployed\n"
        "  could not look: alarms-on: the credentials must permit cloudwatch:DescribeAlarms\n"
        "\n"
        "how it goes\n"
        "  found: dead-letters: messages were given up\n"
        "    ingest: 3\n"
        "    cure: send them again\n"
        "\n"
        "3 checks in 1.2 s: 1 found something, 1 could not look"
    )
    assert report_text(report(WELL), every=False) == "1 check in 1.2 s: all is well"
    assert report_text(report(WELL), every=True).startswith("this machine\n  well: python-old\n")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [([WELL], 0), ([WELL, HIDDEN], 4), ([WELL, HIDDEN, FOUND], 20), ([FOUND], 20)],
)
def test_the_exit_code_says_whether_anything_was_found(
    outcomes: list[CheckOutcome], code: int
) -> None:
    assert exit_code_of(report(*outcomes)) == code


def examined(shell: Shell, *args: str) -> dict[str, list[str]]:
    """What is not well, beside what this machine may lack."""
    outcomes = json.loads(shell.run("doctor", "--json", *args).stdout)["outcomes"]
    assert len(outcomes) >= 40
    return {
        one["id"]: one["signs"] or [one["why"]]
        for one in outcomes
        if one["state"] != "healthy" and one["id"] not in OF_THIS_MACHINE
    }


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64")
    ids = [f"{random.Random(n).randrange(10**6):06}" for n in range(50)]
    made.ok("ingest", "trips", made.write("rows.parquet", {"id": ids, "n": list(range(50))}))
    return made


def test_a_lake_in_which_all_is_well(shell: Shell) -> None:
    assert examined(shell) == {}


def test_no_lake_is_a_finding_and_the_machine_is_looked_at_all_the_same(tmp_path: Path) -> None:
    found = examined(Shell(tmp_path))
    assert "there is no lake" in found["lake-does-not-open"][0]
    assert "sqlite-old" not in found
    assert Shell(tmp_path).run("doctor").exit_code == 20


def test_faults_of_a_real_lake_are_found_and_what_cannot_harm_is_fixed(shell: Shell) -> None:
    app = open_local(shell.lake)
    queue = app.queues.open("compaction")
    queue.send([Message(b'{"table":"00000000000000000000","job":"j"}')])
    (taken,) = queue.receive(messages_max=1, hidden_seconds=60)
    queue.give_up(taken)
    app.close()
    dead = shell.lake / "spill" / f"999999-0{SUFFIX}"
    dead.touch()
    shell.ok("table", "create", "busy", "--row-key", "id:string")
    shell.ok("table", "set", "busy", "leaf_files_max=4")
    for n in range(4):
        shell.ok("ingest", "busy", shell.write(f"{n}.parquet", {"id": [f"{n}"]}))
    shell.ok("table", "create", "aside", "--row-key", "id:string")
    shell.ok("table", "quarantine", "aside")
    shell.ok("table", "offline", "trips")
    assert examined(shell) == {
        "leftovers": [f"spill-left {dead.name}"],
        "dead-letters": ["compaction: 1"],
        "leaf-files-high": ["busy: a leaf has 4 of 4 files"],
        "table-quarantined": ["aside"],
        "table-offline": ["trips"],
    }
    planned = shell.run("doctor", "--fix", "--dry-run", "--json")
    assert json.loads(planned.stdout)["plan"] == [
        "remove what dead processes left on this machine",
        "send dead letters of compaction again, where nothing could be done twice",
    ]
    assert dead.exists()
    code, refused = shell.refused("doctor", "--fix")
    assert (code, refused["hint"]) == (2, "add --yes, or --dry-run")
    fixed = json.loads(shell.run("doctor", "--fix", "--yes", "--json").stdout)
    assert all(line.startswith("done: ") for line in fixed["done"])
    assert not dead.exists()
    left = {one["id"] for one in fixed["after"]["outcomes"] if one["state"] == "found"}
    assert left - OF_THIS_MACHINE == {"leaf-files-high", "table-quarantined", "table-offline"}


def test_a_table_whose_log_is_damaged_is_found(shell: Shell) -> None:
    for log in (shell.lake / "logs").glob("*.sqlite"):
        log.write_bytes(b"no database" * 100)
    for cache in (shell.lake / "cache").iterdir():
        cache.unlink()
    found = examined(shell)
    assert found["table-unreadable"][0].startswith("trips: corrupt")


def test_what_belongs_to_a_fix_is_refused_without_one(shell: Shell) -> None:
    code, error = shell.refused("doctor", "--yes")
    assert (code, error["hint"]) == (2, "add --fix")


def test_an_instance_of_which_only_the_parameter_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    resources = InstanceResources(
        instance=InstanceId("dev"),
        bucket="b",
        log_table="l",
        registry_table="r",
        tracker_table="t",
        queues={"ingest": "https://sqs.us-east-1.amazonaws.com/123456789012/gone.fifo"},
    )
    with mock_aws():
        ssm = boto3.client("ssm", region_name="us-east-1")
        told = encode_resources(resources)
        ssm.put_parameter(Name=parameter_name(InstanceId("dev")), Value=told, Type="String")
        began = time.monotonic()
        found = examined(Shell(tmp_path), "--at", "dev")
        assert time.monotonic() - began < 20
    expected = {
        "bucket-missing",
        "tables-missing",
        "queues-missing",
        "schedules-missing",
        "alarms-missing",
        "cluster-missing",
        "tasks-undefined",
        "spark-missing",
        "release-other",
    }
    assert expected <= set(found)
