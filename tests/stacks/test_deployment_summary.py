"""The summary of a deployment shows a change in one line; its digests show the others."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.stacks.conftest import Templates
from tests.stacks.deployment_summary import deployment_summary
from tests.stacks.normalised_templates import digest, of_any_machine

EXPORT = "dev-state:ExportsOutputRefLog"
TABLE = {
    "state": {
        "Resources": {
            "Log95422804": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {
                    "TableName": "dev-log",
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                },
                "DeletionPolicy": "Retain",
            }
        },
        "Outputs": {"Out": {"Value": {"Ref": "Log95422804"}, "Export": {"Name": EXPORT}}},
    }
}
ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "lambda.amazonaws.com"},
                    "Action": "sts:AssumeRole",
                }
            ]
        },
        "Policies": [
            {
                "PolicyDocument": {
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": ["s3:PutObject", "s3:GetObject"],
                            "Resource": [
                                {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::b"]]},
                                {"Fn::GetAtt": ["JobsQueue24944186", "Arn"]},
                            ],
                            "Condition": {"StringLike": {"s3:prefix": ["a/*", "b/*"]}},
                        }
                    ]
                }
            }
        ],
    },
}
ALARM = {
    "Type": "AWS::CloudWatch::Alarm",
    "Properties": {
        "AlarmName": "dev-age",
        "AlarmDescription": "a job waits: see docs/age.md",
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "Dimensions": [
            {"Name": "QueueName", "Value": {"Fn::GetAtt": ["JobsQueue24944186", "QueueName"]}},
            {"Name": "instance", "Value": "dev"},
        ],
        "EvaluationPeriods": 3,
        "MetricName": "Age",
        "Namespace": "AWS/SQS",
        "Period": 300,
        "Statistic": "Maximum",
        "Threshold": 60,
        "TreatMissingData": "notBreaching",
    },
}
FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "DependsOn": ["WorkRole12898676"],
    "Properties": {
        "FunctionName": "dev-work",
        "Architectures": ["arm64"],
        "Code": {"S3Key": "of this machine"},
        "Runtime": "python3.12",
        "Handler": "work.handler",
        "MemorySize": 512,
        "Timeout": 60,
        "Environment": {"Variables": {"LOG_TABLE": {"Fn::ImportValue": EXPORT}}},
        "Tags": [{"Key": "instance", "Value": "dev"}],
    },
}
PERMISSION = {
    "Type": "AWS::Lambda::Permission",
    "Properties": {
        "Action": "lambda:InvokeFunction",
        "FunctionName": {"Ref": "Work39EB27CF"},
        "Principal": "events.amazonaws.com",
        "SourceArn": {"Fn::GetAtt": ["Every9BF8859A", "Arn"]},
    },
}
SCHEDULE = {
    "Type": "AWS::Events::Rule",
    "Properties": {
        "Name": "dev-every",
        "ScheduleExpression": "rate(5 minutes)",
        "State": "ENABLED",
        "Targets": [{"Id": "Target0", "Arn": {"Ref": "Work39EB27CF"}}],
    },
}
SOURCE = {
    "Type": "AWS::Lambda::EventSourceMapping",
    "Properties": {
        "BatchSize": 10,
        "EventSourceArn": {"Fn::GetAtt": ["JobsQueue24944186", "Arn"]},
        "FunctionName": {"Ref": "Work39EB27CF"},
        "ScalingConfig": {"MaximumConcurrency": 20},
    },
}
QUEUE = {
    "Type": "AWS::SQS::Queue",
    "Properties": {
        "QueueName": "dev.fifo",
        "MessageRetentionPeriod": 60,
        "RedrivePolicy": {"maxReceiveCount": 5},
        "SqsManagedSseEnabled": True,
    },
}
WORK = {
    "work": {
        "Resources": {
            "AgeAlarm92786B1C": ALARM,
            "Every9BF8859A": SCHEDULE,
            "EveryAllowBB274A31": PERMISSION,
            "JobsQueue24944186": QUEUE,
            "WorkRole12898676": ROLE,
            "WorkSource675FE46E": SOURCE,
            "Work39EB27CF": FUNCTION,
        }
    }
}

SHOWN = """\
work AgeAlarm CloudWatch::Alarm #92786B1C dev-age: AWS/SQS Age of \
QueueName=@JobsQueue.QueueName instance=dev, Maximum >= 60 in 3 x 300 s, \
without data notBreaching, "a job waits: see docs/age.md"
work Every Events::Rule #9BF8859A dev-every: rate(5 minutes), ENABLED; \
Targets: Arn=@Work, Id=Target0
work EveryAllow Lambda::Permission #BB274A31; allow Service=events.amazonaws.com \
lambda:InvokeFunction on @Work if ArnLike aws:SourceArn @Every.Arn
work JobsQueue SQS::Queue #24944186 dev.fifo: kept for 60 s, RedrivePolicy.maxReceiveCount=5, \
SqsManagedSseEnabled=true
work Work Lambda::Function #39EB27CF dev-work: 512 MiB, 60 s, work.handler
work Work env LOG_TABLE=@state/Log
work WorkRole IAM::Role #12898676; allow Service=lambda.amazonaws.com sts:AssumeRole
work WorkRole allow s3:GetObject, s3:PutObject on @JobsQueue.Arn, arn:{Partition}:s3:::b \
if StringLike s3:prefix a/* or b/*
work WorkSource Lambda::EventSourceMapping #675FE46E from @JobsQueue.Arn to @Work: \
10 messages at once, 20 runs at once
"""


def deployed() -> Templates:
    """Return templates of two stacks as this machine makes them."""
    return copy.deepcopy({**TABLE, **WORK})


def lines(templates: Templates) -> list[str]:
    return deployment_summary(of_any_machine(templates)).splitlines()


def properties(templates: Templates, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = templates["work"]["Resources"][id_]["Properties"]
    return found


def statement(templates: Templates) -> dict[str, Any]:
    (policy,) = properties(templates, "WorkRole12898676")["Policies"]
    found: dict[str, Any] = policy["PolicyDocument"]["Statement"][0]
    return found


def test_a_summary_has_a_line_for_each_thing() -> None:
    assert [line for line in lines(deployed()) if line.startswith("work ")] == [
        f"work digest {digest(of_any_machine(deployed())['work'])}",
        *SHOWN.splitlines(),
    ]
    state = [line for line in lines(deployed()) if line.startswith("state ")]
    assert state[1:] == [
        (
            "state Log DynamoDB::Table #95422804 DeletionPolicy=Retain, TableName=dev-log; "
            "KeySchema: AttributeName=pk, KeyType=HASH"
        )
    ]


def widen_a_grant(templates: Templates) -> None:
    statement(templates)["Resource"].append("*")


def drop_a_condition(templates: Templates) -> None:
    del properties(templates, "EveryAllowBB274A31")["SourceArn"]


def drop_a_dimension(templates: Templates) -> None:
    del properties(templates, "AgeAlarm92786B1C")["Dimensions"][0]


def change_a_schedule(templates: Templates) -> None:
    properties(templates, "Every9BF8859A")["ScheduleExpression"] = "rate(1 hour)"


def drop_encryption(templates: Templates) -> None:
    del properties(templates, "JobsQueue24944186")["SqsManagedSseEnabled"]


def change_a_timeout(templates: Templates) -> None:
    properties(templates, "Work39EB27CF")["Timeout"] = 900


def add_a_variable(templates: Templates) -> None:
    properties(templates, "Work39EB27CF")["Environment"]["Variables"]["MODE"] = "fast"


def add_a_grant(templates: Templates) -> None:
    (policy,) = properties(templates, "WorkRole12898676")["Policies"]
    grant = {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": "*"}
    policy["PolicyDocument"]["Statement"].append(grant)


def trust_another(templates: Templates) -> None:
    trust = properties(templates, "WorkRole12898676")["AssumeRolePolicyDocument"]
    trust["Statement"][0]["Principal"] = {"AWS": "*"}


def grant_all_but(templates: Templates) -> None:
    properties(templates, "EveryAllowBB274A31")["PrincipalOrgID"] = "o-1"


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (
            widen_a_grant,
            "work WorkRole allow s3:GetObject, s3:PutObject on *, @JobsQueue.Arn, arn:",
        ),
        (
            drop_a_condition,
            "#BB274A31; allow Service=events.amazonaws.com lambda:InvokeFunction on @Work",
        ),
        (add_a_grant, "work WorkRole allow s3:DeleteObject on *"),
        (trust_another, "work WorkRole IAM::Role #12898676; allow AWS=* sts:AssumeRole"),
        (drop_a_dimension, "AWS/SQS Age of instance=dev, Maximum >= 60"),
        (change_a_schedule, "dev-every: rate(1 hour), ENABLED"),
        (drop_encryption, "dev.fifo: kept for 60 s, RedrivePolicy.maxReceiveCount=5"),
        (change_a_timeout, "dev-work: 512 MiB, 900 s"),
        (add_a_variable, "work Work env LOG_TABLE=@state/Log, MODE=fast"),
        (grant_all_but, "work EveryAllow Lambda::Permission #BB274A31 PrincipalOrgID=o-1"),
    ],
)
def test_a_change_is_one_line_and_a_digest(change: Callable[[Templates], None], shown: str) -> None:
    changed = deployed()
    change(changed)
    line, hashed = sorted(
        set(lines(changed)) - set(lines(deployed())), key=lambda line: line.startswith("work dig")
    )
    assert shown in line
    assert hashed.startswith("work digest ")


@pytest.mark.parametrize("name", ["Tags", "DependsOn"])
def test_what_no_line_shows_changes_the_digest(name: str) -> None:
    changed = deployed()
    function = changed["work"]["Resources"]["Work39EB27CF"]
    (function["Properties"] if name == "Tags" else function).pop(name)
    (hashed,) = set(lines(changed)) - set(lines(deployed()))
    assert hashed.startswith("work digest ")


def test_statements_that_differ_in_their_resources_are_one_line() -> None:
    apart = deployed()
    (policy,) = properties(apart, "WorkRole12898676")["Policies"]
    (both,) = policy["PolicyDocument"]["Statement"]
    policy["PolicyDocument"]["Statement"] = [
        {**both, "Resource": resource} for resource in both["Resource"]
    ]
    together = [line for line in lines(deployed()) if "digest" not in line]
    assert [line for line in lines(apart) if "digest" not in line] == together


def test_a_role_of_two_trusts_shows_both() -> None:
    other = deployed()
    trust = properties(other, "WorkRole12898676")["AssumeRolePolicyDocument"]
    trust["Statement"].append({**trust["Statement"][0], "Principal": {"AWS": "root"}})
    (line,) = [line for line in lines(other) if "IAM::Role" in line]
    assert line.endswith(
        "; allow Service=lambda.amazonaws.com sts:AssumeRole; allow AWS=root sts:AssumeRole"
    )


def test_machines_and_commits_do_not_change_a_summary() -> None:
    other = deployed()
    function = properties(other, "Work39EB27CF")
    function["Code"]["S3Key"] = f"{'0' * 64}.zip"
    function["Architectures"], function["Runtime"] = ["x86_64"], "python3.13"
    statement(other)["Resource"].reverse()
    assert lines(other) == lines(deployed())


def test_resources_that_differ_in_their_hash_keep_it() -> None:
    twins = deployed()
    twins["work"]["Resources"]["JobsQueue00000000"] = copy.deepcopy(QUEUE)
    shown = [line.split()[1] for line in lines(twins) if "SQS::Queue" in line]
    assert shown == ["JobsQueue00000000", "JobsQueue24944186"]
