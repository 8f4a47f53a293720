"""What an instance is made of beside the others whose senders push by a URL, and that one without
has none of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakebed.config.environments import TableFunctionEnvironment, variables_named
from stacks.feed_push import SECONDS_MAX
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.rules import security_rules as rules
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.test_checks import reports
from tests.stacks.test_functions import REPORTED
from tests.stacks.test_security import KEY
from tests.stacks.test_templates import resources

DATA = "lakebed-dev-data-"
OBJECTS = "/lake/objects"
WAITS_SECONDS = 30
"""For so long a receiver waits until a worker has landed what came."""


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pushed")


@pytest.fixture(scope="module")
def pushed(synthesize: Synthesize, assembly: Path) -> Templates:
    return synthesize(assembly, feed_push="true")


def only(templates: Templates, type_: str) -> dict[str, Any]:
    (resource,) = resources({"push": templates["push"]}, type_)
    properties: dict[str, Any] = resource["Properties"]
    return properties


def statements(templates: Templates) -> dict[str, dict[str, Any]]:
    """Return what the role may do, by action and what it names first."""
    (policy,) = only(templates, "AWS::IAM::Role")["Policies"]
    found = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            found[f"{action} {_named(statement)}"] = statement
    return found


def _named(statement: dict[str, Any]) -> str:
    text = json.dumps(statement["Resource"])
    tables = {f":table/lakebed-dev-{table}": table for table in ("registry", "log", "tracker")}
    kinds = {**tables, "PushLog": "logs", DATA: "objects"}
    return next(kind for part, kind in kinds.items() if part in text)


def keys_of(statement: dict[str, Any]) -> list[str]:
    """Return the keys of objects that a statement names, without the bucket."""
    named = statement["Resource"]
    parts = [named] if isinstance(named, dict) else named
    return [part["Fn::Join"][1][-1] for part in parts]


def test_who_does_not_push_has_no_stack_and_no_address(
    templates: Templates, synthesize: Synthesize
) -> None:
    with_tasks = synthesize(feed_workers_max="1")
    for some in (templates, with_tasks):
        assert "push" not in some
        assert not resources(some, "AWS::Lambda::Url")
        names = [f["Properties"]["FunctionName"] for f in resources(some, "AWS::Lambda::Function")]
        assert not [name for name in names if "push" in name]


def test_pushes_need_no_tasks_and_change_only_the_stack_that_lists_all(
    pushed: Templates, templates: Templates
) -> None:
    assert set(pushed) - set(templates) == {"push"}
    assert {n for n in templates if pushed[n]["Resources"] != templates[n]["Resources"]} == {
        "address"
    }
    types = sorted({each["Type"] for each in pushed["push"]["Resources"].values()})
    assert types == [
        "AWS::CloudWatch::Alarm",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Lambda::Url",
        "AWS::Logs::LogGroup",
    ]


def test_the_address_asks_for_signatures_and_lets_no_page_of_another_site_in(
    pushed: Templates,
) -> None:
    url = only(pushed, "AWS::Lambda::Url")
    assert url["AuthType"] == "AWS_IAM"
    assert "Cors" not in url
    assert set(url) == {"AuthType", "TargetFunctionArn"}
    assert not resources({"push": pushed["push"]}, "AWS::Lambda::Permission")
    (output,) = pushed["push"]["Outputs"].values()
    assert "FunctionUrl" in json.dumps(output["Value"])


def test_the_function_is_given_what_it_reads_and_has_time_for_an_answer(pushed: Templates) -> None:
    function = only(pushed, "AWS::Lambda::Function")
    assert function["FunctionName"] == "lakebed-dev-feeds-push"
    assert function["Handler"] == "lambdas.feeds.push.handler"
    variables = function["Environment"]["Variables"]
    assert set(variables) == variables_named(TableFunctionEnvironment) | REPORTED
    assert function["Timeout"] == SECONDS_MAX >= 2 * WAITS_SECONDS


def test_its_role_puts_segments_and_reads_what_it_takes_to_know_them(pushed: Templates) -> None:
    found = statements(pushed)
    assert set(found) == {
        "logs:CreateLogStream logs",
        "logs:PutLogEvents logs",
        "s3:PutObject objects",
        "s3:GetObject objects",
        "s3:ListBucket objects",
        "dynamodb:Query registry",
        "dynamodb:GetItem registry",
        "dynamodb:Query log",
        "dynamodb:GetItem log",
        "dynamodb:PutItem tracker",
        "dynamodb:UpdateItem tracker",
    }
    counted = found["dynamodb:UpdateItem tracker"]["Condition"]["ForAllValues:StringLike"]
    assert counted == {"dynamodb:LeadingKeys": ["usage#*"]}
    reported = found["dynamodb:PutItem tracker"]["Condition"]["ForAllValues:StringLike"]
    assert reported == {"dynamodb:LeadingKeys": ["process#*"]}
    assert keys_of(found["s3:PutObject objects"]) == [f"{OBJECTS}/feeds/*/segments/*"]
    states = [f"{OBJECTS}/logs/*", f"{OBJECTS}/tables/*/snapshots/*"]
    read = [f"{OBJECTS}/feeds/*/segments/*", *states]
    assert keys_of(found["s3:GetObject objects"]) == read, "no file of rows"
    listed = found["s3:ListBucket objects"]["Condition"]["StringLike"]["s3:prefix"]
    assert listed == [key.removeprefix("/") for key in read]
    partitions = {
        action: found[f"dynamodb:{action} registry"]["Condition"]["ForAllValues:StringEquals"]
        for action in ("Query", "GetItem")
    }
    assert partitions == {
        "Query": {
            "dynamodb:LeadingKeys": ["feed-connections", "feed-definitions", "feed-policies"]
        },
        "GetItem": {"dynamodb:LeadingKeys": ["feed-number", "names"]},
    }


def test_tasks_of_feeds_delete_segments_and_nothing_else(synthesize: Synthesize) -> None:
    roles = resources({"feeds": synthesize(feed_workers_max="1")["feeds"]}, "AWS::IAM::Role")
    deleting = [
        statement
        for role in roles
        for statement in role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
        if "s3:DeleteObject" in json.dumps(statement["Action"])
    ]
    assert [keys_of(each) for each in deleting] == [[f"{OBJECTS}/feeds/*/segments/*"]]


def test_runs_that_fail_have_an_alarm_with_a_page(pushed: Templates) -> None:
    alarm = only(pushed, "AWS::CloudWatch::Alarm")
    assert alarm["AlarmName"] == "lakebed-dev-feeds-push-errors"
    assert (ROOT / alarm["AlarmDescription"].rpartition("see ")[2]).exists()


def test_policies_and_checks_find_nothing(
    pushed: Templates, assembly: Path, synthesize: Synthesize
) -> None:
    assert not unknown_to_iam(pushed)
    assert not rules.objects_written_twice(pushed)
    assert not rules.services_without_source(pushed)
    with_key = synthesize(feed_push="true", key_arn=KEY)
    assert not rules.logs_without_key(with_key, KEY)
    assert "kms:GenerateDataKey" in json.dumps(only(with_key, "AWS::IAM::Role"))
    told = [v for report in reports(assembly).values() for v in report["violations"]]
    assert [v["ruleName"] for v in told] == ["Annotation::lakebed:alarms-unheard"]
