"""Each alarm can go off, and tells somebody; a schedule's runs are not repeated behind its back."""

import math
import re
from typing import Any

import click
import pytest

from lakebed.cli.main import program
from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError
from lakebed.observe.metrics import NAMESPACE
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.test_templates import only, resources

TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:notices"
NOTICE = re.compile(r"[^`]+; run `(?P<command>[^`]+)`: see (?P<page>docs/operate/[a-z-]+\.md)")
DESCRIPTION_CHARACTERS_MAX = 1_024
"""What CloudWatch takes."""
UNITS = {"minute": 60, "minutes": 60, "hour": 3_600, "day": 86_400, "days": 86_400}
CALLED = {"query-answer", "networking-check"}
"""Functions that neither a schedule nor a queue runs."""
REPORTERS = {"tasks_not_started": "compaction-tasks-start"}
"""Who reports a metric whose alarm takes several reports."""
Alarm = dict[str, Any]


def alarms(templates: Templates) -> list[Alarm]:
    return [alarm["Properties"] for alarm in resources(templates, "AWS::CloudWatch::Alarm")]


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


def seconds_apart(templates: Templates) -> dict[str, int]:
    """How long after one run of each function the next one begins that fails for the same reason.
    By the function's name in the instance."""
    found = {}
    for template in templates.values():
        names = {
            id_: function["FunctionName"].removeprefix("lakebed-dev-")
            for id_, function in of_type(template, "AWS::Lambda::Function").items()
        }
        for rule in of_type(template, "AWS::Events::Rule").values():
            for target in rule["Targets"]:
                name = names[target["Arn"]["Fn::GetAtt"][0]]
                found[name] = seconds_of(rule["ScheduleExpression"])
        queues = of_type(template, "AWS::SQS::Queue")
        for source in of_type(template, "AWS::Lambda::EventSourceMapping").values():
            queue = queues[source["EventSourceArn"]["Fn::GetAtt"][0]]
            found[names[source["FunctionName"]["Ref"]]] = queue["VisibilityTimeout"]
    return found


def test_every_alarm_tells_the_topic_of_the_instance(templates: Templates) -> None:
    found = alarms(templates)
    assert len(found) > 40
    for alarm in found:
        (action,) = alarm["AlarmActions"]
        assert action["Fn::Join"][1][-1].endswith(":lakebed-dev-alarms"), alarm["AlarmName"]
        assert alarm["OKActions"] == alarm["AlarmActions"], "it is told when it is over, too"
    assert only(templates, "AWS::SNS::Topic")["TopicName"] == "lakebed-dev-alarms"


