"""The parameter by which a lake is found: all that `lakebed.connect("aws:INSTANCE")` reads."""

import re
from collections.abc import Sequence

import msgspec
from aws_cdk import Annotations, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct
from msgspec import UNSET

from lakebed.config.accounts.account_quotas import quotas_said
from lakebed.config.accounts.quotas import QUOTAS
from lakebed.config.deployed_release import DEPLOYED_RELEASE
from lakebed.config.deployments.deployed_settings import deployed_settings
from lakebed.config.deployments.instance_resources import (
    RESOURCES_BYTES_MAX,
    InstanceResources,
    encode_resources,
)
from lakebed.config.environments import sources_in
from lakebed.config.instance import Deployment, parameter_name
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.packages import recorded_packages

_TOKEN = re.compile(r"\$\{Token\[[^\]]*\]\}")
_LONGEST = "amazonaws.com.cn"
"""The longest text that the deployment puts in place of a token here: region, account, suffix of
addresses."""


class AddressStack(Stack):
    """Comes after all that it names, and goes before it: who finds a lake, finds all of it.

    queues: of the stacks that the instance has.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        queues: Sequence[NamedJobQueue],
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("address"),
            description=f"Lakebed {deployment.instance}: where its parts are",
        )
        is_batched = "batching" in deployment.stacks
        resources = InstanceResources(
            instance=deployment.instance,
            bucket=stores.bucket.bucket_name,
            log_table=stores.log.table_name,
            registry_table=stores.registry.table_name,
            tracker_table=stores.tracker.table_name,
            batches_table=stores.batches.table_name if is_batched else UNSET,
            sources=tuple(sources_in(deployment.settings.sources)) if is_batched else UNSET,
            queues={queue.kind: queue.queue.queue_url for queue in queues},
            quotas={
                quota.code: needs for quota in QUOTAS if (needs := quota.needed_by(deployment))
            },
            packages=recorded_packages(deployment) or UNSET,
            key_arn=deployment.settings.key_arn or UNSET,
            release=DEPLOYED_RELEASE,
            stacks=tuple(sorted(deployment.stacks)),
        )
        ssm.StringParameter(
            self,
            "Resources",
            parameter_name=parameter_name(deployment.instance),
            string_value=_text_that_fits(self, deployment, resources),
            description="What this instance of Lakebed is made of",
        )
        _warn_of_quotas(self, deployment)


def _text_that_fits(scope: Construct, deployment: Deployment, resources: InstanceResources) -> str:
    """Return what the parameter holds: how the instance is set, too, if there is room for it."""
    recorded = deployed_settings(deployment)
    text = encode_resources(msgspec.structs.replace(resources, deployed_with=recorded))
    size = len(_TOKEN.sub(_LONGEST, text).encode())
    if size <= RESOURCES_BYTES_MAX:
        return text
    Annotations.of(scope).add_warning_v2(
        "lakebed:settings-not-recorded",
        f"the parameter of the instance would have {size} bytes of {RESOURCES_BYTES_MAX} with its"
        " settings in it, and is deployed without: `lakebed config diff` cannot compare them with a"
        " file, unless lists are shorter and tags fewer",
    )
    return encode_resources(msgspec.structs.replace(resources, deployed_with=None))


def _warn_of_quotas(scope: Construct, deployment: Deployment) -> None:
    """Say what a new account has not enough of, where settings do not say what this one has."""
    said = quotas_said(deployment.settings.account_quotas)
    for quota in QUOTAS:
        needs = quota.needed_by(deployment)
        if quota.code not in said and needs > quota.new_account:
            Annotations.of(scope).add_warning_v2(
                f"lakebed:quota-{quota.code}",
                f"the instance may use {needs} of {quota.service} {quota.code} ({quota.name}); a"
                f" new account has {quota.new_account}: ask Service Quotas for {needs} before you"
                f" deploy, or deploy with less: {', '.join(quota.settings)}; account_quotas says"
                " what yours has",
            )
