"""CloudFormation and IAM know everything that templates name, in every region that is looked at."""

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from lakebed.config.instance import IMPORTS_PREFIX
from tests.stacks.conftest import Templates
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.test_security import broken, statements_of

REGIONS = ["us-east-1", "eu-central-1", "ap-southeast-3"]
ACCEPTED = {
    "W3005": "CDK says twice that a function waits for its role",
}
"""Findings that stay, by their rule, each with its reason."""

Findings = list[tuple[str, str]]


def linted(template: dict[str, Any], regions: Sequence[str] = REGIONS) -> Findings:
    """Return rule and message of each finding of cfn-lint."""
    from cfnlint.api import ManualArgs, lint

    # CDK puts bundles' hashes into metadata, which no rule reads.
    found = lint(json.dumps(template), config=ManualArgs(regions=list(regions)))
    return [(match.rule.id, match.message) for match in found]


def unanswered(templates: Templates, regions: Sequence[str]) -> dict[str, Findings]:
    """Return the findings that are not accepted, by stack, where there are some."""
    found = {stack: linted(template, regions) for stack, template in templates.items()}
    rules = {rule for findings in found.values() for rule, _ in findings}
    assert set(ACCEPTED) <= rules, "an accepted finding that is gone needs no reason"
    left = {
        stack: [finding for finding in findings if finding[0] not in ACCEPTED]
        for stack, findings in found.items()
    }
    return {stack: findings for stack, findings in left.items() if findings}


@pytest.mark.timeout(600)
def test_cloudformation_takes_the_templates(with_everything: Templates) -> None:
    assert unanswered(with_everything, REGIONS[:1]) == {}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_cloudformation_takes_the_templates_in_several_regions(
    with_everything: Templates, in_own_network: Templates
) -> None:
    assert unanswered(with_everything, REGIONS[1:]) == {}
    assert unanswered(in_own_network, REGIONS) == {}


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("RetentionInDays", 31, "E3030"),
        ("LogGroupClas", "STANDARD", "E3002"),
        ("RetentionInDays", {"Ref": "Missing"}, "E1020"),
    ],
)
def test_what_cloudformation_would_refuse_is_found(
    templates: Templates, name: str, value: object, rule: str
) -> None:
    some = copy.deepcopy(templates["alarms"])
    some["Resources"]["Log"] = {"Type": "AWS::Logs::LogGroup", "Properties": {name: value}}
    assert rule in {found for found, _ in linted(some)}


def test_iam_knows_actions_resources_and_keys(
    templates: Templates, with_everything: Templates
) -> None:
    assert unknown_to_iam(templates) == []
    assert unknown_to_iam(with_everything) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"Action": "s3:WriteObject"}, "there is no action s3:WriteObject"),
        ({"Action": "s4:PutObject"}, "there is no action s4:PutObject"),
        ({"Action": "s3:ListBucket"}, "s3:ListBucket knows no resource like"),
        ({"Resource": "arn:aws:sqs:r:1:one"}, "s3:PutObject knows no resource like arn:aws:sqs"),
        (
            {"Condition": {"Null": {"s3:if-nonematch": "true"}}},
            "s3:PutObject knows no key s3:if-nonematch",
        ),
        (
            {"Condition": {"StringEquals": {"sqs:prefix": "x"}}},
            "s3:PutObject knows no key sqs:prefix",
        ),
    ],
)
def test_what_iam_does_not_know_is_found(
    templates: Templates, change: dict[str, object], says: str
) -> None:
    some = broken(
        templates,
        "AWS::S3::BucketPolicy",
        f"/{IMPORTS_PREFIX}/objects",
        lambda policy: [s.update(change) for s in statements_of(policy) if "Sid" in s],
    )
    found = unknown_to_iam(some)
    assert any(says in finding for finding in found), found