def test_only_alarms_of_the_instance_may_publish_and_only_by_tls(templates: Templates) -> None:
    statements = only(templates, "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    allowed = [s for s in statements if s["Effect"] == "Allow"]
    (denied,) = [s for s in statements if s["Effect"] == "Deny"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (statement,) = allowed
    assert statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statement["Condition"]["StringEquals"] == {
        "aws:SourceAccount": {"Ref": "AWS::AccountId"}
    }
    source = statement["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Join"][1]
    assert source[-1] == ":alarm:lakebed-dev-*"


def test_an_address_of_mail_is_subscribed_and_else_nobody(
    synthesize: Synthesize, templates: Templates
) -> None:
    assert not resources(templates, "AWS::SNS::Subscription")
    subscription = only(synthesize(alarm_mail="ops@example.org"), "AWS::SNS::Subscription")
    assert subscription["Protocol"] == "email"
    assert subscription["Endpoint"] == "ops@example.org"


def test_a_topic_of_yours_takes_the_place_of_the_instances_own(synthesize: Synthesize) -> None:
    templates = synthesize(alarm_topic_arn=TOPIC)
    assert not resources(templates, "AWS::SNS::Topic")
    assert {tuple(alarm["AlarmActions"]) for alarm in alarms(templates)} == {(TOPIC,)}
    assert {tuple(alarm["OKActions"]) for alarm in alarms(templates)} == {(TOPIC,)}


def test_listeners_of_three_kinds_are_subscribed_to_a_topic_with_a_key(
    synthesize: Synthesize, templates: Templates
) -> None:
    assert "KmsMasterKeyId" not in only(templates, "AWS::SNS::Topic")
    assert not resources(templates, "AWS::KMS::Key")
    told = synthesize(
        alarm_mail="ops@example.org",
        notices_mail="ops@example.org,night@example.org",
        notices_https="https://hooks.example.org/a",
        notices_queue=QUEUE,
    )
    found = [one["Properties"] for one in resources(told, "AWS::SNS::Subscription")]
    assert sorted((one["Protocol"], one["Endpoint"]) for one in found) == [
        ("email", "night@example.org"),
        ("email", "ops@example.org"),
        ("https", "https://hooks.example.org/a"),
        ("sqs", QUEUE),
    ]
    assert "KmsMasterKeyId" in only(told, "AWS::SNS::Topic")
    key = only(told, "AWS::KMS::Key")
    assert key["EnableKeyRotation"]
    (statement,) = [s for s in key["KeyPolicy"]["Statement"] if "Service" in s["Principal"]]
    assert statement["Principal"]["Service"] == "cloudwatch.amazonaws.com"
    assert statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert statement["Condition"]["StringEquals"] == {
        "aws:SourceAccount": {"Ref": "AWS::AccountId"}
    }


def test_each_alarm_says_what_is_wrong_its_page_and_a_command_that_there_is(
    synthesize: Synthesize, templates: Templates
) -> None:
    with_feeds = synthesize(feed_workers_max="1", feed_take="true", feed_push="true")
    for alarm in [*alarms(templates), *alarms(with_feeds)]:
        told = NOTICE.fullmatch(alarm["AlarmDescription"])
        assert told is not None, alarm["AlarmDescription"]
        page = (ROOT / told["page"]).read_text("utf-8")
        assert page.startswith("# Alarm: "), told["page"]
        assert "**What it says.**" in page
        assert "**What you can do.**" in page or "## What to do" in page
        assert len(alarm["AlarmDescription"]) <= DESCRIPTION_CHARACTERS_MAX
        words = told["command"].split()
        if words[0] == "aws":
            assert words[1:3] == ["logs", "tail"]
            continue
        assert words[:3] == ["lakebed", "--at", "dev"]
        assert is_command(words[3:]), told["command"]


def is_command(words: list[str]) -> bool:
    """Whether words are a command of ours, with options and choices that it knows."""
    found: click.Command = program
    while isinstance(found, click.Group) and words:
        name, *words = words
        if name not in found.commands:
            return False
        found = found.commands[name]
    options = {option for param in found.params for option in param.opts}
    named = {word for word in words if word.startswith("--")}
    asks_for_one = isinstance(found, click.Group) and not found.invoke_without_command
    return not asks_for_one and named <= options


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alarm_mail": "ops"}, "alarm_mail"),
        ({"alarm_mail": "ops@example"}, "alarm_mail"),
        ({"alarm_mail": "a@example.org, b@example.org"}, "alarm_mail"),
        ({"alarm_topic_arn": "operators"}, "alarm_topic_arn"),
        ({"alarm_topic_arn": TOPIC.replace("sns", "sqs")}, "alarm_topic_arn"),
        ({"alarm_mail": "ops@example.org", "alarm_topic_arn": TOPIC}, "leave `alarm_mail` out"),
    ],
)
def test_who_is_told_is_refused_where_nothing_could_be_told(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidError, match=words):
        instance_settings(settings)


def test_each_alarm_of_errors_goes_off_where_every_run_fails(templates: Templates) -> None:
    apart = seconds_apart(templates)
    names = set()
    for alarm in alarms(templates):
        if alarm["Namespace"] != "AWS/Lambda":
            continue
        name = alarm["AlarmName"].removeprefix("lakebed-dev-").removesuffix("-errors")
        names.add(name)
        assert alarm["Statistic"] == "Sum"
        assert alarm["EvaluationPeriods"] == 1, "the arithmetic below is that of one window"
        runs = math.inf if name in CALLED else alarm["Period"] // apart[name]
        assert alarm["Threshold"] <= max(runs, 1), name
        assert name not in CALLED or alarm["Threshold"] == 1, name
    assert names | CALLED == set(apart) | CALLED, "each function has an alarm, and only functions"


def test_each_alarm_of_queues_and_events_can_reach_its_threshold(templates: Templates) -> None:
    queues = resources(templates, "AWS::SQS::Queue")
    kept = {queue["Properties"]["MessageRetentionPeriod"] for queue in queues}
    apart = seconds_apart(templates)
    for alarm in alarms(templates):
        assert alarm["EvaluationPeriods"] == 1
        assert alarm["Period"] % 60 == 0
        assert alarm["Period"] <= 86_400
        if alarm["MetricName"] == "ApproximateAgeOfOldestMessage":
            assert alarm["Threshold"] < min(kept)
        if alarm["Namespace"] == NAMESPACE and alarm["Statistic"] == "Sum":
            reporter = REPORTERS.get(alarm["MetricName"])
            reports = alarm["Period"] // apart[reporter] if reporter else 1
            assert alarm["Threshold"] <= reports, alarm["MetricName"]


def test_a_function_of_a_schedule_is_not_run_again_for_an_old_event(templates: Templates) -> None:
    for template in templates.values():
        rules = of_type(template, "AWS::Events::Rule").values()
        scheduled = {t["Arn"]["Fn::GetAtt"][0] for rule in rules for t in rule["Targets"]}
        configured = of_type(template, "AWS::Lambda::EventInvokeConfig").values()
        assert {config["FunctionName"]["Ref"] for config in configured} == scheduled
        for config in configured:
            assert config["MaximumRetryAttempts"] == 0
            assert config["MaximumEventAgeInSeconds"] == 60
