"""The release: the stack that goes first, and refuses a deployment that would skip one."""

from __future__ import annotations

from aws_cdk import Arn, ArnComponents, CfnCustomResource, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.deployed_release import DEPLOYED_RELEASE
from lakebed.config.environments import ReleaseCheckEnvironment
from lakebed.config.instance import Deployment, parameter_name
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction
from stacks.partition_permissions import in_partitions

CHECK_SECONDS_MAX = 60


class ReleaseStack(Stack):
    """All other stacks wait for this one. Where another release is deployed, a function looks which
    one is there, and fails the deployment before anything else changes."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("release"),
            description=f"Lakebed {deployment.instance}: which release may be deployed",
        )
        registry = LakeStores.of(deployment).registry
        own = PythonFunction(
            self,
            "Check",
            deployment=deployment,
            bundle=STATE,
            room="release",
            verb="check",
            environment=ReleaseCheckEnvironment(
                instance=deployment.instance, registry_table=registry.table_name
            ),
            permissions=[
                iam.PolicyStatement(
                    actions=["ssm:GetParameter"], resources=[self._parameter(deployment)]
                ),
                in_partitions(registry.table_arn, ["formats"], "Query"),
            ],
            runs_apart=None,
            timeout_seconds=CHECK_SECONDS_MAX,
            memory_mib=256,
            reported=False,
        )
        checked = CfnCustomResource(self, "Checked", service_token=own.function.function_arn)
        checked.node.add_dependency(own)
        checked.add_property_override("Release", DEPLOYED_RELEASE)

    def _parameter(self, deployment: Deployment) -> str:
        name = parameter_name(deployment.instance).removeprefix("/")
        parts = ArnComponents(service="ssm", resource="parameter", resource_name=name)
        arn: str = Arn.format(parts, self)
        return arn
