"""Permissions of Spark's runs, and of who starts them, beside what others may: as
`permissions.py`."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets


def read_assets(*assets: s3_assets.Asset) -> list[iam.PolicyStatement]:
    """Read what the deployment put into its own bucket, and list it by its keys: Spark asks whether
    a name is a folder."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{assets[0].s3_bucket_name}"
    keys = [asset.s3_object_key for asset in assets]
    return [
        _allow([f"{bucket}/{key}" for key in keys], "s3:GetObject"),
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket],
            conditions={"StringLike": {"s3:prefix": [f"{key}*" for key in keys]}},
        ),
    ]


def start_spark_runs(
    application: emrserverless.CfnApplication, role: iam.Role
) -> list[iam.PolicyStatement]:
    """Start and tag runs of Spark that have a role, and find those that were started before."""
    return [
        _allow([application.attr_arn], "emr-serverless:StartJobRun", "emr-serverless:ListJobRuns"),
        _allow([f"{application.attr_arn}/jobruns/*"], "emr-serverless:TagResource"),
        iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
        ),
    ]


def list_spark_runs(application: emrserverless.CfnApplication) -> iam.PolicyStatement:
    """See which runs there are, and how they ended."""
    return _allow([application.attr_arn], "emr-serverless:ListJobRuns")


def _allow(resources: list[str], *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=resources)
