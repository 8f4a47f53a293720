"""What is asked of ECS for a task, and what its answers mean. botocore checks both against the
service's model."""

from collections.abc import Iterator

import msgspec
import pytest
from botocore.stub import ANY, Stubber

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.task_runner import EcsTask, EcsTaskRunner
from lakebed.errors import UnavailableError
from lakebed.model.names import Micros
from tests.unit.backends.amazon_clients import made_up_clients

CLUSTER = "arn:aws:ecs:eu-central-1:123456789012:cluster/lakebed-dev-tasks"
FAMILY = "lakebed-dev-compaction"
TASK = EcsTask(
    cluster=CLUSTER,
    task_definition=f"arn:aws:ecs:eu-central-1:123456789012:task-definition/{FAMILY}:3",
    subnets=("subnet-0a1b2c3d",),
    security_group="sg-0a1b2c3d",
    public_address="ENABLED",
)
ON_DEMAND = {"launchType": "FARGATE"}
SPOT = {"capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=1) as made:
        yield made


@pytest.fixture
def ecs(clients: AmazonClients) -> Iterator[Stubber]:
    with Stubber(clients.ecs) as stub:
        yield stub
        stub.assert_no_pending_responses()


def runs(ecs: Stubber, capacity: dict[str, object], *failures: dict[str, str]) -> None:
    """Expect that one task is asked for, on some capacity."""
    asked = {
        "cluster": CLUSTER,
        "taskDefinition": TASK.task_definition,
        "clientToken": ANY,
        "propagateTags": "TASK_DEFINITION",
        "networkConfiguration": ANY,
        **capacity,
    }
    ecs.add_response("run_task", {"tasks": [], "failures": list(failures)}, asked)


def test_a_task_is_asked_for_on_demand_or_on_spot_capacity(
    clients: AmazonClients, ecs: Stubber
) -> None:
    runner = EcsTaskRunner(clients, TASK)
    runs(ecs, ON_DEMAND)
    runner.start("one")
    runs(ecs, SPOT)
    runner.start("two", spot=True)


def test_a_task_on_machines_has_their_addresses(clients: AmazonClients, ecs: Stubber) -> None:
    provider = {"capacityProvider": "lakebed-dev-machines", "weight": 1}
    asked = {
        "cluster": CLUSTER,
        "taskDefinition": TASK.task_definition,
        "clientToken": ANY,
        "propagateTags": "TASK_DEFINITION",
        "capacityProviderStrategy": [provider],
        "placementStrategy": [{"type": "binpack", "field": "memory"}],
    }
    ecs.add_response("run_task", {"tasks": [], "failures": []}, asked)
    on_machines = msgspec.structs.replace(TASK, capacity_provider="lakebed-dev-machines")
    EcsTaskRunner(clients, on_machines).start("one")


def test_capacity_that_is_not_there_is_told(clients: AmazonClients, ecs: Stubber) -> None:
    runs(ecs, SPOT, {"reason": "Capacity is unavailable at this time."})
    with pytest.raises(UnavailableError, match=r"a task was not started.*Capacity is unavailable"):
        EcsTaskRunner(clients, TASK).start("one", spot=True)


@pytest.mark.parametrize(
    ("code", "reason", "failures"),
    [
        ("SpotInterruption", "Your Spot Task was interrupted.", 0),
        ("TerminationNotice", "a machine is retired", 0),
        ("InfrastructureHealth", "a machine broke down", 0),
        ("UserInitiated", "Task stopped by user", 0),
        ("EssentialContainerExited", "Essential container in task exited", 1),
        ("TaskFailedToStart", "Capacity is unavailable at this time.", 1),
    ],
)
def test_a_task_whose_machine_is_taken_back_has_not_failed(
    clients: AmazonClients, ecs: Stubber, code: str, reason: str, failures: int
) -> None:
    task = {
        "taskArn": "arn:task",
        "stopCode": code,
        "stoppedReason": reason,
        "stoppedAt": 10,
        "containers": [{"name": "compaction", "exitCode": 137}],
    }
    ecs.add_response("list_tasks", {"taskArns": ["arn:task"]})
    ecs.add_response("describe_tasks", {"tasks": [task]})
    assert len(EcsTaskRunner(clients, TASK).failed_since(Micros(0))) == failures
