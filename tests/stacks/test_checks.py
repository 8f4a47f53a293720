"""cdk-nag finds nothing that nobody has answered for, and would find it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.conftest import CONTEXT, HERE, IN_PLACE, Synthesize

ACKNOWLEDGED_MAX = 10


def reports(folder: Path) -> dict[str, Any]:
    report = json.loads((folder / "validation-report.json").read_text("utf-8"))
    return {one["pluginName"]: one for one in report["pluginReports"]}


def test_each_finding_that_is_accepted_has_its_reason(
    synthesize: Synthesize, tmp_path: Path
) -> None:
    synthesize(tmp_path)
    found = reports(tmp_path)
    told = [v for report in found.values() for v in report["violations"]]
    assert [v["ruleName"] for v in told] == ["Annotation::lakebed:alarms-unheard"]
    assert told[0]["severity"] == "warning"
    accepted = [v for report in found.values() for v in report.get("suppressedViolations", [])]
    rules = {v["ruleName"] for v in accepted}
    rules = {rule.partition("[")[0] for rule in rules}
    on_machine = {"AwsSolutions-L1", "Serverless-LambdaLatestVersion"}
    assert rules - on_machine == {
        "AwsSolutions-ECS2",
        "AwsSolutions-S1",
        "AwsSolutions-IAM5",
        "Serverless-EventBusDLQ",
        "Serverless-LambdaAsyncFailureDestination",
        "Serverless-LambdaDLQ",
        "Serverless-LambdaEventSourceMappingDestination",
        "Serverless-LambdaStarPermissions",
        "Serverless-LambdaTracing",
        "Serverless-SQSRedrivePolicy",
    }
    assert len(rules - on_machine) <= ACKNOWLEDGED_MAX
    assert all(len(v["reason"].split()) > 5 for v in accepted)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("queue that answers without TLS", "AwsSolutions-SQS4"),
        ("function without a place for failures", "Serverless-LambdaDLQ"),
    ],
)
def test_what_is_too_generous_stops_the_synthesis(kind: str, rule: str, tmp_path: Path) -> None:
    from aws_cdk import Stack
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from stacks.instance import instance_app

    context = {**CONTEXT, **HERE, **IN_PLACE, "instance": "dev"}
    app = instance_app(context, outdir=str(tmp_path))
    stack = Stack(app, "Careless")
    if "queue" in kind:
        sqs.Queue(stack, "Queue")
    else:
        lambda_.Function(
            stack,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_12,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): pass"),
        )
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    found = reports(tmp_path)
    assert rule in {v["ruleName"] for report in found.values() for v in report["violations"]}
