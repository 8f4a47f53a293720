"""Where tasks run follows from the variables of the function that starts them."""

import pytest

from lakebed.bootstrap.functions.task_start import task_runner
from lakebed.config.environments import TaskStartEnvironment
from tests.unit.backends.amazon_clients import made_up_clients


@pytest.mark.parametrize(
    ("capacity", "provider"),
    [("fargate", ""), ("fargate-spot", ""), ("ec2", "lakebed-dev-machines")],
)
def test_tasks_run_where_the_variables_say(
    monkeypatch: pytest.MonkeyPatch, capacity: str, provider: str
) -> None:
    environment = TaskStartEnvironment(
        instance="dev",
        cluster="arn:aws:ecs:eu-central-1:123456789012:cluster/lakebed-dev-tasks",
        task_definition="arn:aws:ecs:eu-central-1:123456789012:task-definition/t:1",
        subnets="subnet-1,subnet-2",
        security_group="sg-1",
        public_address="ENABLED",
        tasks_max="2",
        capacity=capacity,
        queue_url="q",
    )
    with made_up_clients(monkeypatch, tries_max=1) as clients:
        task = task_runner(clients, environment)._task
    assert (task.capacity_provider, task.subnets) == (provider, ("subnet-1", "subnet-2"))
