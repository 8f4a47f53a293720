"""What functions and tasks ask of AWS is checked before it is sent, though their clients leave that
to the services: the emulator takes some of it."""

import sysconfig
from collections.abc import Iterator
from typing import Any

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from tests.cloud import assemblies
from tests.cloud.assemblies import (
    arn,
    function,
    outcomes,
    role,
    write_assembly,
)

CODE = """
import json, os, sys

sys.path.append(os.environ.get("PACKAGES", ""))
import boto3
from botocore.config import Config

TABLE, WRONG = os.environ["TABLE"], {"pk": {"S": 5}}
dynamodb = boto3.client("dynamodb", config=Config(parameter_validation=False))
items = [{"Put": {"TableName": TABLE, "Item": WRONG}}]


def put_body(params, **_):
    params["body"] = json.dumps({"TransactItems": items}).encode()


def ask(event, context):
    if event == "right":
        return dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "5"}}).get("Item")
    if event == "type":
        return dynamodb.get_item(TableName=TABLE, Key=WRONG)
    if event == "name":
        return dynamodb.get_item(TableNames=TABLE, TableName=TABLE, Key={"pk": {"S": "5"}})
    dynamodb.meta.events.register("before-call", put_body)
    return dynamodb.transact_write_items(TransactItems=[])


if __name__ == "__main__":
    ask(os.environ["ASKS"], None)
"""
USE = (["dynamodb:GetItem", "dynamodb:PutItem"], arn("Table"))


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("cloud")
    variables: dict[str, Any] = {"TABLE": "outcomes"}
    packages = sysconfig.get_path("purelib")
    resources = {
        "Table": outcomes("outcomes"),
        "Worker": role(USE),
        "Ask": function("ask", "app.ask", "Worker", Environment={"Variables": variables}),
        "Cluster": {"Type": "AWS::ECS::Cluster", "Properties": {"ClusterName": "tasks"}},
        "Task": assemblies.task(
            "worker", "Worker", TABLE="outcomes", PACKAGES=packages, ASKS="type"
        ),
    }
    assembly = write_assembly(folder / "assembly", {"asked": resources}, code=CODE, image=CODE)
    with LocalCloud(assembly, folder / "run", clock=SystemClock()) as cloud:
        yield cloud


def test_a_function_is_answered_what_it_asks_in_order(cloud: LocalCloud) -> None:
    outcome = cloud.invoke("ask", "right")
    assert (outcome.value, outcome.error) == (None, None)


@pytest.mark.parametrize("asks", ["type", "name", "a body of its own"])
def test_a_request_of_a_function_with_a_wrong_parameter_is_not_sent(
    cloud: LocalCloud, asks: str
) -> None:
    error = cloud.invoke("ask", asks).error
    assert error is not None
    assert error["errorType"] == "ParamValidationError", error["errorMessage"]


def test_a_request_of_a_task_with_a_wrong_parameter_is_not_sent(cloud: LocalCloud) -> None:
    cloud.client("ecs").run_task(cluster="tasks", taskDefinition="worker", launchType="FARGATE")
    cloud.settle()
    (task,) = cloud.tasks.running
    assert cloud.finish_tasks(seconds_max=30)
    assert "botocore.exceptions.ParamValidationError" in task.log.read_text()
