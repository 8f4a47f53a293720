"""Ports on AWS. Needs what `requirements/aws.in` names."""

from lakebed.backends.aws.object_store import S3ObjectStore
from lakebed.backends.aws.s3_requests import Patience

__all__ = ["Patience", "S3ObjectStore"]
