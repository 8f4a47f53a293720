"""Tags of an owner are on all that takes some."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_lint import linted
from tests.stacks.test_templates import resources

OWN = {"team": "data", "cost center": "12:34"}
ALL = {**OWN, "lakebed:instance": "dev"}

TAKE_NONE = {
    "AWS::CloudFormation::CustomResource": "a function that is called, and nothing else",
    "AWS::EC2::Route": "part of a route table",
    "AWS::EC2::SubnetRouteTableAssociation": "a line between two resources",
    "AWS::EC2::VPCGatewayAttachment": "a line between two resources",
    "AWS::IAM::ManagedPolicy": "CloudFormation gives it none",
    "AWS::Lambda::EventInvokeConfig": "part of a function",
    "AWS::Lambda::Permission": "part of a function",
    "AWS::Lambda::Url": "part of a function",
    "AWS::S3::BucketPolicy": "part of a bucket",
    "AWS::SNS::Subscription": "part of a topic",
    "AWS::SNS::TopicPolicy": "part of a topic",
    "AWS::SQS::QueuePolicy": "part of a queue",
}
"""Types of resources that CloudFormation gives no tags, and why nothing is missed."""
EVERYTHING = {
    "feed_workers_max": "1",
    "feed_push": "true",
    "feed_take": "true",
    "alarm_mail": "ops@example.org",
}


@pytest.fixture(scope="module")
def tagged(synthesize: Synthesize) -> Templates:
    return synthesize(tags=OWN, **EVERYTHING)


def tags_of(resource: dict[str, Any]) -> dict[str, str] | None:
    """Return a resource's tags; None: it has no such property."""
    given = resource.get("Properties", {}).get("Tags")
    if given is None or isinstance(given, dict):
        return given
    return {tag["Key"]: tag["Value"] for tag in given}


def test_all_that_takes_tags_has_them_and_what_takes_none_is_known(tagged: Templates) -> None:
    types = dict[str, bool]()
    for template in tagged.values():
        for id_, resource in template["Resources"].items():
            tags = tags_of(resource)
            has = tags is not None and ALL.items() <= tags.items()
            types[resource["Type"]] = has and types.get(resource["Type"], True)
            assert has or resource["Type"] in TAKE_NONE, f"{id_} without tags"
    assert not [type_ for type_ in TAKE_NONE if types.get(type_)], "they take tags by now"
    assert len(types) > 25


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_cloudformation_refuses_tags_of_what_is_listed(synthesize: Synthesize) -> None:
    settings = {**EVERYTHING, "task_addresses": "private", "feed_workers_max": "0"}
    private, public = synthesize(**settings), synthesize(**EVERYTHING)
    for type_ in set(TAKE_NONE) - {"AWS::CloudFormation::CustomResource"}:
        found = [
            template
            for template in (*public.values(), *private.values())
            if any(r["Type"] == type_ for r in template["Resources"].values())
        ]
        assert found, f"no instance has {type_}: do not list it"
        id_, resource = next((i, r) for i, r in found[0]["Resources"].items() if r["Type"] == type_)
        tags = [{"Key": "team", "Value": "data"}]
        alone = {**resource, "Properties": {**resource["Properties"], "Tags": tags}}
        template = {**found[0], "Resources": {**found[0]["Resources"], id_: alone}}
        assert [text for _, text in linted(template) if "Tags" in text], type_


def test_stacks_are_not_tagged_beside_their_resources(
    synthesize: Synthesize, tmp_path: Path
) -> None:
    """Tags of a stack reach its resources by themselves, and change at another time."""
    synthesize(tmp_path, tags=OWN)
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    stacks = [a for a in manifest["artifacts"].values() if a["type"].endswith(":stack")]
    assert all(not stack["properties"].get("tags") for stack in stacks)


def test_who_starts_runs_of_spark_tags_them(tagged: Templates, templates: Templates) -> None:
    for which, wanted in ((tagged, ALL), (templates, {"lakebed:instance": "dev"})):
        (start,) = [
            function["Properties"]["Environment"]["Variables"]
            for function in resources(which, "AWS::Lambda::Function")
            if function["Properties"]["Handler"] == "lambdas.bulk_import.start.handler"
        ]
        assert json.loads(start["LAKEBED_TAGS"]) == wanted


def test_who_starts_tasks_may_tag_them_while_it_starts_them_and_at_no_other_time(
    templates: Templates,
) -> None:
    found = [
        statement
        for role in resources(templates, "AWS::IAM::Role")
        for policy in role["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "ecs:TagResource"
    ]
    assert len(found) == 2, "starters of ingest and of compaction"
    for statement in found:
        assert statement["Condition"] == {"StringEquals": {"ecs:CreateAction": "RunTask"}}
        assert ":task/lakebed-dev-tasks/*" in json.dumps(statement["Resource"])


def test_a_function_has_room_for_as_many_tags_as_are_allowed(synthesize: Synthesize) -> None:
    """Lambda takes 4 KiB of variables. Names of queues and buckets have room to be resolved."""
    tags = {f"tag {n}": "v" * 200 for n in range(7)}
    able = [
        function["Properties"]["Environment"]["Variables"]
        for function in resources(synthesize(tags=tags), "AWS::Lambda::Function")
        if "LAKEBED_TAGS" in function["Properties"].get("Environment", {}).get("Variables", {})
    ]
    assert len(able) == 2, "who starts imports, and who asks for machines again"
    assert all(len(json.dumps(variables)) < 4_096 for variables in able)
