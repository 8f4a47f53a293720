"""Makers of clusters and task definitions: the emulator has them, the runner runs their tasks."""

from __future__ import annotations

from typing import Any

from lakebed.errors import InvalidError
from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import ACCOUNT, REGION
from localcloud.templates.running import MIB, TaskSpec

IGNORED = ("Cpu", "RuntimePlatform")
PASSED_ON = ("Name", "Image", "Command", "EntryPoint", "Environment", "Essential", "StopTimeout")
NOT_PASSED_ON = (
    "Cpu",
    "Memory",
    "LogConfiguration",
    "ReadonlyRootFilesystem",
    "LinuxParameters",
    "User",
    "MountPoints",
)
"""A task is a process of this machine: nothing keeps it within bounds."""


def make_cluster(making: Making, properties: Properties) -> Made:
    """Make a cluster, by name only."""
    ecs = making.client("ecs")
    name = properties.need("ClusterName")
    for ignored in ("ClusterSettings", "CapacityProviders", "DefaultCapacityProviderStrategy"):
        properties.take(ignored)
    ecs.create_cluster(clusterName=name)
    making.running.clusters.append(name)
    arn = f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/{name}"
    return Made(name, {"Arn": arn}, lambda: ecs.delete_cluster(cluster=name))


def make_capacity_provider(making: Making, properties: Properties) -> Made:
    """Machines of the instance's own, by name only: tasks are processes of this machine. One that a
    deployment before this one left in the folder of the local cloud stays."""
    ecs = making.client("ecs")
    name = properties.need("Name")
    group = properties.need("AutoScalingGroupProvider")["AutoScalingGroupArn"]
    if not ecs.describe_capacity_providers(capacityProviders=[name])["capacityProviders"]:
        provider = {"autoScalingGroupArn": group}
        ecs.create_capacity_provider(name=name, autoScalingGroupProvider=provider)
    return Made(name, {}, lambda: ecs.delete_capacity_provider(capacityProvider=name))


def make_task_definition(making: Making, properties: Properties) -> Made:
    """Make a definition of a task of one container, whose image is an asset: run as a process."""
    ecs = making.client("ecs")
    family = properties.need("Family")
    containers = properties.need("ContainerDefinitions")
    if len(containers) != 1:
        hint = "give a task one container"
        raise InvalidError("a task of several containers", family=family, hint=hint)
    container = dict(containers[0])
    for ignored in (*IGNORED, "EphemeralStorage", "Volumes"):
        properties.take(ignored)
    for ignored in NOT_PASSED_ON:
        container.pop(ignored, None)
    if set(container) - set(PASSED_ON):
        unknown = sorted(set(container) - set(PASSED_ON))
        raise InvalidError(
            "a container has properties that are not known here",
            family=family,
            properties=unknown,
            hint="teach the local cloud what they do, or leave them out",
        )
    image = making.image(properties, container["Image"])
    role, fetches = properties.need("TaskRoleArn"), properties.take("ExecutionRoleArn")
    memory = int(properties.need("Memory"))
    answer = ecs.register_task_definition(
        family=family,
        taskRoleArn=role,
        **({"executionRoleArn": fetches} if fetches else {}),
        memory=str(memory),
        tags=[_camel(tag) for tag in properties.take("Tags", [])],
        networkMode=properties.take("NetworkMode", "awsvpc"),
        requiresCompatibilities=properties.take("RequiresCompatibilities", ["FARGATE"]),
        containerDefinitions=[_camel(container)],
    )
    arn = answer["taskDefinition"]["taskDefinitionArn"]
    making.running.tasks[arn] = TaskSpec(
        family=family,
        container=container["Name"],
        image=image,
        command=(*container.get("EntryPoint", ()), *container.get("Command", ())),
        role=role,
        environment={e["Name"]: e["Value"] for e in container.get("Environment", [])},
        memory_bytes=memory * MIB,
        stop_seconds=int(container.get("StopTimeout", 30)),
    )
    return Made(
        arn, {"TaskDefinitionArn": arn}, lambda: ecs.deregister_task_definition(taskDefinition=arn)
    )


def _camel(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return what a template says as the service's API writes it."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _camel(member) for key, member in value.items()}
    return value
