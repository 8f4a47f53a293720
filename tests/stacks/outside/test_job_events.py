"""Ends of jobs are published by one function, which may do that, and read its stream: no more."""

import json
from typing import Any

import pytest

from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_functions import by_action
from tests.stacks.test_templates import only, resources


@pytest.fixture(scope="module")
def told(synthesize: Synthesize) -> Templates:
    return synthesize(job_events="true")


def test_the_setting_brings_a_stack_and_changes_no_other(
    told: Templates, templates: Templates
) -> None:
    assert set(told) - set(templates) == {"events"}
    changed = {name for name in templates if told[name] != templates[name]}
    assert changed == {"address"}, "it lists the stacks that there are"


def test_the_stream_is_exported_with_and_without_a_reader(
    told: Templates, templates: Templates
) -> None:
    for some in (told, templates):
        exported = [
            output["Export"]["Name"]
            for output in some["state"]["Outputs"].values()
            if output["Value"].get("Fn::GetAtt", ["", ""])[1] == "StreamArn"
        ]
        assert len(exported) == 1


def test_the_function_is_called_for_ends_of_jobs_only(told: Templates) -> None:
    source = only({"events": told["events"]}, "AWS::Lambda::EventSourceMapping")
    assert source["StartingPosition"] == "LATEST"
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    (criterion,) = source["FilterCriteria"]["Filters"]
    assert json.loads(criterion["Pattern"]) == {
        "eventName": ["INSERT", "MODIFY"],
        "dynamodb": {
            "Keys": {"pk": {"S": [{"prefix": "job#"}]}, "sk": {"S": ["newest"]}},
            "NewImage": {
                "listed": {
                    "S": [
                        {"suffix": f"#{event}"}
                        for event in ("committed", "rejected", "finished", "failed")
                    ]
                }
            },
        },
    }


def test_the_function_publishes_as_lakebed_and_reads_no_items_but_names(told: Templates) -> None:
    (role,) = resources({"events": told["events"]}, "AWS::IAM::Role")
    (policy,) = role["Properties"]["Policies"]
    found: dict[str, list[dict[str, Any]]] = by_action(policy["PolicyDocument"]["Statement"])
    assert set(found) == {
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "events:PutEvents",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    }
    (put,) = found["events:PutEvents"]
    assert put["Condition"] == {"StringEquals": {"events:source": "lakebed.job"}}
    assert json.dumps(put["Resource"]).endswith(':event-bus/default"]]}')
    (query,) = found["dynamodb:Query"]
    keys = query["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    assert keys in ("names", ["names"])
    (reported,) = found["dynamodb:PutItem"]
    assert "process#*" in json.dumps(reported["Condition"])
