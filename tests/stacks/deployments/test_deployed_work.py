"""The drawing of the deployment shows what the templates have, and who sends what to whom."""

from collections.abc import Iterator
from typing import Any

import pytest

from docs.deployed_work import ALWAYS, BUCKETS, IF_ASKED, TABLES, TASKS, DeployedWork
from lakebed.config.job_queues import ALL_QUEUES
from tests.stacks.conftest import Templates
from tests.stacks.deployment_summary import References

ALL = (*ALWAYS, *IF_ASKED)
NAMES = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::ECS::TaskDefinition": "Family",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
}
DEAD = "-dead"
STORES = ("dynamodb:", "s3:")


class Deployed:
    """What templates have, by the names of the drawing."""

    def __init__(self, templates: Templates) -> None:
        references = References(templates)
        self._resources = {
            (stack, "@" + references.name(stack, id_)): references.resolved(resource, stack)
            for stack, template in templates.items()
            for id_, resource in template["Resources"].items()
        }

    def of(self, type_: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the stack and the settings of each resource of a type."""
        for (stack, _), resource in self._resources.items():
            if resource["Type"] == type_:
                yield stack, resource["Properties"]

    def names(self, type_: str) -> set[str]:
        return {_short(properties[NAMES[type_]]) for _, properties in self.of(type_)}

    def named(self, stack: str, reference: str) -> str:
        """Return the name of what a setting refers to."""
        found = self._resources.get((stack, reference.removesuffix(".Arn")))
        name = found["Properties"][NAMES[found["Type"]]] if found else reference.rpartition(":")[2]
        return _short(name)

    def grants(self) -> Iterator[tuple[str, str, str, list[str]]]:
        """Yield name and stack of a function, with an action that it may do and on what."""
        for stack, function in self.of("AWS::Lambda::Function"):
            role = self._resources.get((stack, function["Role"].removesuffix(".Arn")), {})
            for policy in role.get("Properties", {}).get("Policies", []):
                for statement in policy["PolicyDocument"]["Statement"]:
                    for action in _listed(statement["Action"]):
                        name = _short(function["FunctionName"])
                        yield name, stack, action, _listed(statement["Resource"])


def _short(name: str) -> str:
    return name.removeprefix("lakebed-dev-").partition(".fifo")[0].partition("-{AccountId}")[0]


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def deployed(with_everything: Templates) -> Deployed:
    return Deployed(with_everything)


def functions(works: tuple[DeployedWork, ...]) -> set[str]:
    names = {work.name for work in works if not work.is_tasks}
    return names | {work.trigger for work in works if work.trigger}


def test_each_function_is_drawn(deployed: Deployed) -> None:
    assert functions(ALL) == deployed.names("AWS::Lambda::Function")


def test_what_needs_no_setting_is_drawn_apart(templates: Templates) -> None:
    assert functions(ALWAYS) == Deployed(templates).names("AWS::Lambda::Function")


def test_each_queue_is_drawn_with_who_takes_its_messages(deployed: Deployed) -> None:
    drawn = {work.queue: work.name for work in ALL if work.queue}
    queues = {name for name in deployed.names("AWS::SQS::Queue") if not name.endswith(DEAD)}
    assert set(drawn) == queues
    taken = {
        deployed.named(stack, source["EventSourceArn"]): deployed.named(
            stack, source["FunctionName"]
        )
        for stack, source in deployed.of("AWS::Lambda::EventSourceMapping")
    }
    by_functions = {queue: name for queue, name in drawn.items() if not name.endswith(TASKS)}
    assert by_functions == {queue: taken[queue] for queue in taken if queue in queues}


def test_queues_of_users_are_drawn_so(deployed: Deployed) -> None:
    drawn = {work.queue for work in ALL if work.queue and work.begins.startswith("users")}
    assert drawn == {shape.kind for shape in ALL_QUEUES if shape.from_users}


def test_who_sends_to_a_queue_is_drawn(deployed: Deployed) -> None:
    drawn = {(work.name, queue) for work in ALL for queue in work.sends}
    drawn |= {(work.trigger, work.queue) for work in ALL if work.trigger and not work.is_tasks}
    assert drawn == {
        (name, queue)
        for name, stack, action, resources in deployed.grants()
        if action == "sqs:SendMessage"
        for resource in resources
        if not (queue := deployed.named(stack, resource)).endswith(DEAD)
    }


def test_tasks_are_drawn_with_who_starts_them(deployed: Deployed) -> None:
    drawn = {work.name.removesuffix(TASKS): work.trigger for work in ALL if work.is_tasks}
    assert set(drawn) == deployed.names("AWS::ECS::TaskDefinition")
    assert drawn == {
        deployed.named(stack, resource): name
        for name, stack, action, resources in deployed.grants()
        if action == "ecs:RunTask"
        for resource in resources
    }


def test_schedules_are_drawn(deployed: Deployed) -> None:
    drawn = {work.trigger or work.name: work.schedule for work in ALL if work.schedule}
    found = {}
    for stack, rule in deployed.of("AWS::Events::Rule"):
        if "ScheduleExpression" in rule:
            often = rule["ScheduleExpression"].removeprefix("rate(").removesuffix(")")
            function = deployed.named(stack, rule["Targets"][0]["Arn"])
            found[function] = f"each {often.removeprefix('1 ')}"
    assert drawn == found


def test_stores_are_drawn_with_who_has_them(deployed: Deployed) -> None:
    assert set(TABLES) == deployed.names("AWS::DynamoDB::Table")
    assert set(BUCKETS) == deployed.names("AWS::S3::Bucket")
    with_stores = {name for name, _, action, _ in deployed.grants() if action.startswith(STORES)}
    drawn = {work.name for work in ALL if work.has_stores and not work.is_tasks}
    assert drawn == with_stores - {work.trigger for work in ALL}
