"""The key that encrypts an instance's data: that of the setting `key_arn`, or AWS's own."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from lakebed.config.instance import Deployment


def key_of(scope: Construct, deployment: Deployment) -> kms.IKey | None:
    """Return the key of an instance in a scope; None: it has none of its own."""
    arn = deployment.settings.key_arn
    return kms.Key.from_key_arn(scope, "Key", arn) if arn else None


def use_key(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read and write what is encrypted; [] where AWS's own keys do it."""
    arn = deployment.settings.key_arn
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [iam.PolicyStatement(actions=actions, resources=[arn])] if arn else []
