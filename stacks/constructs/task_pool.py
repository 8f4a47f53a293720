"""Tasks that work on one queue: their definition and role, and who starts as many as it needs."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from lakebed.config.environments import TaskEnvironment, TaskStartEnvironment, variables_of
from lakebed.config.fargate import DISK_GIB_MIN, Capacity, cpu_units
from lakebed.config.instance import Deployment
from stacks import permissions, trust
from stacks.constructs.encryption import use_key
from stacks.constructs.image_context import image_context
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.log_group import log_group
from stacks.constructs.python_bundle import STATE, target_of
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule
from stacks.networking import NetworkingStack

START_SECONDS_MAX = 60
STOP_SECONDS = 120
"""Between SIGTERM and SIGKILL: the most that Fargate grants. Jobs are given back after 90."""


class TaskPool(Construct):
    """Each minute, as many tasks of `containers/KIND` as there are messages for, within bounds;
    none while the instance is paused. KIND is the queue's.

    environment: all of the tasks' variables. may: what they may do, besides writing their log.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        network: NetworkingStack,
        queue: FifoJobQueue,
        environment: TaskEnvironment,
        may: Sequence[iam.PolicyStatement],
        tasks_max: int,
        capacity: Capacity,
    ) -> None:
        super().__init__(scope, id)
        self._deployment = deployment
        self._network = network
        image = self._image(queue)
        log = log_group(
            self, "Log", name=f"/ecs/{deployment.name(queue.kind)}", deployment=deployment
        )
        self.role = self._role("Role", trust.task_service(self), [*use_key(deployment), *may])
        self._execution_role = self._role(
            "ExecutionRole",
            trust.task_start_service(self),
            permissions.run_image(image.repository, log),
        )
        permissions.accepted_everywhere(
            self._execution_role,
            "IAM knows no resource for the token with which images are fetched",
        )
        self.definition = self._definition(queue)
        self._add_container(queue, image, log, environment)
        self._start(queue, tasks_max, capacity)

    @property
    def _is_arm(self) -> bool:
        return target_of(self._deployment.settings.architecture).architecture == "arm64"

    def _image(self, queue: FifoJobQueue) -> ecr_assets.DockerImageAsset:
        platforms = ecr_assets.Platform
        return ecr_assets.DockerImageAsset(
            self,
            "Image",
            directory=str(image_context(queue.kind)),
            platform=platforms.LINUX_ARM64 if self._is_arm else platforms.LINUX_AMD64,
        )

    def _definition(self, queue: FifoJobQueue) -> ecs.FargateTaskDefinition:
        settings = self._deployment.settings
        architectures = ecs.CpuArchitecture
        definition = ecs.FargateTaskDefinition(
            self,
            "Definition",
            family=self._deployment.name(queue.kind),
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
        Validations.of(definition).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-ECS2",
                reason="variables are names of the instance's parts, no secrets; roles open them",
            )
        )
        return definition

    def _add_container(
        self,
        queue: FifoJobQueue,
        image: ecr_assets.DockerImageAsset,
        log: logs.LogGroup,
        environment: TaskEnvironment,
    ) -> None:
        """Add the definition's only container. It has the limits of the task: without limits of its
        own it sees those of the host."""
        settings = self._deployment.settings
        self.definition.add_container(
            "Task",
            container_name=queue.kind,
            image=ecs.ContainerImage.from_docker_image_asset(image),
            cpu=cpu_units(settings.task_vcpus),
            memory_limit_mib=settings.task_memory_mib,
            environment=variables_of(environment),
            logging=ecs.LogDrivers.aws_logs(stream_prefix="task", log_group=log),
            stop_timeout=Duration.seconds(STOP_SECONDS),
        )

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

    def _start(self, queue: FifoJobQueue, tasks_max: int, capacity: Capacity) -> None:
        """Each minute, start the tasks that are missing."""
        network = self._network
        environment = TaskStartEnvironment(
            instance=self._deployment.instance,
            queue_url=queue.queue.queue_url,
            cluster=network.cluster.attr_arn,
            task_definition=self.definition.task_definition_arn,
            subnets=",".join(network.subnet_ids),
            security_group=network.security_group.attr_group_id,
            public_address="ENABLED" if network.public else "DISABLED",
            tasks_max=str(tasks_max),
            capacity=capacity,
        )
        every = Duration.minutes(1)
        own = PythonFunction(
            self,
            "Start",
            deployment=self._deployment,
            bundle=STATE,
            room=f"{queue.kind}-tasks",
            verb="start",
            environment=environment,
            permissions=[
                permissions.look_at(queue.queue),
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
            name=f"{queue.kind}-tasks",
            every=every,
            function=own.function,
        )
