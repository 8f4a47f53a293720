"""Tasks that an operator starts now: the proof of row 165 of docs/map.md."""

import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lakebed.backends.memory import MemoryTaskRunner, VirtualClock
from lakebed.bootstrap.housekeeping import KINDS
from lakebed.cli.work import KINDS as SHOWN_KINDS
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.environments import TaskStartEnvironment, variables_of
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.errors import InvalidError, UnavailableError
from lakebed.tasks.start_by_hand import StartByHand
from tests.unit.cli.programs import Shell

REGION = "us-east-1"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A table with files that wait to be merged, in four leaves."""
    found = Shell(tmp_path)
    found.ok(
        "table", "create", "trips", "--row-key", "id:string", *("--set", "shared_file_rows_max=0")
    )
    for n in range(12):
        found.ok("ingest", "trips", found.write(f"{n}.parquet", {"id": [str(n)]}))
    return found


def by_hand(runner: MemoryTaskRunner) -> StartByHand:
    return StartByHand(
        "compaction",
        runner=runner,
        tasks_max=4,
        setting="compaction_tasks_max",
        rng=Random(1),
    )


def test_as_many_start_as_are_asked_for_and_each_time_others() -> None:
    runner = MemoryTaskRunner(VirtualClock())
    first, second = (
        by_hand(runner),
        StartByHand("compaction", runner=runner, tasks_max=4, setting="s", rng=Random(2)),
    )
    assert (first.run(3, spot=True).started, second.run(1).running) == (3, 3)
    assert (runner.running(), runner.running_on_spot()) == (4, 3)


def test_more_than_the_settings_allow_are_refused_and_none_is_started() -> None:
    runner = MemoryTaskRunner(VirtualClock())
    by_hand(runner).run(2)
    with pytest.raises(InvalidError) as refused:
        by_hand(runner).run(3)
    assert refused.value.facts == {"running": 2, "asked": 3, "allowed": 4}
    assert "compaction_tasks_max" in (refused.value.hint or "")
    assert runner.running() == 2


def test_what_the_platform_says_is_told() -> None:
    def refuses() -> None:
        raise UnavailableError("no capacity", hint=None)

    with pytest.raises(UnavailableError):
        by_hand(MemoryTaskRunner(VirtualClock(), refuses=refuses)).run(1)


def test_processes_of_this_machine_merge_what_waits(shell: Shell) -> None:
    done = shell.json("tasks", "start", "compaction", "--count", "2")
    assert (done["started"], done["failed"]) == (2, 0)
    assert done["jobs_done"] == 1
    assert shell.json("status", "trips")[0]["files"] == 1
    assert shell.json("status", "trips")[0]["garbage_files"] == 12
    assert {task["kind"] for task in shell.json("tasks")} == {"compaction"}
    assert shell.ok("tasks", "start", "compaction") == "1 process ended, 0 compaction jobs done\n"


def test_a_directory_has_tasks_of_compaction_only(shell: Shell) -> None:
    assert shell.refused("tasks", "start", "ingest")[0] == 2
    assert shell.refused("tasks", "start", "splitting")[0] == 2
    assert shell.refused("tasks", "start", "compaction", "--count", "0")[0] == 2


def test_work_of_one_kind_alone_is_done(shell: Shell) -> None:
    assert set(KINDS) == set(SHOWN_KINDS)
    created = shell.json("run", "--kind", "compaction-creation")
    assert (created["jobs_created"], created["jobs_done"]) == (1, 0)
    assert shell.json("status", "trips")[0]["files"] == 12
    merged = shell.json("run", "--kind", "compaction")
    assert (merged["jobs_created"], merged["jobs_done"]) == (0, 1)
    shell.ok("table", "set", "trips", "garbage_seconds_min=0")
    assert shell.json("run", "--kind", "sweep")["files_collected"] == 0
    assert shell.json("run", "--kind", "garbage")["files_collected"] == 12
    assert shell.refused("run", "--kind", "compactions")[0] == 2


class Platform:
    """An instance in the emulator, as far as tasks are started of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.shell = Shell(tmp_path)
        resources = InstanceResources(
            instance=InstanceId("dev"),
            bucket="b",
            log_table="l",
            registry_table="r",
            tracker_table="t",
        )
        self.client("ssm").put_parameter(
            Name=parameter_name(InstanceId("dev")), Value=encode_resources(resources), Type="String"
        )
        ecs = self.client("ecs")
        cluster = ecs.create_cluster(clusterName="lakebed-dev-tasks")["cluster"]["clusterArn"]
        definition = ecs.register_task_definition(
            family="lakebed-dev-compaction",
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu="1024",
            memory="4096",
            containerDefinitions=[{"name": "compaction", "image": "i", "memory": 512}],
        )["taskDefinition"]["taskDefinitionArn"]
        ec2 = self.client("ec2")
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        environment = TaskStartEnvironment(
            instance="dev",
            cluster=cluster,
            task_definition=definition,
            subnets=subnet,
            security_group=group,
            public_address="ENABLED",
            tasks_max="2",
            capacity="fargate",
            queue_url="q",
        )
        role = self.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
        body = io.BytesIO()
        with zipfile.ZipFile(body, "w") as archive:
            archive.writestr("m.py", "")
        self.client("lambda").create_function(
            FunctionName="lakebed-dev-compaction-tasks-start",
            Runtime="python3.12",
            Role=role["Role"]["Arn"],
            Handler="m.h",
            Code={"ZipFile": body.getvalue()},
            Environment={"Variables": variables_of(environment)},
        )

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's
        return boto3.client(service, region_name=REGION)


def test_tasks_of_an_instance_run_as_its_function_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    with mock_aws():
        platform = Platform(tmp_path)
        shell = platform.shell
        done = json.loads(
            shell.ok("--at", "dev", "tasks", "start", "compaction", "--count", "2", "--json")
        )
        assert (done["started"], done["running"], done["jobs_done"]) == (2, 0, None)
        arns = platform.client("ecs").list_tasks(
            cluster="lakebed-dev-tasks", family="lakebed-dev-compaction"
        )["taskArns"]
        assert len(arns) == 2
        code, error = shell.refused("--at", "dev", "tasks", "start", "compaction")
        assert (code, error["facts"]["running"]) == (2, "2")
        code, error = shell.refused("--at", "dev", "tasks", "start", "ingest")
        assert (code, error["message"]) == (2, "there is no such function")
