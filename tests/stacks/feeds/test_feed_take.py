"""The function that takes what trickles: what it is given, what it may do, and that an instance
without the setting has none of it."""

import json
from typing import Any

import pytest

from lakebed.bootstrap.functions.feed_take import TAKE_SECONDS_MAX
from lakebed.config.environments import FeedTakeEnvironment, variables_named
from lakebed.errors import InvalidError
from stacks.feed_take import SECONDS_MAX
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.feeds.test_feeds import statements
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.rules.security_rules import objects_written_twice, services_without_source
from tests.stacks.test_functions import REPORTED
from tests.stacks.test_security import QUEUE
from tests.stacks.test_templates import resources

NAME = "lakebed-dev-feeds-take"


@pytest.fixture(scope="module")
def taking(synthesize: Synthesize) -> Templates:
    return synthesize(feed_take="true", feed_queues=QUEUE, sources="s3://landing/files")


def function(templates: Templates) -> dict[str, Any]:
    (found,) = [
        function["Properties"]
        for function in resources({"feeds": templates["feeds"]}, "AWS::Lambda::Function")
        if function["Properties"]["FunctionName"] == NAME
    ]
    properties: dict[str, Any] = found
    return properties


def test_only_an_instance_with_the_setting_has_the_function(
    taking: Templates, synthesize: Synthesize
) -> None:
    without = synthesize(sources="s3://landing/files")
    assert set(taking) - set(without) == {"feeds"}
    changed = {name for name in without if taking[name]["Resources"] != without[name]["Resources"]}
    assert changed == {"address"}, "it lists the stacks that there are"
    assert NAME not in json.dumps(synthesize(feed_workers_max="1")["feeds"])


def test_an_instance_may_have_the_function_and_no_tasks(taking: Templates) -> None:
    assert not resources({"feeds": taking["feeds"]}, "AWS::ECS::TaskDefinition")
    (rule,) = resources({"feeds": taking["feeds"]}, "AWS::Events::Rule")
    assert rule["Properties"]["ScheduleExpression"] == "rate(1 minute)"


def test_the_function_is_given_what_it_reads_and_time_to_commit_what_it_holds(
    taking: Templates,
) -> None:
    found = function(taking)
    assert set(found["Environment"]["Variables"]) == variables_named(FeedTakeEnvironment) | REPORTED
    assert found["Handler"] == "lambdas.feeds.take.handler"
    assert found["Timeout"] == SECONDS_MAX >= 2 * TAKE_SECONDS_MAX


def test_runs_that_fail_and_feeds_that_fail_have_alarms_with_pages(taking: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in resources(taking, "AWS::CloudWatch::Alarm")]
    found = {a["AlarmName"]: a["AlarmDescription"] for a in alarms if "feed" in a["AlarmName"]}
    assert set(found) == {
        f"{NAME}-errors",
        "lakebed-dev-feed-failures",
        "lakebed-dev-feed-gaps",
        "lakebed-dev-feed-lags",
        "lakebed-dev-feed-quarantines",
        "lakebed-dev-feed-spool-percent",
    }, "there are no tasks that could fail"
    for said in found.values():
        assert (ROOT / said.rpartition("see ")[2]).exists(), said


def test_the_function_may_what_tasks_may_but_read_secrets_and_land_pushes(
    taking: Templates, synthesize: Synthesize
) -> None:
    settings = {"feed_queues": QUEUE, "sources": "s3://landing/files"}
    fed = synthesize(feed_workers_max="1", feed_secrets="kafka", **settings)
    may = [json.dumps(one, sort_keys=True) for one in statements(taking, "TakeFunctionRole")]
    tasks = [json.dumps(one, sort_keys=True) for one in statements(fed, "TasksRole")]
    assert {one for one in may if "logs:PutLogEvents" not in one} == {
        one for one in tasks if "secretsmanager" not in one and "/segments/" not in one
    }
    assert any("/segments/" in one for one in tasks)
    assert QUEUE in json.dumps(may)


def test_policies_say_what_iam_knows_and_keep_our_rules(taking: Templates) -> None:
    assert not unknown_to_iam(taking)
    assert not services_without_source(taking)
    assert not objects_written_twice(taking)


@pytest.mark.parametrize(
    "settings", [{"feed_ports": "9092"}, {"feed_secrets": "kafka", "feed_queues": QUEUE}]
)
def test_what_is_for_tasks_alone_is_refused_without_tasks(
    synthesize: Synthesize, settings: dict[str, str]
) -> None:
    with pytest.raises(InvalidError, match="tasks that there are not") as refused:
        synthesize(feed_take="true", **settings)
    assert "feed_queues" not in str(refused.value)
