"""Policies for people are exact, small enough, and held by roles only where somebody is named."""

import json
import re
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.people.role_settings import PERSON_ROLES
from lakebed.config.people.table_access import TablePatterns
from lakebed.model.names import FileName, TableId, TransactionNumber
from lakebed.model.paths import entry_path, file_path, snapshot_path
from stacks.outside.operator_permissions import UNNAMED
from stacks.outside.people import EVERY_TABLE, PeopleStack
from tests.stacks.conftest import CONTEXT, ROOT, Templates
from tests.stacks.test_functions import by_action
from tests.stacks.test_security import KEY, SOURCES
from tests.stacks.test_templates import resources

ANN, BOB = (f"arn:aws:iam::123456789012:user/{name}" for name in ("ann", "bob"))
POLICY_CHARACTERS_MAX = 6_144
"""Of a managed policy, without spaces."""
DOCTOR = (ROOT / "docs/operate/doctor.md").read_text("utf-8")
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "ap-southeast-2", "AWS::AccountId": "1" * 12}
EVERYWHERE = {
    "ce:GetCostAndUsage",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "ecs:ListTasks",
    *UNNAMED,
}
"""Actions that are on no resource, or that list; all of them only look."""
OTHERS = (
    r"arn:aws:lambda:[^:]+:1+:event-source-mapping:\*",
    r"arn:aws:ecr:[^:]+:1+:repository/cdk-\*-container-assets-1+-[^:]+",
    r"arn:aws:s3:::(landing|more)(/.*)?",
    r"arn:aws:ssm:[^:]+:1+:parameter/lakebed/",
)
"""What people look at, or turn on, that is not named for the instance."""
SHARED_BY = {"parts": {"operator", "admin"}, "sources": {"writer", "admin"}}

Document = dict[str, Any]


@pytest.fixture(scope="module")
def templates() -> Templates:
    return people(instance="dev")


@pytest.fixture(scope="module")
def largest() -> Templates:
    """Everything that makes policies long: a name of 16 letters, a key, direct readers."""
    everybody = {f"people_{role}": f"{ANN},{BOB}" for role in PERSON_ROLES}
    return people(
        instance="a" * 16, key_arn=KEY, people_direct="true", sources=SOURCES, **everybody
    )


def people(**context: str) -> Templates:
    """Return the template of the only stack that makes these: it needs no other."""
    stack = PeopleStack(App(context=CONTEXT), "People", deployment=deployment_of(context))
    return {"people": Template.from_stack(stack).to_json()}


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
    assert set(documents(templates)) == {*PERSON_ROLES, "parts"}, "no places of sources are set"
    assert set(documents(largest)) == {*PERSON_ROLES, *SHARED_BY}
    assert not resources({"people": templates["people"]}, "AWS::IAM::Role")
    found = {}
    for role in resources({"people": largest["people"]}, "AWS::IAM::Role"):
        properties = role["Properties"]
        name = properties["RoleName"].removeprefix(f"lakebed-{'a' * 16}-")
        found[name] = {one["Ref"][: -len("Policy") - 8] for one in properties["ManagedPolicyArns"]}
        (trust,) = properties["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"AWS": [ANN, BOB]}
    assert found == {
        role: {
            role.capitalize(),
            *(part.capitalize() for part, roles in SHARED_BY.items() if role in roles),
        }
        for role in PERSON_ROLES
    }


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
                known = any(re.fullmatch(other, arn) for other in OTHERS)
                assert known or arn in ("*", KEY) or re.search(ours, arn), arn


def test_who_reads_no_rows_is_given_no_files(templates: Templates, largest: Templates) -> None:
    rows = {
        (which, role): [
            arn
            for statement in by_action(document["Statement"]).get("s3:GetObject", [])
            for arn in [statement["Resource"]]
            if re.search(r"tables/\*/files/\*|lake/\*", json.dumps(arn))
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
        changed = (
            r"(iam:(?!PassRole)|sts|kms:(Put|Create|Schedule)|s3:PutBucket|sqs:(Create|Set|Purge)"
            r"|:Scan|dynamodb:Update(Table|Cont))"
        )
        assert not [action for action in actions(document) if re.search(changed, action)], role
    assert actions(found["sender"]) == {
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "sqs:GetQueueUrl",
        "sqs:SendMessage",
    }


def test_tasks_are_started_in_the_instances_cluster_with_what_ecs_may_be_given(
    templates: Templates,
) -> None:
    found = by_action(documents(templates)["parts"]["Statement"])
    (run,), (count,) = found["ecs:RunTask"], found["ecs:ListTasks"]
    cluster = "arn:aws:ecs:ap-southeast-2:111111111111:cluster/lakebed-dev-tasks"
    for statement in (run, count):
        assert statement["Condition"] == {"ArnEquals": {"ecs:cluster": cluster}}
    definitions = "arn:aws:ecs:ap-southeast-2:111111111111:task-definition/lakebed-dev"
    assert run["Resource"] == [f"{definitions}-compaction:*", f"{definitions}-ingest:*"]
    (role,) = found["iam:PassRole"]
    assert role["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    without = documents(
        people(instance="dev", without="ingest,batching,networking", compaction_tasks_max="0")
    )
    assert "ecs:RunTask" not in actions(without["parts"])
    assert "batches" not in json.dumps([without[role] for role in PERSON_ROLES])


def test_parts_have_all_that_the_doctors_page_lists(largest: Templates) -> None:
    first, fixes = json.loads(re.findall(r"```json\n(.+?)```", DOCTOR, re.DOTALL)[0])["Statement"]
    found = documents(largest)
    anybody = {"sts:GetCallerIdentity"}
    for role in ("operator", "admin"):
        missing = set(first["Action"]) - actions(found[role]) - actions(found["parts"]) - anybody
        assert not missing, role
    protections = {
        "dynamodb:UpdateContinuousBackups",
        "dynamodb:UpdateTable",
        "s3:PutBucketVersioning",
    }
    assert set(fixes["Action"]) - actions(found["admin"]) == protections


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
