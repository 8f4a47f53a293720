"""Tasks of one kind: their definition and role, and who starts as many as are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from aws_cdk import Acknowledgment, Aws, Duration, Validations
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from lakebed.config.environments import (
    StartedTaskEnvironment,
    TaskEnvironment,
    TaskStartEnvironment,
    variables_of,
)
from lakebed.config.fargate import DISK_GIB_MIN, MACHINES, Capacity, cpu_units
from lakebed.config.instance import Deployment
from stacks import permissions, trust
from stacks.constructs.encryption import use_key
from stacks.constructs.image_context import image_context
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.log_group import log_group
from stacks.constructs.packages import packages_for
from stacks.constructs.python_bundle import STATE, target_of
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule
from stacks.networking import NetworkingStack
from stacks.partition_permissions import keep_usage, report_processes

START_SECONDS_MAX = 60
STOP_SECONDS = 120
"""Seconds between SIGTERM and SIGKILL: as many as Fargate grants. Jobs are given back after 90."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStart:
    """The function that starts tasks.

    tasks: what they are called in its name: `lakebed-INSTANCE-TASKS-start`.
    tasks_max: at one time.
    environment: makes its variables of those that all such functions have.
    may: what it may do to see what is wanted.
    security_groups: of tasks, beside the network's.
    """

    tasks: str
    tasks_max: int
    capacity: Capacity
    environment: Callable[[StartedTaskEnvironment], StartedTaskEnvironment]
    may: Sequence[iam.PolicyStatement]
    security_groups: Sequence[str] = ()


def start_for(queue: FifoJobQueue, *, tasks_max: int, capacity: Capacity) -> TaskStart:
    """Return what starts as many tasks as a queue has messages for."""
    return TaskStart(
        tasks=f"{queue.kind}-tasks",
        tasks_max=tasks_max,
        capacity=capacity,
        environment=lambda common: TaskStartEnvironment(
            **msgspec.structs.asdict(common), queue_url=queue.queue.queue_url
        ),
        may=[permissions.look_at(queue.queue)],
    )


