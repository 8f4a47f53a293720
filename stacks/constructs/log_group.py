"""A log group, kept for as long as the instance is set to keep logs."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from lakebed.config.instance import Deployment


def log_group(scope: Construct, id: str, *, name: str, deployment: Deployment) -> logs.LogGroup:
    """Return a new log group, which goes with its stack.

    It is encrypted with the instance's key where there is one. The key's policy must let CloudWatch
    Logs use it (docs/operate/deploy.md): that policy is not ours to change.
    """
    log = logs.LogGroup(scope, id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY)
    child = log.node.default_child
    assert isinstance(child, logs.CfnLogGroup), f"a log group is made of one, got {child}"
    child.retention_in_days = int(deployment.settings.log_days)
    child.kms_key_id = deployment.settings.key_arn or None
    return log
