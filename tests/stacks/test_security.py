"""The templates keep each rule of security, and a template that breaks one is found."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.rules import security_rules as rules

KEY = "arn:aws:kms:eu-west-1:123456789012:key/0f1e2d3c-aaaa-bbbb-cccc-1234567890ab"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
SOURCES = "s3://landing/files,s3://more"
LISTENER = {"notices_mail": "ops@example.org"}

SPARK = '"Service": "emr-serverless'
"""In the trust policy of the role of Spark's runs."""

Resource = dict[str, Any]


@pytest.fixture(scope="module")
def with_key(synthesize: Synthesize) -> Templates:
    return synthesize(key_arn=KEY, sources=SOURCES, **LISTENER)


def test_templates_keep_every_rule(
    templates: Templates, with_key: Templates, with_everything: Templates
) -> None:
    for some in (templates, with_key, with_everything):
        assert not rules.services_without_source(some)
        assert not rules.objects_written_twice(some)
        assert not rules.spark_without_lists(some)
    for some in (with_key, with_everything):
        assert not rules.logs_without_key(some, KEY)
        assert not rules.roles_without_key(some, KEY)
        assert not rules.people_without_key(some, KEY)
    assert "kms" not in json.dumps(templates)


def broken(
    templates: Templates, type_: str, holds: str, change: Callable[[Resource], object]
) -> Templates:
    """Return templates of which every resource of a type that holds a text was changed."""
    found = copy.deepcopy(templates)
    changed = [
        change(resource["Properties"])
        for template in found.values()
        for resource in template["Resources"].values()
        if resource["Type"] == type_ and holds in json.dumps(resource["Properties"])
    ]
    assert changed, f"no {type_} holds {holds}"
    return found


def trust_of(role: Resource) -> Resource:
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    found: Resource = statement
    return found


def statements_of(policy: Resource) -> list[Resource]:
    found: list[Resource] = policy["PolicyDocument"]["Statement"]
    return found


@pytest.mark.parametrize(
    ("service", "roles"),
    [("ecs-tasks", 4), ("emr-serverless", 1), ("vpc-flow-logs", 1)],
)
def test_a_role_that_a_service_takes_for_anybody_is_found(
    templates: Templates, service: str, roles: int
) -> None:
    def drop(condition: str) -> list[str]:
        some = broken(
            templates,
            "AWS::IAM::Role",
            f'"Service": "{service}.amazonaws.com"',
            lambda role: [
                keys.pop(condition, None) for keys in trust_of(role)["Condition"].values()
            ],
        )
        return rules.services_without_source(some)

    assert len(drop("aws:SourceAccount")) == len(drop("aws:SourceArn")) == roles


def test_a_service_that_a_topic_key_or_function_lets_in_for_anybody_is_found(
    templates: Templates, with_key: Templates
) -> None:
    topic = broken(
        templates,
        "AWS::SNS::TopicPolicy",
        "cloudwatch",
        lambda policy: [statement.pop("Condition") for statement in statements_of(policy)],
    )
    assert len(rules.services_without_source(topic)) == 2
    key = broken(
        with_key,
        "AWS::KMS::Key",
        "cloudwatch",
        lambda found: [s.pop("Condition", None) for s in found["KeyPolicy"]["Statement"]],
    )
    assert len(rules.services_without_source(key)) == 2
    calls = broken(
        templates, "AWS::Lambda::Permission", "events", lambda told: told.pop("SourceArn")
    )
    assert len(rules.services_without_source(calls)) > 5


def test_a_log_or_role_without_the_key_is_found(with_key: Templates) -> None:
    name = "/ecs/lakebed-dev-ingest"
    logs = broken(with_key, "AWS::Logs::LogGroup", name, lambda log: log.pop("KmsKeyId"))
    (finding,) = rules.logs_without_key(logs, KEY)
    assert name in finding

    def forget(role: Resource) -> None:
        document = role["Policies"][0]["PolicyDocument"]
        kept = [s for s in document["Statement"] if "kms:ReEncryptTo" not in s["Action"]]
        document["Statement"] = kept

    roles = broken(with_key, "AWS::IAM::Role", SPARK, forget)
    (finding,) = rules.roles_without_key(roles, KEY)
    assert "DynamoDB uses the key for []" in finding


@pytest.mark.parametrize(
    "name",
    [
        *("clusters MachineRole", "events PublishRole", "feeds TakeFunctionRole"),
        *("feeds TasksRole", "history HandleRole", "push PushRole", "tables ApplyRole"),
    ],
)
def test_a_role_of_a_stack_that_settings_ask_for_is_found_without_the_key(
    with_everything: Templates, name: str
) -> None:
    stack, _, id_ = name.partition(" ")
    some = copy.deepcopy(with_everything)
    (role,) = (
        resource["Properties"]
        for logical, resource in some[stack]["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and logical.startswith(id_)
    )
    document = role["Policies"][0]["PolicyDocument"]
    document["Statement"] = [s for s in document["Statement"] if "kms:" not in str(s["Action"])]
    (finding,) = rules.roles_without_key(some, KEY)
    assert finding.startswith(name)


@pytest.mark.parametrize(
    ("sid", "findings"),
    [("Key", 4 * 3 + 1), ("TablesKey", 4)],
)
def test_people_who_meet_data_without_the_key_are_found(
    with_everything: Templates, sid: str, findings: int
) -> None:
    def forget(policy: Resource) -> None:
        policy["PolicyDocument"]["Statement"] = [
            s for s in statements_of(policy) if s.get("Sid") != sid
        ]

    some = broken(with_everything, "AWS::IAM::ManagedPolicy", f'"Sid": "{sid}"', forget)
    assert len(rules.people_without_key(some, KEY)) == findings


@pytest.mark.parametrize("operator", ["Null", "Bool"])
def test_a_bucket_that_lets_objects_be_overwritten_is_found(
    templates: Templates, operator: str
) -> None:
    def forget(policy: Resource) -> None:
        for statement in statements_of(policy):
            statement["Condition"].pop(operator, None)

    some = broken(templates, "AWS::S3::BucketPolicy", "if-none-match", forget)
    assert rules.objects_written_twice(some) == [
        "@Bucket.Arn/bulk-import/objects/*: may be overwritten",
        "@Bucket.Arn/lake/objects/*: may be overwritten",
    ]


@pytest.mark.parametrize("taker", [SPARK, '"Service": "ec2.amazonaws.com"'])
def test_a_bucket_that_spark_reads_and_does_not_list_is_found(
    with_everything: Templates, taker: str
) -> None:
    def forget(role: Resource) -> None:
        document = role["Policies"][0]["PolicyDocument"]
        document["Statement"] = [s for s in document["Statement"] if s["Action"] != "s3:ListBucket"]

    some = broken(with_everything, "AWS::IAM::Role", taker, forget)
    found = rules.spark_without_lists(some)
    assert len(found) == 6, "the lake, requests, two sources, an archive, a program"
