"""The bucket that holds a lake's objects: sorted files, snapshots, large log entries."""

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from lakebed.config.instance import OBJECTS_PREFIX, Deployment
from stacks.constructs.encryption import key_of
from stacks.permissions import bucket_name

UNFINISHED_DAYS = 7
"""Of an upload in parts. Longer than a job may take (`pending_seconds_max`): what is aborted here
is nobody's any more."""

UNFINISHED = "unfinished"
"""Where large objects lie until they are copied to their path: nobody wants them back."""


class DataStack(Stack):
    """One bucket, closed to the public, reached by TLS only.

    It is versioned although objects are never overwritten: a delete is then a mark that can be
    taken back for `deleted_days`, whoever deleted by mistake (docs/decisions/0010).
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("data"),
            description=f"Lakebed {deployment.instance}: objects",
        )
        kept = deployment.settings.data_kept
        key = key_of(self, deployment)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=bucket_name(deployment),
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            removal_policy=(
                RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if kept else RemovalPolicy.DESTROY
            ),
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="what-nobody-finishes-or-reads",
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_DAYS),
                    noncurrent_version_expiration=Duration.days(deployment.settings.deleted_days),
                    expired_object_delete_marker=True,
                ),
                s3.LifecycleRule(
                    id="large-objects-on-their-way",
                    prefix=f"{OBJECTS_PREFIX}/{UNFINISHED}/",
                    expiration=Duration.days(UNFINISHED_DAYS),
                    noncurrent_version_expiration=Duration.days(1),
                ),
            ],
        )
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="an access log would be an object or more for each of a lake's; CloudTrail"
                " data events tell who read what, where an account wants that",
            )
        )
