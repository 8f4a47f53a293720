"""The key that encrypts an instance's data: that of the setting `key_arn`, or AWS's own."""

from __future__ import annotations

from aws_cdk import Annotations, Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from lakebed.config.instance import Deployment

KEY_POLICY = "lakebed:key-policy"
"""Id of the warning."""


def key_of(scope: Construct, deployment: Deployment) -> kms.IKey | None:
    """Return the key of an instance in a scope; None: it has none of its own."""
    arn = deployment.settings.key_arn
    return kms.Key.from_key_arn(scope, "Key", arn) if arn else None


def use_key(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read and write what is encrypted; [] where AWS's own keys do it.

    S3 and SQS need the first statement. DynamoDB asks for more, in the name of who uses a table.
    """
    arn = deployment.settings.key_arn
    if not arn:
        return []
    through_tables = {"kms:ViaService": f"dynamodb.{Aws.REGION}.{Aws.URL_SUFFIX}"}
    of_tables = ("DescribeKey", "Encrypt", "ReEncryptFrom", "ReEncryptTo")
    return [
        iam.PolicyStatement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[arn]),
        iam.PolicyStatement(
            actions=[f"kms:{action}" for action in of_tables],
            resources=[arn],
            conditions={"StringEquals": through_tables},
        ),
    ]


def warn_of_key_policy(scope: Construct, deployment: Deployment) -> None:
    """Say what a key of one's own must allow before anything is deployed with it."""
    if deployment.settings.key_arn:
        Annotations.of(scope).add_warning_v2(
            KEY_POLICY,
            f"the policy of the key {deployment.settings.key_arn} is yours: it must let CloudWatch"
            f" Logs encrypt the log groups {deployment.name('*')}, or the deployment fails at the"
            " first of them, and EventBridge use it, or files that arrive are not heard of:"
            " docs/operate/deploy.md has the statements to add",
        )
