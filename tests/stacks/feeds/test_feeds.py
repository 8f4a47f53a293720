"""What an instance with tasks for feeds is made of beside the others, and that one without has none
of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lakebed.config.environments import (
    FeedTaskStartEnvironment,
    TaskEnvironment,
    variables_named,
)
from lakebed.errors import InvalidError
from stacks.constructs.image_context import image_context
from stacks.constructs.rooms import FEED_ROOMS, files_in
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.rules.security_rules import objects_written_twice, services_without_source
from tests.stacks.test_functions import REPORTED
from tests.stacks.test_security import QUEUE
from tests.stacks.test_templates import resources

SETTINGS = {
    "feed_workers_max": "3",
    "feed_ports": "9092-9098,80",
    "feed_queues": QUEUE,
    "feed_secrets": "kafka,registry",
    "feed_schemas": "true",
    "sources": "s3://landing/files",
}
PARTITIONS = "dynamodb:LeadingKeys"


@pytest.fixture(scope="module")
def fed(synthesize: Synthesize) -> Templates:
    return synthesize(**SETTINGS)


def statements(templates: Templates, role: str) -> Iterator[dict[str, Any]]:
    for id_, resource in templates["feeds"]["Resources"].items():
        if resource["Type"] == "AWS::IAM::Role" and id_.startswith(role):
            yield from resource["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]


def only(templates: Templates, type_: str) -> dict[str, Any]:
    (resource,) = resources({"feeds": templates["feeds"]}, type_)
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_who_does_not_use_feeds_has_no_stack_and_no_alarm_of_them(templates: Templates) -> None:
    assert "feeds" not in templates
    alarms = [alarm["Properties"] for alarm in resources(templates, "AWS::CloudWatch::Alarm")]
    assert not [alarm["AlarmName"] for alarm in alarms if "feed" in alarm["AlarmName"]]


def test_tasks_of_feeds_change_no_other_stack_but_those_that_name_their_parts(
    fed: Templates, synthesize: Synthesize
) -> None:
    without = synthesize(sources=SETTINGS["sources"])
    assert set(fed) - set(without) == {"feeds"}
    changed = {name for name in without if fed[name]["Resources"] != without[name]["Resources"]}
    assert changed == {"address"}, "which says the quotas"


def test_alarms_of_feeds_have_pages(fed: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in resources(fed, "AWS::CloudWatch::Alarm")]
    found = {a["AlarmName"]: a["AlarmDescription"] for a in alarms if "feed" in a["AlarmName"]}
    assert set(found) == {
        "lakebed-dev-feed-failures",
        "lakebed-dev-feed-gaps",
        "lakebed-dev-feed-lags",
        "lakebed-dev-feed-quarantines",
        "lakebed-dev-feed-spool-percent",
        "lakebed-dev-feed-tasks-failed",
        "lakebed-dev-feed-tasks-start-errors",
    }
    for said in found.values():
        assert (ROOT / said.rpartition("see ")[2]).exists(), said


def test_a_task_and_its_starter_are_given_what_they_read(fed: Templates) -> None:
    (container,) = only(fed, "AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    assert {v["Name"] for v in container["Environment"]} == variables_named(TaskEnvironment)
    assert container["StopTimeout"] == 120
    function = only(fed, "AWS::Lambda::Function")
    assert function["FunctionName"] == "lakebed-dev-feed-tasks-start"
    assert function["Handler"] == "lambdas.feed_tasks.start.handler"
    variables = function["Environment"]["Variables"]
    assert set(variables) == variables_named(FeedTaskStartEnvironment) | REPORTED
    assert variables["LAKEBED_TASKS_MAX"] == "3"
    assert variables["LAKEBED_CAPACITY"] == "fargate"


def test_tasks_connect_to_the_ports_of_the_setting_and_accept_nothing(
    fed: Templates, synthesize: Synthesize
) -> None:
    group = only(fed, "AWS::EC2::SecurityGroup")
    out = [(rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupEgress"]]
    assert out == [(9092, 9098), (80, 80)]
    assert "SecurityGroupIngress" not in group
    variables = only(fed, "AWS::Lambda::Function")["Environment"]["Variables"]
    assert "BrokersGroup" in json.dumps(variables["LAKEBED_SECURITY_GROUP"])
    without = synthesize(feed_workers_max="1")
    assert not resources({"feeds": without["feeds"]}, "AWS::EC2::SecurityGroup")


def test_a_task_reads_the_queues_and_secrets_of_the_settings_and_no_others(
    fed: Templates, synthesize: Synthesize
) -> None:
    found = list(statements(fed, "TasksRole"))
    (queues,) = [s["Resource"] for s in found if "sqs:ReceiveMessage" in s["Action"]]
    assert queues == QUEUE
    (secrets,) = [s["Resource"] for s in found if s["Action"] == "secretsmanager:GetSecretValue"]
    ends = {secret["Fn::Join"][1][-1].partition(":secret:")[2] for secret in secrets}
    names = ("lakebed/dev/kafka", "lakebed/dev/registry")
    assert ends == {end for name in names for end in (name, f"{name}-??????")}
    without = json.dumps(list(statements(synthesize(feed_workers_max="1"), "TasksRole")))
    assert "sqs:" not in without
    assert "secretsmanager:" not in without


def test_a_task_reads_schemas_of_its_region_where_the_setting_says_so(
    fed: Templates, synthesize: Synthesize
) -> None:
    (found,) = [s for s in statements(fed, "TasksRole") if "glue" in json.dumps(s["Action"])]
    assert (found["Action"], found["Resource"]) == ("glue:GetSchemaVersion", "*")
    assert found["Condition"] == {"StringEquals": {"aws:RequestedRegion": {"Ref": "AWS::Region"}}}
    for role in ("TasksStartRole", "TasksExecutionRole"):
        assert "glue" not in json.dumps(list(statements(fed, role)))
    without = synthesize(feed_workers_max="1")
    assert "glue" not in json.dumps(without["feeds"])


def test_roles_of_feeds_reach_items_of_the_registry_by_their_partitions(fed: Templates) -> None:
    for role, partitions in (
        ("TasksStartRole", {"feed-definitions", "feed-connections", "feed-policies"}),
        ("TasksRole", {"feed-owners", "feed-workers", "names", "marks"}),
    ):
        of_registry = [s for s in statements(fed, role) if "-registry" in json.dumps(s["Resource"])]
        keys = [s["Condition"]["ForAllValues:StringEquals"][PARTITIONS] for s in of_registry]
        named = {key for some in keys for key in ([some] if isinstance(some, str) else some)}
        assert named >= partitions
    deleted = [s for s in statements(fed, "TasksRole") if s["Action"] == "dynamodb:DeleteItem"]
    assert [s["Condition"]["ForAllValues:StringEquals"][PARTITIONS] for s in deleted] == [
        ["feed-workers"]
    ]


def test_policies_say_what_iam_knows_and_keep_our_rules(fed: Templates) -> None:
    assert not unknown_to_iam(fed)
    assert not services_without_source(fed)
    assert not objects_written_twice(fed)


def test_the_image_holds_sources_and_decoders(fed: Templates) -> None:
    folder = image_context("feeds")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"containers/feeds/main.py", "requirements/feeds.txt"} <= names
    rooms = {path.relative_to(ROOT).as_posix() for path in files_in(ROOT, FEED_ROOMS)}
    assert rooms == {name for name in names if name.startswith("lakebed/")}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"feed_ports": "9092"}, "tasks that there are not"),
        ({"feed_schemas": "true"}, "tasks that there are not"),
        ({"feed_schemas": "true", "feed_take": "true"}, "tasks that there are not"),
        (
            {"feed_workers_max": "1", "feed_schemas": "true", "task_addresses": "private"},
            "without addresses",
        ),
        ({"feed_workers_max": "1", "feed_ports": "0"}, "not ports"),
        ({"feed_workers_max": "1", "feed_ports": "9098-9092"}, "not ports"),
        ({"feed_workers_max": "1", "feed_ports": "70000"}, "not ports"),
        ({"feed_workers_max": "1", "feed_ports": "9092, 9093"}, "feed_ports"),
        ({"feed_workers_max": "1", "feed_ports": "9092,9092"}, "each once"),
        ({"feed_workers_max": "1", "feed_queues": "orders"}, "feed_queues"),
        ({"feed_workers_max": "1", "feed_queues": f"{QUEUE},{QUEUE}"}, "each once"),
        ({"feed_workers_max": "1", "feed_secrets": "kafka/*"}, "feed_secrets"),
        ({"feed_workers_max": "201"}, "feed_workers_max"),
        (
            {"feed_workers_max": "1", "feed_ports": "9092", "task_addresses": "private"},
            "without addresses",
        ),
        (
            {
                "feed_workers_max": "1",
                "feed_queues": QUEUE,
                "key_arn": "arn:aws:kms:us-east-1:123456789012:key/abc",
            },
            "different regions",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(
    synthesize: Synthesize, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidError, match=words):
        synthesize(**settings)
