"""Each alarm can reach its threshold, and each function has one, whatever an instance has."""

import copy
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from lakebed.observe.metrics import NAMESPACE
from tests.stacks.conftest import Templates
from tests.stacks.test_templates import resources

UNITS = {"minute": 60, "minutes": 60, "hour": 3_600, "hours": 3_600, "day": 86_400, "days": 86_400}
CALLED = {"query-answer", "networking-check", "feeds-push"}
"""Functions that neither a schedule nor a queue runs."""
DEPLOYING = {"release-check", "networking-check", "tables-apply"}
"""Functions that a deployment waits for: it tells of their errors."""
STREAM_SECONDS = 60
"""A batch of a stream that failed is handed over again by then."""
PERCENT_MAX = 100


class Sent(NamedTuple):
    """Who sends a metric, a function or a kind of tasks; and the most that one run says of it."""

    by: str
    at_most: int = 1


SENT = {
    "budgets_spent": Sent("sweep-handle"),
    "bugs_met": Sent("splitting-handle"),
    "bulk_imports_failed": Sent("bulk-import-follow"),
    "compactions_rejected": Sent("compaction"),
    "corruption_found": Sent("splitting-handle"),
    "feed_failures": Sent("feeds"),
    "feed_gaps": Sent("feeds"),
    "feed_lags": Sent("feeds"),
    "feed_quarantines": Sent("feeds"),
    "feed_spool_percent": Sent("feeds", PERCENT_MAX),
    "feed_tasks_failed": Sent("feed-tasks-start"),
    "leaf_files_percent": Sent("compaction-creation-handle", PERCENT_MAX),
    "tasks_not_started": Sent("compaction-tasks-start"),
}
"""What sends each metric with an alarm. Of a sum: what a run adds to it, where one thing is wrong
and stays so."""

Alarm = dict[str, Any]


def of_type(template: dict[str, Any], type_: str) -> dict[str, dict[str, Any]]:
    """Properties by id: ids are unique in one stack only."""
    return {
        id_: resource["Properties"]
        for id_, resource in template["Resources"].items()
        if resource["Type"] == type_
    }


def seconds_of(expression: str) -> int:
    """How long there is between two runs of a schedule."""
    rate = re.fullmatch(r"rate\((\d+) (\w+)\)", expression)
    assert rate is not None, expression
    return int(rate[1]) * UNITS[rate[2]]


