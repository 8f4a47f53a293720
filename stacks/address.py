"""The parameter by which a lake is found: all that `lakebed.connect("aws:INSTANCE")` reads."""

from collections.abc import Sequence

from aws_cdk import Annotations, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct
from msgspec import UNSET

from lakebed.config.deployed_release import DEPLOYED_RELEASE
from lakebed.config.instance import (
    Deployment,
    InstanceResources,
    encode_resources,
    parameter_name,
)
from lakebed.config.quotas import QUOTAS, quotas_needed
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.packages import recorded_packages


class AddressStack(Stack):
    """Comes after all that it names, and goes before it: who finds a lake, finds all of it."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        bucket: s3.IBucket,
        log: dynamodb.ITable,
        registry: dynamodb.ITable,
        tracker: dynamodb.ITable,
        queues: Sequence[FifoJobQueue],
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("address"),
            description=f"Lakebed {deployment.instance}: where its parts are",
        )
        resources = InstanceResources(
            instance=deployment.instance,
            bucket=bucket.bucket_name,
            log_table=log.table_name,
            registry_table=registry.table_name,
            tracker_table=tracker.table_name,
            queues={queue.kind: queue.queue.queue_url for queue in queues},
            quotas=quotas_needed(deployment.settings),
            packages=recorded_packages(deployment) or UNSET,
            release=DEPLOYED_RELEASE,
        )
        ssm.StringParameter(
            self,
            "Resources",
            parameter_name=parameter_name(deployment.instance),
            string_value=encode_resources(resources),
            description="What this instance of Lakebed is made of",
        )
        _warn_of_quotas(self, deployment)


def _warn_of_quotas(scope: Construct, deployment: Deployment) -> None:
    """Say what a new account has not enough of. What an account was given since, only AWS knows."""
    for quota in QUOTAS:
        needs = quota.needed(deployment.settings)
        if needs > quota.new_account:
            Annotations.of(scope).add_warning_v2(
                f"lakebed:quota-{quota.code}",
                f"the instance may use {needs} of {quota.service} {quota.code} ({quota.name}); a"
                f" new account has {quota.new_account}: ask Service Quotas for {needs} before you"
                f" deploy, or deploy with less: {', '.join(quota.settings)}",
            )
