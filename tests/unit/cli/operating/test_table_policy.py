"""`lakebed table policy`: a policy for one table of an instance, against an emulator."""

import json
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws import new_clients
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.model.names import TableId, TableName
from tests.unit.cli.programs import Shell

DEV = InstanceId("dev")
REGION = "eu-central-1"
TRIPS = TableId("a" * 32)
KEY = f"arn:aws:kms:{REGION}:123456789012:key/one"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", REGION)
    return Shell(tmp_path)


def deploy(**facts: str) -> None:
    """Make of an instance what the command asks for: its parameter, and a name in its registry."""
    resources = InstanceResources(
        instance=DEV,
        bucket="lakebed-dev-data",
        log_table="lakebed-dev-log",
        registry_table="lakebed-dev-registry",
        tracker_table="lakebed-dev-tracker",
        **facts,
    )
    ssm = boto3.client("ssm", region_name=REGION)
    ssm.put_parameter(Name=parameter_name(DEV), Value=encode_resources(resources), Type="String")
    boto3.client("dynamodb", region_name=REGION).create_table(
        TableName="lakebed-dev-registry",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    clients = new_clients(VirtualClock(), system_random())
    DynamoTableRegistry(clients, "lakebed-dev-registry").claim(TableName("trips"), TRIPS)


@mock_aws
def test_a_policy_names_the_table_by_its_id_and_the_account(shell: Shell) -> None:
    deploy()
    for access, writes in (("read", False), ("write", True)):
        text = shell.ok("--at", "dev", "table", "policy", "trips", "--may", access)
        policy = json.loads(text)
        assert policy["Version"] == "2012-10-17"
        assert f"lake/objects/tables/{TRIPS}/files/*" in text
        assert f"arn:aws:dynamodb:{REGION}:123456789012:table/lakebed-dev-log" in text
        assert ("s3:PutObject" in text) == writes
        assert "kms" not in text
        assert shell.json("--at", "dev", "table", "policy", "trips", "--may", access) == policy


@mock_aws
def test_a_key_of_the_instance_is_in_its_policies(shell: Shell) -> None:
    deploy(key_arn=KEY)
    assert KEY in shell.ok("--at", "dev", "table", "policy", "trips", "--may", "read")


@mock_aws
def test_a_table_that_is_not_there_is_answered_with_the_nearest(shell: Shell) -> None:
    deploy()
    code, error = shell.refused("--at", "dev", "table", "policy", "trip", "--may", "read")
    assert (code, error["code"]) == (2, "table-missing")
    assert "trips" in error["hint"]


def test_a_directory_has_no_policies_of_iam(shell: Shell) -> None:
    code, error = shell.refused("table", "policy", "trips", "--may", "read")
    assert code == 2
    assert error["message"] == "a directory has no policies of IAM"
    assert "lakebed --at INSTANCE table policy" in error["hint"]


@pytest.mark.parametrize("words", [[], ["--may", "delete"]])
def test_what_may_be_done_must_be_said(shell: Shell, words: list[str]) -> None:
    code, error = shell.refused("--at", "dev", "table", "policy", "trips", *words)
    assert code == 2
    assert "--may" in error["message"]