class TaskPool(Construct):
    """Each minute, as many tasks of `containers/KIND` as are wanted, within bounds; none while the
    instance is paused.

    environment: all of the tasks' variables. may: what they may do, besides writing their log.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        network: NetworkingStack,
        kind: str,
        environment: TaskEnvironment,
        may: Sequence[iam.PolicyStatement],
        start: TaskStart,
    ) -> None:
        super().__init__(scope, id)
        self._deployment = deployment
        self._network = network
        self._kind = kind
        image = self._image()
        log = log_group(self, "Log", name=f"/ecs/{deployment.name(kind)}", deployment=deployment)
        self.role = self._role(
            "Role",
            trust.task_service(self),
            [
                *use_key(deployment),
                *may,
                report_processes(deployment),
                keep_usage(deployment),
            ],
        )
        self._execution_role = self._role(
            "ExecutionRole",
            trust.task_start_service(self),
            permissions.run_image(image.repository, log),
        )
        permissions.accepted_everywhere(
            self._execution_role,
            "IAM knows no resource for the token with which images are fetched",
        )
        self.definition = (
            self._definition_for_machines()
            if start.capacity == MACHINES
            else self._definition_for_fargate()
        )
        self._accept_variables()
        self._add_container(image, log, environment)
        self._start(start)

    @property
    def _is_arm(self) -> bool:
        return target_of(self._deployment.settings.architecture).architecture == "arm64"

    def _image(self) -> ecr_assets.DockerImageAsset:
        platforms = ecr_assets.Platform
        target = target_of(self._deployment.settings.architecture)
        return ecr_assets.DockerImageAsset(
            self,
            "Image",
            directory=str(image_context(self._kind, packages_for(self._deployment, target))),
            platform=platforms.LINUX_ARM64 if self._is_arm else platforms.LINUX_AMD64,
        )

    def _definition_for_fargate(self) -> ecs.TaskDefinition:
        settings = self._deployment.settings
        architectures = ecs.CpuArchitecture
        return ecs.FargateTaskDefinition(
            self,
            "Definition",
            family=self._deployment.name(self._kind),
            cpu=cpu_units(settings.task_vcpus),
            memory_limit_mib=settings.task_memory_mib,
            ephemeral_storage_gib=(
                settings.task_disk_gib if settings.task_disk_gib > DISK_GIB_MIN else None
            ),
            task_role=self.role.without_policy_updates(),
            execution_role=self._execution_role.without_policy_updates(),
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=architectures.ARM64 if self._is_arm else architectures.X86_64,
                operating_system_family=ecs.OperatingSystemFamily.LINUX,
            ),
        )

    def _definition_for_machines(self) -> ecs.TaskDefinition:
        """Return a task that reaches services by its machine's address: an interface of its own
        would have none that is public. The machine's own credentials are one hop too far for it."""
        settings = self._deployment.settings
        return ecs.TaskDefinition(
            self,
            "Definition",
            compatibility=ecs.Compatibility.EC2,
            network_mode=ecs.NetworkMode.BRIDGE,
            family=self._deployment.name(self._kind),
            cpu=str(cpu_units(settings.task_vcpus)),
            memory_mib=str(settings.task_memory_mib),
            task_role=self.role.without_policy_updates(),
            execution_role=self._execution_role.without_policy_updates(),
        )

    def _accept_variables(self) -> None:
        Validations.of(self.definition).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-ECS2",
                reason="variables are names of the instance's parts, no secrets; roles open them",
            )
        )

    def _add_container(
        self,
        image: ecr_assets.DockerImageAsset,
        log: logs.LogGroup,
        environment: TaskEnvironment,
    ) -> None:
        """Add the definition's only container. It has the limits of the task: without limits of its
        own it sees those of the host."""
        settings = self._deployment.settings
        self.definition.add_container(
            "Task",
            container_name=self._kind,
            image=ecs.ContainerImage.from_docker_image_asset(image),
            cpu=cpu_units(settings.task_vcpus),
            memory_limit_mib=settings.task_memory_mib,
            environment=variables_of(environment) | self._given_by_the_platform(),
            logging=ecs.LogDrivers.aws_logs(stream_prefix="task", log_group=log),
            stop_timeout=Duration.seconds(STOP_SECONDS),
        )

    def _given_by_the_platform(self) -> dict[str, str]:
        """Return variables that Fargate gives to tasks, and agents on machines do not always."""
        return {"AWS_REGION": Aws.REGION} if not self.definition.is_fargate_compatible else {}

    def _role(
        self, id: str, service: iam.IPrincipal, statements: Sequence[iam.PolicyStatement]
    ) -> iam.Role:
        role = iam.Role(
            self,
            id,
            assumed_by=service,
            inline_policies={"Own": iam.PolicyDocument(statements=list(statements))},
        )
        Validations.of(role).acknowledge(*permissions.accepted(self._deployment))
        return role

    def _start(self, start: TaskStart) -> None:
        """Start the tasks that are missing, each minute."""
        network = self._network
        groups = [network.security_group.attr_group_id, *start.security_groups]
        common = StartedTaskEnvironment(
            instance=self._deployment.instance,
            cluster=network.cluster.cluster_arn,
            task_definition=self.definition.task_definition_arn,
            subnets=",".join(network.subnet_ids),
            security_group=",".join(groups),
            public_address="ENABLED" if network.public else "DISABLED",
            tasks_max=str(start.tasks_max),
            capacity=start.capacity,
        )
        every = Duration.minutes(1)
        own = PythonFunction(
            self,
            "Start",
            deployment=self._deployment,
            bundle=STATE,
            room=start.tasks,
            verb="start",
            environment=start.environment(common),
            permissions=[
                *start.may,
                *permissions.start_tasks(
                    network.cluster, self.definition, (self.role, self._execution_role)
                ),
            ],
            runs_apart=every,
            timeout_seconds=START_SECONDS_MAX,
            memory_mib=256,
        )
        permissions.accepted_everywhere(
            own.role, "IAM knows no resource for counting tasks; the cluster is a condition"
        )
        Schedule(
            self,
            "StartSchedule",
            deployment=self._deployment,
            name=start.tasks,
            every=every,
            function=own.function,
        )
