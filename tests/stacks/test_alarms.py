"""Who is told of alarms, and what each of them says."""

import re
from typing import Any

import click
import pytest

from lakebed.cli.main import program
from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError
from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.test_templates import only, resources

TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:notices"
NOTICE = re.compile(r"[^`]+; run `(?P<command>[^`]+)`: see (?P<page>docs/operate/[a-z-]+\.md)")
DESCRIPTION_CHARACTERS_MAX = 1_024
"""What CloudWatch takes."""
Alarm = dict[str, Any]


def alarms(templates: Templates) -> list[Alarm]:
    return [alarm["Properties"] for alarm in resources(templates, "AWS::CloudWatch::Alarm")]


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
    templates: Templates, with_everything: Templates
) -> None:
    for alarm in [*alarms(templates), *alarms(with_everything)]:
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
