"""Ports on AWS. Needs what `requirements/aws.in` names; objects alone do without boto3."""

from lakebed.backends.aws.object_store import S3ObjectStore
from lakebed.backends.aws.requests import Patience

__all__ = ["Patience", "S3ObjectStore"]
