"""An instance that keeps what became of jobs has a stack for it; one that does not has none."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakebed.config.environments import HistoryEnvironment, variables_named
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.test_checks import reports
from tests.stacks.test_functions import REPORTED
from tests.stacks.test_templates import resources


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def kept(synthesize: Synthesize, assembly: Path) -> Templates:
    return synthesize(assembly, history_days="90")


def only(templates: Templates, type_: str) -> dict[str, Any]:
    (resource,) = resources({"history": templates["history"]}, type_)
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_the_function_is_told_what_it_reads_and_a_schedule_runs_it(kept: Templates) -> None:
    function = only(kept, "AWS::Lambda::Function")
    assert function["FunctionName"] == "lakebed-dev-history-handle"
    assert function["Handler"] == "lambdas.history.handle.handler"
    variables = function["Environment"]["Variables"]
    assert set(variables) == variables_named(HistoryEnvironment) | REPORTED
    assert variables["LAKEBED_HISTORY_DAYS"] == "90"
    rule = only(kept, "AWS::Events::Rule")
    assert (rule["Name"], rule["ScheduleExpression"]) == ("lakebed-dev-history", "rate(6 hours)")


def test_the_role_may_do_what_keeping_takes_and_nothing_of_users_rows(kept: Templates) -> None:
    (policy,) = only(kept, "AWS::IAM::Role")["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    actions = {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert actions == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "s3:AbortMultipartUpload",
        "dynamodb:BatchWriteItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
    }
    assert "/index/by_state" in json.dumps(statements)
    usage = [one for one in statements if "usage#*" in json.dumps(one)]
    assert any("dynamodb:Query" in one["Action"] for one in usage)
    assert unknown_to_iam(kept) == []


def test_nothing_is_found_that_nobody_has_answered_for(kept: Templates, assembly: Path) -> None:
    assert kept
    told = [found for report in reports(assembly).values() for found in report["violations"]]
    assert [found["ruleName"] for found in told] == ["Annotation::lakebed:alarms-unheard"]


def test_history_changes_no_other_stack_and_is_not_there_by_default(
    kept: Templates, templates: Templates
) -> None:
    assert set(kept) - set(templates) == {"history"}
    changed = [n for n in templates if kept[n]["Resources"] != templates[n]["Resources"]]
    assert changed == ["address"], "it lists the stacks that there are"