def schedules_of(template: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The id of each function that a schedule runs, and how often."""
    for rule in of_type(template, "AWS::Events::Rule").values():
        if "ScheduleExpression" in rule:
            for target in rule["Targets"]:
                yield target["Arn"]["Fn::GetAtt"][0], seconds_of(rule["ScheduleExpression"])


def names_of(template: dict[str, Any]) -> dict[str, str]:
    """Names of functions in the instance, by id."""
    return {
        id_: function["FunctionName"].removeprefix("lakebed-dev-")
        for id_, function in of_type(template, "AWS::Lambda::Function").items()
    }


def seconds_apart(templates: Templates) -> dict[str, int]:
    """How long after one run of each function the next one begins that fails for the same reason.
    By the function's name in the instance."""
    found = {}
    for template in templates.values():
        names = names_of(template)
        found |= {names[id_]: seconds for id_, seconds in schedules_of(template)}
        queues = of_type(template, "AWS::SQS::Queue")
        for source in of_type(template, "AWS::Lambda::EventSourceMapping").values():
            own = queues.get(source["EventSourceArn"].get("Fn::GetAtt", [""])[0])
            seconds = own["VisibilityTimeout"] if own else STREAM_SECONDS
            found[names[source["FunctionName"]["Ref"]]] = seconds
    return found


def senders(templates: Templates) -> dict[str, float]:
    """Functions and kinds of tasks, and how long there is between two runs of each: of tasks, as
    long as there is between two runs of what starts them."""
    found: dict[str, float] = dict(seconds_apart(templates))
    for task in resources(templates, "AWS::ECS::TaskDefinition"):
        found[task["Properties"]["Family"].removeprefix("lakebed-dev-")] = 60
    return found


def unreachable(templates: Templates) -> set[str]:
    """The names of alarms that would never go off."""
    apart, by = seconds_apart(templates), senders(templates)
    rules = {rule["Properties"]["Name"] for rule in resources(templates, "AWS::Events::Rule")}
    found = set()
    for template in templates.values():
        for alarm in of_type(template, "AWS::CloudWatch::Alarm").values():
            match alarm["Namespace"]:
                case "AWS/Lambda":
                    most = most_errors(alarm, names_of(template), apart)
                case "AWS/SQS":
                    most = most_of_queue(alarm, template)
                case "AWS/Events":
                    most = float(alarm["Dimensions"][0]["Value"] in rules)
                case _:
                    assert alarm["Namespace"] == NAMESPACE
                    most = most_sent(alarm, by)
            if alarm["Threshold"] > most:
                found.add(alarm["AlarmName"].removeprefix("lakebed-dev-"))
    return found


def most_errors(alarm: Alarm, names: dict[str, str], apart: dict[str, int]) -> float:
    """How many runs fail in the period, where each does. One that is called may be called once."""
    (dimension,) = alarm["Dimensions"]
    seconds = apart.get(names[dimension["Value"]["Ref"]], math.inf)
    return max(alarm["Period"] // seconds, 1)


def most_of_queue(alarm: Alarm, template: dict[str, Any]) -> float:
    """How many messages a queue may hold; or how old one may be that fails each time: as old as it
    is when it becomes a dead letter. Those that tasks take wait unseen until a task is there."""
    if alarm["MetricName"] != "ApproximateAgeOfOldestMessage":
        return math.inf
    id_ = alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
    queue = of_type(template, "AWS::SQS::Queue")[id_]
    sources = of_type(template, "AWS::Lambda::EventSourceMapping").values()
    received = any(source["EventSourceArn"].get("Fn::GetAtt", [""])[0] == id_ for source in sources)
    kept: float = queue["MessageRetentionPeriod"] - 1
    if not received:
        return kept
    receives: int = queue["RedrivePolicy"]["maxReceiveCount"]
    return min(kept, receives * queue["VisibilityTimeout"] - alarm["Period"])


def most_sent(alarm: Alarm, by: dict[str, float]) -> float:
    """What a metric of ours comes to in the period."""
    sent = SENT[alarm["MetricName"]]
    if sent.by not in by:
        return 0
    runs = 1 if alarm["Statistic"] == "Maximum" else max(alarm["Period"] // by[sent.by], 1)
    return float(runs * sent.at_most)


@pytest.fixture(params=["templates", "with_everything"])
def some(request: pytest.FixtureRequest) -> Templates:
    found: Templates = request.getfixturevalue(request.param)
    return found


def test_each_alarm_can_reach_its_threshold(some: Templates) -> None:
    assert unreachable(some) == set()
    for alarm in resources(some, "AWS::CloudWatch::Alarm"):
        properties = alarm["Properties"]
        assert properties["EvaluationPeriods"] == 1, "the arithmetic is that of one window"
        assert properties["Statistic"] in ("Sum", "Maximum")
        assert properties["Period"] % 60 == 0
        assert properties["Period"] <= 86_400


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("feed-lags", 6),
        ("feed-quarantines", 6),
        ("feed-spool-percent", PERCENT_MAX + 1),
        ("feed-tasks-failed", 16),
        ("tasks-not-started", 16),
        ("leaf-files-percent", PERCENT_MAX + 1),
        ("arrivals-d6709cd4-lost", 2),
        ("history-handle-errors", 2),
        ("job-events-publish-errors", 16),
        ("feeds-push-errors", 2),
        ("splitting-age", 5 * 960 - 299),
        ("compaction-age", 14 * 86_400),
    ],
)
def test_an_alarm_that_never_goes_off_is_found(
    with_everything: Templates, name: str, threshold: int
) -> None:
    other = copy.deepcopy(with_everything)
    (alarm,) = [
        one["Properties"]
        for one in resources(other, "AWS::CloudWatch::Alarm")
        if one["Properties"]["AlarmName"] == f"lakebed-dev-{name}"
    ]
    assert alarm["Threshold"] < threshold
    alarm["Threshold"] = threshold
    assert unreachable(other) == {name}


def test_each_function_has_an_alarm_of_its_errors(some: Templates) -> None:
    found = {name for template in some.values() for name in names_of(template).values()}
    alarmed = set()
    for template in some.values():
        for alarm in of_type(template, "AWS::CloudWatch::Alarm").values():
            if alarm["Namespace"] == "AWS/Lambda":
                assert alarm["Statistic"] == "Sum"
                alarmed.add(names_of(template)[alarm["Dimensions"][0]["Value"]["Ref"]])
    assert alarmed == found - DEPLOYING
    assert found == set(seconds_apart(some)) | (found & (CALLED | DEPLOYING))


def test_every_alarm_tells_the_topic_of_the_instance(some: Templates) -> None:
    found = [alarm["Properties"] for alarm in resources(some, "AWS::CloudWatch::Alarm")]
    assert len(found) > 40
    for alarm in found:
        (action,) = alarm["AlarmActions"]
        assert action["Fn::Join"][1][-1].endswith(":lakebed-dev-alarms"), alarm["AlarmName"]
        assert alarm["OKActions"] == alarm["AlarmActions"], "it is told when it is over, too"


def invoke_configs(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what becomes of events that nobody waits for, by the name of the function."""
    names = names_of(template)
    configured = of_type(template, "AWS::Lambda::EventInvokeConfig").values()
    return {names[config["FunctionName"]["Ref"]]: config for config in configured}


def test_a_function_of_a_schedule_is_not_run_again_for_an_old_event(some: Templates) -> None:
    for template in some.values():
        scheduled = {names_of(template)[id_] for id_, _ in schedules_of(template)}
        configs = invoke_configs(template)
        assert configs.keys() - DEPLOYING == scheduled
        for name in scheduled:
            assert configs[name]["MaximumRetryAttempts"] == 0
            assert configs[name]["MaximumEventAgeInSeconds"] == 60


def test_a_function_that_a_deployment_waits_for_is_run_as_long_as_that_waits(
    some: Templates,
) -> None:
    found = {name: c for template in some.values() for name, c in invoke_configs(template).items()}
    deploying = {n for template in some.values() for n in names_of(template).values()} & DEPLOYING
    assert found.keys() & DEPLOYING == deploying
    for name in deploying:
        assert found[name]["MaximumEventAgeInSeconds"] == 3_600
        assert found[name]["MaximumRetryAttempts"] == 2
    for template in some.values():
        configs = set(of_type(template, "AWS::Lambda::EventInvokeConfig"))
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::CloudFormation::CustomResource":
                assert configs & set(resource["DependsOn"]), "it holds from the first call"
