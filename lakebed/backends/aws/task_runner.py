"""Tasks of ECS, of one family in one cluster: on Fargate, or on machines of the instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_CLUSTER
from lakebed.errors import UnavailableError
from lakebed.model.names import MICROS_PER_SECOND, Micros, digest_of
from lakebed.ports.task_runner import FailedTask

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

DESCRIBED_AT_ONCE = 100
"""The most that ECS takes."""
IN_ORDER = {None, 0}
"""Exit codes of containers that ended by themselves; None: it never ran, and is reported
otherwise."""
NOT_STARTED = "TaskFailedToStart"
STOPPED_IN_ORDER = {
    "UserInitiated",
    "ServiceSchedulerInitiated",
    "SpotInterruption",
    "TerminationNotice",
    "InfrastructureHealth",
}
"""Operators stopped the task, or its machine was taken back or broke down: it gave its job back, or
its message comes back."""
ON_DEMAND: dict[str, Any] = {"launchType": "FARGATE"}
"""Launch on demand, also in a cluster that has no capacity providers yet, while an instance is
updated."""
SPOT: dict[str, Any] = {
    "capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]
}
FULL_MACHINES_FIRST = {"type": "binpack", "field": "memory"}
"""A machine goes when it is empty: tasks that are spread would keep all of them."""

_RUN = Request(
    what="starting a task", needs="ecs:RunTask, ecs:TagResource, iam:PassRole", writes=True
)
_LIST = Request(what="counting tasks", needs="ecs:ListTasks")
_DESCRIBE = Request(what="looking at tasks", needs="ecs:DescribeTasks")


class EcsTask(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of ECS tasks, and the cluster and network that they run in.

    cluster, task_definition: ARNs.
    security_group: or several, separated by commas.
    capacity_provider: whose machines they run on, with the machines' addresses; "": on Fargate.
    """

    cluster: str
    task_definition: str
    subnets: tuple[str, ...]
    security_group: str
    public_address: Literal["ENABLED", "DISABLED"]
    capacity_provider: str = ""

    @property
    def family(self) -> str:
        """Return the task definition's name, whatever its revision."""
        return self.task_definition.rpartition("/")[2].partition(":")[0]


class EcsTaskRunner:
    """Runs tasks of a family, with the tags of its definition. Those of earlier revisions are
    counted, too."""

    def __init__(self, clients: AmazonClients, task: EcsTask) -> None:
        self._clients = clients
        self._task = task
        self._requests = clients.requests(AMAZON_CLUSTER, task.cluster.rpartition("/")[2])

    def running(self) -> int:
        """Return how many were asked for and have not been stopped."""
        return sum(len(page) for page in self._listed("RUNNING"))

    def start(self, once: str, *, spot: bool = False) -> None:
        """Ask for one task; ECS remembers for a day what was asked for under a token."""
        task = self._task
        answer = self._run(
            _RUN,
            lambda: self._clients.ecs.run_task(
                cluster=task.cluster,
                taskDefinition=task.task_definition,
                propagateTags="TASK_DEFINITION",
                **self._capacity(spot=spot),
                clientToken=digest_of(f"{task.family}/{once}".encode()).hex(),
            ),
        )
        for failure in answer.get("failures", []):
            hint = "see `lakebed explain tasks-not-started`"
            why = f"{failure.get('reason', '')} {failure.get('detail', '')}".strip()
            raise UnavailableError("a task was not started", why=why, hint=hint)

    def _capacity(self, *, spot: bool) -> dict[str, Any]:
        """Return where a task is to run."""
        task = self._task
        if task.capacity_provider:
            provider = {"capacityProvider": task.capacity_provider, "weight": 1}
            return {
                "capacityProviderStrategy": [provider],
                "placementStrategy": [FULL_MACHINES_FIRST],
            }
        network = {
            "subnets": list(task.subnets),
            "securityGroups": task.security_group.split(","),
            "assignPublicIp": task.public_address,
        }
        capacity = SPOT if spot else ON_DEMAND
        return {**capacity, "networkConfiguration": {"awsvpcConfiguration": network}}

    def failed_since(self, time: Micros) -> Sequence[FailedTask]:
        """Return tasks that ended with an error, or never ran."""
        found = []
        for page in self._listed("STOPPED"):
            answer: Any = self._run(_DESCRIBE, partial(self._described, page))
            for task in answer.get("tasks", []):
                failed = _failed(task)
                if failed is not None and failed.ended_at >= time:
                    found.append(failed)
        return found

    def _described(self, arns: list[str]) -> Any:  # noqa: ANN401 - any JSON
        return self._clients.ecs.describe_tasks(cluster=self._task.cluster, tasks=arns)

    def _listed(self, status: Literal["RUNNING", "STOPPED"]) -> Iterator[list[str]]:
        """Yield ARNs of the family's tasks, in pages that are not empty."""
        token = ""
        while True:
            page = partial(
                self._clients.ecs.list_tasks,
                cluster=self._task.cluster,
                family=self._task.family,
                desiredStatus=status,
                maxResults=DESCRIBED_AT_ONCE,
                **({"nextToken": token} if token else {}),
            )
            answer: Any = self._run(_LIST, page)
            if answer.get("taskArns"):
                yield answer["taskArns"]
            token = answer.get("nextToken", "")
            if not token:
                return

    def _run(self, request: Request, call: Callable[[], T]) -> T:
        return self._requests.run(request, call)


def _failed(task: dict[str, Any]) -> FailedTask | None:
    """Return how a task failed; None: it has not ended, or ended in order or was stopped."""
    stopped_at = task.get("stoppedAt")
    if stopped_at is None:
        return None
    started = task.get("stopCode") != NOT_STARTED
    codes = [container.get("exitCode") for container in task.get("containers", [])]
    wished = task.get("stopCode") in STOPPED_IN_ORDER
    if started and (wished or set(codes) <= IN_ORDER):
        return None
    reasons = [task.get("stoppedReason", ""), *(c.get("reason", "") for c in task["containers"])]
    words = [*(r for r in reasons if r), *(f"exit code {code}" for code in codes if code)]
    return FailedTask(started, "; ".join(words), _micros_of(stopped_at))


def _micros_of(time: datetime | float) -> Micros:
    at = time if isinstance(time, datetime) else datetime.fromtimestamp(time, UTC)
    return Micros(int(at.timestamp() * MICROS_PER_SECOND))
