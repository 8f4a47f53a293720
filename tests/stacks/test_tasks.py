"""What the templates say of tasks is what they expect: variables, images, roles, and a network that
costs nothing while none runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lakebed.config.environments import (
    FunctionEnvironment,
    IngestTaskEnvironment,
    NetworkCheckEnvironment,
    TaskEnvironment,
    variables_named,
)
from lakebed.config.job_queues import COMPACTION_JOBS, INGEST_JOBS
from lakebed.errors import InvalidError
from stacks.constructs.image_context import image_context
from stacks.constructs.rooms import TASK_ROOMS, files_in
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.normalised_templates import of_any_machine
from tests.stacks.test_functions import without_address
from tests.stacks.test_templates import resources

ENVIRONMENTS: dict[str, type[FunctionEnvironment]] = {
    COMPACTION_JOBS.kind: TaskEnvironment,
    INGEST_JOBS.kind: IngestTaskEnvironment,
}
NETWORK = {"vpc_id": "vpc-0123456789abcdef0", "subnet_ids": "subnet-0a1b2c3d,subnet-1a2b3c4d"}


def definitions(templates: Templates) -> dict[str, dict[str, Any]]:
    """Return task definitions by the kind of their jobs."""
    found = [task["Properties"] for task in resources(templates, "AWS::ECS::TaskDefinition")]
    return {task["Family"].removeprefix("lakebed-dev-"): task for task in found}


def starters(templates: Templates) -> list[dict[str, str]]:
    """Return the variables of functions that start tasks."""
    functions = [f["Properties"] for f in resources(templates, "AWS::Lambda::Function")]
    return [
        f["Environment"]["Variables"]
        for f in functions
        if f["Handler"].endswith("_tasks.start.handler")
    ]


def types(templates: Templates) -> list[str]:
    """Return the types of parts of the network."""
    found = resources(templates, *(f"AWS::EC2::{name}" for name in ("VPC", "NatGateway")))
    return [resource["Type"] for resource in found]


def test_zones_that_are_named_take_the_place_of_the_first_two(synthesize: Synthesize) -> None:
    subnets = resources(synthesize(zones="apne1-az4,apne1-az1,apne1-az2"), "AWS::EC2::Subnet")
    zones = [subnet["Properties"]["AvailabilityZoneId"] for subnet in subnets]
    assert zones == ["apne1-az4", "apne1-az1", "apne1-az2"]
    assert not any("AvailabilityZone" in subnet["Properties"] for subnet in subnets)
    assert len({subnet["Properties"]["CidrBlock"] for subnet in subnets}) == 3


def test_a_task_is_given_what_it_reads_and_roles_of_its_own(templates: Templates) -> None:
    found = definitions(templates)
    assert set(found) == set(ENVIRONMENTS)
    for kind, task in found.items():
        (container,) = task["ContainerDefinitions"]
        variables = {variable["Name"] for variable in container["Environment"]}
        assert variables == variables_named(ENVIRONMENTS[kind])
        assert container["StopTimeout"] == 120
        assert container["LogConfiguration"]["LogDriver"] == "awslogs"
        assert task["RequiresCompatibilities"] == ["FARGATE"]
        assert task["TaskRoleArn"] != task["ExecutionRoleArn"]  # each kind in its own stack


@pytest.mark.parametrize("kind", sorted(ENVIRONMENTS))
def test_an_image_is_built_from_what_its_dockerfile_copies(kind: str) -> None:
    folder = image_context(kind)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"Dockerfile", f"containers/{kind}/main.py", "requirements/run.txt"} <= names
    assert {name.partition("/")[0] for name in names} == {
        "Dockerfile",
        "containers",
        "lakebed",
        "requirements",
    }
    assert not [name for name in names if "__pycache__" in name]
    rooms = {path.relative_to(ROOT).as_posix() for path in files_in(ROOT, TASK_ROOMS)}
    assert rooms == {name for name in names if name.startswith("lakebed/")}
    assert sum((folder / name).stat().st_size for name in names) < 8 << 20


def test_one_commit_gives_one_image(synthesize: Synthesize, tmp_path: Path) -> None:
    hashes = []
    for number in range(2):
        image_context.cache_clear()
        synthesize(tmp_path / str(number))
        assets = [json.loads(p.read_text()) for p in tmp_path.glob(f"{number}/*.assets.json")]
        hashes.append({hash_ for asset in assets for hash_ in asset.get("dockerImages", {})})
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 2


def test_tasks_are_made_for_the_architecture_that_is_set(
    synthesize: Synthesize, templates: Templates, tmp_path: Path
) -> None:
    cpus = {"arm64": ("ARM64", "linux/arm64"), "x86_64": ("X86_64", "linux/amd64")}
    for architecture, (cpu, platform) in cpus.items():
        found = synthesize(tmp_path / architecture, architecture=architecture)
        for task in definitions(found).values():
            assert task["RuntimePlatform"]["CpuArchitecture"] == cpu
        assets = [p.read_text() for p in (tmp_path / architecture).glob("*.assets.json")]
        images = [i for text in assets for i in json.loads(text).get("dockerImages", {}).values()]
        assert {image["source"]["platform"] for image in images} == {platform}
        assert without_address(of_any_machine(found)) == without_address(of_any_machine(templates))


def test_the_network_of_an_instance_has_gateways_and_nothing_that_costs_by_the_hour(
    templates: Templates,
) -> None:
    assert types(templates) == ["AWS::EC2::VPC"]
    endpoints = [e["Properties"] for e in resources(templates, "AWS::EC2::VPCEndpoint")]
    assert {e["VpcEndpointType"] for e in endpoints} == {"Gateway"}
    assert len(endpoints) == 2
    (group,) = resources(templates, "AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group["Properties"]
    assert not resources(templates, "AWS::EC2::SecurityGroupIngress")
    (out,) = group["Properties"]["SecurityGroupEgress"]
    assert (out["FromPort"], out["ToPort"]) == (443, 443)
    for variables in starters(templates):
        assert variables["LAKEBED_PUBLIC_ADDRESS"] == "ENABLED"


def test_tasks_without_public_addresses_have_endpoints_to_what_they_call(
    synthesize: Synthesize,
) -> None:
    private = synthesize(task_addresses="private")
    assert types(private) == ["AWS::EC2::VPC"]
    assert not resources(private, "AWS::EC2::InternetGateway")
    endpoints = [e["Properties"] for e in resources(private, "AWS::EC2::VPCEndpoint")]
    inside = [e for e in endpoints if e["VpcEndpointType"] == "Interface"]
    services = {json.dumps(e["ServiceName"]).strip('"}]').rpartition(".")[2] for e in inside}
    assert services == {"api", "dkr", "logs", "sqs"}
    assert all(len(e["SubnetIds"]) == 1 for e in inside)
    for variables in starters(private):
        assert variables["LAKEBED_PUBLIC_ADDRESS"] == "DISABLED"


def test_a_network_of_ones_own_is_taken_as_it_is(synthesize: Synthesize) -> None:
    own = synthesize(**NETWORK)
    every = [r["Type"] for template in own.values() for r in template["Resources"].values()]
    found = {type_ for type_ in every if type_.startswith("AWS::EC2::")}
    assert found == {"AWS::EC2::SecurityGroup"}
    (check,) = [
        function["Properties"]
        for function in resources(own, "AWS::Lambda::Function")
        if function["Properties"]["Handler"] == "lambdas.networking.check.handler"
    ]
    assert set(check["Environment"]["Variables"]) == variables_named(NetworkCheckEnvironment)
    checks = {"networking": own["networking"]}
    (checked,) = resources(checks, "AWS::CloudFormation::CustomResource")
    assert checked["Properties"]["Network"] == NETWORK["vpc_id"]
    for variables in starters(own):
        assert variables["LAKEBED_SUBNETS"] == NETWORK["subnet_ids"]


@pytest.mark.parametrize("name", sorted(NETWORK))
def test_half_a_network_is_refused(synthesize: Synthesize, name: str) -> None:
    with pytest.raises(InvalidError, match="needs both settings"):
        synthesize(**{name: NETWORK[name]})


@pytest.mark.parametrize(
    "sources",
    ["landing", "s3://Landing", "s3://landing/*", "s3://landing, s3://other", "s3://landing/a?b"],
)
def test_places_that_are_none_are_refused(synthesize: Synthesize, sources: str) -> None:
    with pytest.raises(InvalidError, match="sources"):
        synthesize(sources=sources)


def test_the_ingest_task_reads_where_the_setting_says_and_nowhere_else(
    synthesize: Synthesize, templates: Templates
) -> None:
    assert "landing" not in json.dumps(templates)
    told = synthesize(sources="s3://landing/files/,s3://other")
    allowed = [
        statement
        for role in resources(told, "AWS::IAM::Role")
        for statement in role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
        if "landing" in json.dumps(statement) or "s3:::other" in json.dumps(statement)
    ]
    readable = [s["Resource"] for s in allowed if s["Action"] == "s3:GetObject"]
    assert len(readable) == 3  # of ingest tasks, of bulk imports, and of who submits
    for some in readable:
        names = {resource["Fn::Join"][1][-1] for resource in some}
        assert {name for name in names if "landing" in name or "other" in name} == {
            ":s3:::landing/files/*",
            ":s3:::other/*",
        }
    conditions = {json.dumps(s.get("Condition")) for s in allowed if s["Action"] == "s3:ListBucket"}
    assert conditions == {"null", '{"StringLike": {"s3:prefix": "files/*"}}'}
    (container,) = definitions(told)["ingest"]["ContainerDefinitions"]
    variables = {v["Name"]: v["Value"] for v in container["Environment"]}
    assert variables["LAKEBED_SOURCES"] == "s3://landing/files/,s3://other"


def test_no_more_tasks_than_a_setting_says(synthesize: Synthesize) -> None:
    told = synthesize(ingest_tasks_max="3", compaction_tasks_max="0")
    assert sorted(v["LAKEBED_TASKS_MAX"] for v in starters(told)) == ["0", "3"]


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({}, ("1024", "4096", None)),
        (
            {"task_vcpus": "4", "task_memory_mib": "16384", "task_disk_gib": "100"},
            ("4096", "16384", {"SizeInGiB": 100}),
        ),
    ],
)
def test_a_task_its_container_and_its_variables_are_of_one_size(
    synthesize: Synthesize, settings: dict[str, str], size: tuple[str, str, object]
) -> None:
    for task in definitions(synthesize(**settings)).values():
        assert (task["Cpu"], task["Memory"], task.get("EphemeralStorage")) == size
        (container,) = task["ContainerDefinitions"]
        assert (str(container["Cpu"]), str(container["Memory"])) == size[:2]
        variables = {v["Name"]: v["Value"] for v in container["Environment"]}
        assert float(variables["LAKEBED_TASK_VCPUS"]) * 1_024 == container["Cpu"]
        assert variables["LAKEBED_TASK_MEMORY_MIB"] == size[1]


MACHINES = {"compaction_capacity": "ec2", "machine_types": "c7g.2xlarge", "machines_max": "7"}


def test_tasks_run_on_machines_of_which_there_are_none_at_first(
    synthesize: Synthesize, templates: Templates
) -> None:
    made = synthesize(**MACHINES)
    (cluster,) = resources(made, "AWS::ECS::Cluster")
    *of_fargate, own = cluster["Properties"]["CapacityProviders"]
    assert of_fargate == ["FARGATE", "FARGATE_SPOT"]
    parts = made["networking"]["Resources"]
    provider = parts[own["Ref"]]["Properties"]
    assert provider["Name"] == "lakebed-dev-machines"
    group = parts[provider["AutoScalingGroupProvider"]["AutoScalingGroupArn"]["Ref"]]["Properties"]
    assert (group["MinSize"], group["MaxSize"]) == ("0", "7")
    assert "DesiredCapacity" not in group, "ECS says how many there are"
    assert "AmazonECSManaged" in {tag["Key"] for tag in group["Tags"]}
    policy = group["MixedInstancesPolicy"]["LaunchTemplate"]
    assert policy["Overrides"] == [{"InstanceType": "c7g.2xlarge"}]
    tasks, others = definitions(made), definitions(templates)
    assert tasks["compaction"]["RequiresCompatibilities"] == ["EC2"]
    assert tasks["compaction"]["NetworkMode"] == "bridge"
    assert tasks["ingest"]["RequiresCompatibilities"] == ["FARGATE"]
    for task in (tasks, others):
        (container,) = task["compaction"]["ContainerDefinitions"]
        container["Environment"] = [
            one for one in container["Environment"] if one["Name"] != "AWS_REGION"
        ]
    for name in ("ContainerDefinitions", "Cpu", "Memory"):
        assert _shown(tasks["compaction"][name]) == _shown(others["compaction"][name])
    (variables,) = starters({"compaction": made["compaction"]})
    assert variables["LAKEBED_CAPACITY"] == "ec2"
    assert not resources(templates, "AWS::AutoScaling::AutoScalingGroup")


def _shown(value: object) -> str:
    """Return part of a template without the digests of images."""
    return re.sub(r"[0-9a-f]{64}", "HASH", json.dumps(value))


def test_nobody_gets_into_a_machine_and_tasks_get_no_role_of_it(synthesize: Synthesize) -> None:
    made = synthesize(**MACHINES)
    (template,) = resources(made, "AWS::EC2::LaunchTemplate")
    data = template["Properties"]["LaunchTemplateData"]
    assert data["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert "KeyName" not in data
    (disk,) = data["BlockDeviceMappings"]
    assert disk["Ebs"]["Encrypted"]
    assert disk["Ebs"]["VolumeSize"] == 30 + 4 * 20, "four tasks of 4 GiB share 16 at the most"
    image = made["networking"]["Parameters"][data["ImageId"]["Ref"]]
    assert image["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "each deployment"
    assert image["Default"].endswith("amazon-linux-2023/arm64/recommended/image_id")
    (volume,) = data["TagSpecifications"]
    assert {tag["Key"] for tag in volume["Tags"]} == {"lakebed:instance"}
    (interface,) = data["NetworkInterfaces"]
    (group,) = interface["Groups"]
    logical_id, _ = group["Fn::GetAtt"]
    assert "SecurityGroupIngress" not in made["networking"]["Resources"][logical_id]["Properties"]
    assert interface["AssociatePublicIpAddress"]


def test_machines_without_public_addresses_reach_ecs_by_endpoints(synthesize: Synthesize) -> None:
    private = synthesize(**MACHINES, task_addresses="private")
    (template,) = resources(private, "AWS::EC2::LaunchTemplate")
    (interface,) = template["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]
    assert not interface["AssociatePublicIpAddress"]
    endpoints = [e["Properties"] for e in resources(private, "AWS::EC2::VPCEndpoint")]
    inside = [e for e in endpoints if e["VpcEndpointType"] == "Interface"]
    services = {json.dumps(e["ServiceName"]).strip('"}]').rpartition(".")[2] for e in inside}
    assert services == {"api", "dkr", "logs", "sqs", "ecs", "ecs-agent", "ecs-telemetry"}


def test_most_compaction_runs_on_spot_capacity_unless_a_setting_says_otherwise(
    synthesize: Synthesize, templates: Templates
) -> None:
    (cluster,) = resources(templates, "AWS::ECS::Cluster")
    assert cluster["Properties"]["CapacityProviders"] == ["FARGATE", "FARGATE_SPOT"]
    kinds = {"ingest": "fargate", "compaction": "fargate-spot"}
    for found, wanted in (
        (templates, kinds),
        (
            synthesize(ingest_capacity="fargate-spot", compaction_capacity="fargate"),
            {"ingest": "fargate-spot", "compaction": "fargate"},
        ),
    ):
        for kind, capacity in wanted.items():
            (variables,) = starters({kind: found[kind]})
            assert variables["LAKEBED_CAPACITY"] == capacity
