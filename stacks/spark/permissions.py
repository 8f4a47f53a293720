"""Permissions for clusters of EMR: who starts them, and what their machines log.

EMR knows no names of clusters before they are there: a role may start only what has the instance's
tag, and add steps only to a cluster that is named.
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from lakebed.config.instance import INSTANCE_TAG, Deployment
from lakebed.config.spark.clusters import LOGS_PREFIX
from stacks.permissions import bucket_name

NO_RESOURCE = (
    "EMR knows no resource for starting and listing clusters; what is started has the tag of the"
    " instance"
)
LOGS = "a cluster's id, which is not known before, begins the names of its logs"


def start_clusters(
    deployment: Deployment, *, service: iam.IRole, machines: iam.IRole
) -> list[iam.PolicyStatement]:
    """Start clusters of the instance that have two roles, and find those that were started."""
    tag = {f"aws:RequestTag/{INSTANCE_TAG}": deployment.instance}
    return [
        iam.PolicyStatement(
            actions=["elasticmapreduce:RunJobFlow"],
            resources=["*"],
            conditions={"StringEquals": tag},
        ),
        iam.PolicyStatement(
            actions=["elasticmapreduce:AddTags"],
            resources=[cluster_arn("*")],
            conditions={"StringEquals": tag},
        ),
        iam.PolicyStatement(actions=["elasticmapreduce:ListClusters"], resources=["*"]),
        pass_role(service, "elasticmapreduce.amazonaws.com"),
        pass_role(machines, "ec2.amazonaws.com"),
    ]


def use_shared_cluster(cluster: str) -> iam.PolicyStatement:
    """Add steps to one cluster, and see how they go."""
    return iam.PolicyStatement(
        actions=["elasticmapreduce:AddJobFlowSteps", "elasticmapreduce:ListSteps"],
        resources=[cluster_arn(cluster)],
    )


def write_cluster_logs(deployment: Deployment) -> iam.PolicyStatement:
    """Put logs of clusters beside the lake."""
    return iam.PolicyStatement(actions=["s3:PutObject"], resources=[logs_arn(deployment)])


def logs_arn(deployment: Deployment) -> str:
    """Return where clusters log."""
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(deployment)}/{LOGS_PREFIX}/*"


def cluster_arn(cluster: str) -> str:
    """Return the ARN of a cluster."""
    where = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    return f"arn:{Aws.PARTITION}:elasticmapreduce:{where}:cluster/{cluster}"


def pass_role(role: iam.IRole, service: str) -> iam.PolicyStatement:
    """Give a service a role."""
    return iam.PolicyStatement(
        actions=["iam:PassRole"],
        resources=[role.role_arn],
        conditions={"StringEquals": {"iam:PassedToService": service}},
    )
