"""Policies for people are exact, small enough, and held by roles only where somebody is named."""

import json
import re
from typing import Any

import pytest

from lakebed.config.people.role_settings import PERSON_ROLES
from lakebed.config.people.table_access import TablePatterns
from lakebed.model.names import FileName, TableId, TransactionNumber
from lakebed.model.paths import entry_path, file_path, snapshot_path
from stacks.outside.people import EVERY_TABLE
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_functions import by_action
from tests.stacks.test_security import KEY
from tests.stacks.test_templates import resources

ANN, BOB = (f"arn:aws:iam::123456789012:user/{name}" for name in ("ann", "bob"))
POLICY_CHARACTERS_MAX = 6_144
"""Of a managed policy, without spaces."""
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "ap-southeast-2", "AWS::AccountId": "1" * 12}
EVERYWHERE = {
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "ec2:DescribeVpcs",
    "lambda:GetAccountSettings",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
}
"""Actions that are on no resource, or that list; all of them only look."""

Document = dict[str, Any]


@pytest.fixture(scope="module")
def largest(synthesize: Synthesize) -> Templates:
    """Everything that makes policies long: a name of 16 letters, a key, direct readers."""
    return synthesize(
        instance="a" * 16, key_arn=KEY, people_direct="true", people_reader=f"{ANN},{BOB}"
    )


def documents(templates: Templates) -> dict[str, Document]:
    """Policies by the role's name, with expressions worked out."""
    found = {}
    for resource in resources(templates, "AWS::IAM::ManagedPolicy"):
        properties = resource["Properties"]
        name = properties["ManagedPolicyName"].rpartition("-")[2]
        found[name] = worked_out(properties["PolicyDocument"])
    return found


def worked_out(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [worked_out(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return PSEUDO[value["Ref"]]
    if "Fn::Join" in value:
        return "".join(map(worked_out, value["Fn::Join"][1]))
    return {name: worked_out(one) for name, one in value.items()}


def actions(document: Document) -> set[str]:
    return set(by_action(document["Statement"]))


def test_there_is_a_policy_for_each_role_and_roles_for_those_who_are_named(
    templates: Templates, largest: Templates
) -> None:
    for some in (templates, largest):
        assert set(documents(some)) == set(PERSON_ROLES)
    assert not resources({"people": templates["people"]}, "AWS::IAM::Role")
    (role,) = resources({"people": largest["people"]}, "AWS::IAM::Role")
    properties = role["Properties"]
    assert properties["RoleName"] == f"lakebed-{'a' * 16}-reader"
    assert properties["ManagedPolicyArns"] == [{"Ref": "ReaderPolicy1F923C0F"}]
    (trust,) = properties["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": [ANN, BOB]}


def test_policies_fit_and_name_actions_and_resources_of_this_instance(largest: Templates) -> None:
    for role, document in documents(largest).items():
        text = json.dumps(document, separators=(",", ":"))
        assert len(text) < POLICY_CHARACTERS_MAX, role
        names = [statement["Sid"] for statement in document["Statement"]]
        assert len(set(names)) == len(names), role
        for statement in document["Statement"]:
            assert statement["Effect"] == "Allow"
            told = statement["Action"]
            named = statement["Resource"]
            for action in told if isinstance(told, list) else [told]:
                assert "*" not in action
                assert named != "*" or action in EVERYWHERE
            for arn in named if isinstance(named, list) else [named]:
                ours = f"(lakebed-{'a' * 16}-|/lakebed/{'a' * 16}$)"
                assert arn in ("*", KEY) or re.search(ours, arn), arn


def test_who_reads_no_rows_is_given_no_files(templates: Templates, largest: Templates) -> None:
    rows = {
        (which, role): [
            arn
            for statement in by_action(document["Statement"]).get("s3:GetObject", [])
            for arn in [statement["Resource"]]
            if re.search(r"files/\*|lake/\*", json.dumps(arn))
        ]
        for which, some in (("default", templates), ("direct", largest))
        for role, document in documents(some).items()
    }
    readers = {key for key, found in rows.items() if found}
    assert readers == {
        ("direct", "reader"),
        *((which, role) for which in ("default", "direct") for role in ("writer", "admin")),
    }


def test_only_an_admin_deletes_and_nobody_changes_what_is_deployed(largest: Templates) -> None:
    found = documents(largest)
    for role, document in found.items():
        deletes = {action for action in actions(document) if ":Delete" in action}
        assert deletes <= {"sqs:DeleteMessage"} or role == "admin", role
        changed = r"(iam|sts|kms:(Put|Create|Schedule)|s3:PutBucket|sqs:(Create|Set|Purge)|:Scan)"
        assert not [action for action in actions(document) if re.search(changed, action)], role
    assert actions(found["sender"]) == {
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "sqs:GetQueueUrl",
        "sqs:SendMessage",
    }


def test_patterns_of_all_tables_are_those_that_objects_have() -> None:
    table = TableId("0" * 32)
    of_one = TablePatterns(
        id="*",
        files=file_path(table, FileName(bytes(16))),
        snapshots=snapshot_path(table, TransactionNumber(1), bytes(16)),
        bodies=entry_path(table, TransactionNumber(1), "0" * 32),
    )
    for name in ("files", "snapshots", "bodies"):
        pattern = getattr(EVERY_TABLE, name).replace("*", ".*")
        assert re.fullmatch(pattern, getattr(of_one, name)), name
