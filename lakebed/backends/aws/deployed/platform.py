"""Tasks, their cluster and network, what runs Spark, and stacks of an instance."""

from __future__ import annotations

from typing import Any

from lakebed.backends.aws.deployed.asking import Asking
from lakebed.errors import InvalidError, ObjectMissingError
from lakebed.ports.examined.deployed_parts import DeployedNetwork, DeployedStack, DeployedTask

TASK_KINDS = ("compaction", "ingest", "feeds")
ECR = ".dkr.ecr."
GONE = "DELETE_COMPLETE"


def tasks(asking: Asking) -> list[DeployedTask]:
    """Return what tasks run, by the newest definition of each kind."""
    found = []
    for kind in TASK_KINDS:
        answer = asking.found(
            "ecs:DescribeTaskDefinition",
            asking.clients.ecs.describe_task_definition,
            taskDefinition=asking.name(kind),
        )
        for container in answer["taskDefinition"]["containerDefinitions"][:1] if answer else ():
            image = container["image"]
            found.append(DeployedTask(kind=kind, image=image, is_there=_is_there(asking, image)))
    return found


def _is_there(asking: Asking, image: str) -> bool:
    """Return whether an image is in its repository; in other registries than ECR it is taken to
    be."""
    registry, _, path = image.partition("/")
    if ECR not in registry:
        return True
    name, at, digest = path.partition("@")
    repository, _, tag = name.partition(":")
    which = {"imageDigest": digest} if at else {"imageTag": tag or "latest"}
    try:
        asking.ask(
            "ecr:DescribeImages",
            asking.clients.images.describe_images,
            repositoryName=repository,
            imageIds=[which],
        )
    except (InvalidError, ObjectMissingError):
        return False
    return True


def cluster_state(asking: Asking) -> str:
    """Return the state of the cluster; "": there is none."""
    answer = asking.ask(
        "ecs:DescribeClusters",
        asking.clients.ecs.describe_clusters,
        clusters=[asking.name("tasks")],
    )
    return next((str(one["status"]) for one in answer.get("clusters", ())), "")


def network(asking: Asking) -> DeployedNetwork | None:
    """Return the instance's own network; None: it has none."""
    ec2, name = asking.clients.ec2, asking.name("tasks")
    own = asking.ask(
        "ec2:DescribeVpcs",
        ec2.describe_vpcs,
        Filters=[{"Name": "tag:Name", "Values": [name]}],
    )
    for vpc in own.get("Vpcs", ()):
        id_ = vpc["VpcId"]
        found = asking.listed(
            "ec2:DescribeVpcEndpoints",
            ec2.describe_vpc_endpoints,
            "VpcEndpoints",
            Filters=[{"Name": "vpc-id", "Values": [id_]}],
        )
        gateways = {one["ServiceName"].rpartition(".")[2] for one in found if _leads(one, id_)}
        return DeployedNetwork(id=id_, gateways=tuple(sorted(gateways)))
    return None


def _leads(endpoint: dict[str, Any], vpc: str) -> bool:
    """Return whether an endpoint is available in a network, and a route leads to it."""
    is_up = endpoint.get("State", "").lower() == "available" and endpoint.get("VpcId") == vpc
    return is_up and bool(endpoint.get("RouteTableIds"))


def spark_state(asking: Asking) -> str:
    """Return the state of what runs bulk imports; "": there is none."""
    found = asking.listed(
        "emr-serverless:ListApplications",
        asking.clients.spark.list_applications,
        "applications",
        token="nextToken",  # noqa: S106 - names a page
    )
    name = asking.name("bulk-import")
    states = [str(one["state"]) for one in found if one.get("name") == name]
    return min(states, key=lambda state: state == "TERMINATED", default="")


def stacks(asking: Asking) -> list[DeployedStack]:
    """Return the stacks."""
    others = asking.longer_instances()
    found = asking.listed(
        "cloudformation:ListStacks", asking.clients.stacks.list_stacks, "StackSummaries"
    )
    return [
        DeployedStack(
            name=one["StackName"],
            status=one["StackStatus"],
            drift=one.get("DriftInformation", {}).get("StackDriftStatus", ""),
        )
        for one in found
        if one["StackStatus"] != GONE and asking.is_ours(one["StackName"], others)
    ]
