"""The bucket that holds a lake's objects: sorted files, snapshots, large log entries; and the one
for results of queries."""

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from lakebed.config.instance import IMPORTS_PREFIX, OBJECTS_PREFIX, Deployment
from lakebed.config.spark.clusters import LOGS_PREFIX
from stacks.constructs.encryption import key_of, warn_of_key_policy
from stacks.constructs.kept_exports import keep_exports
from stacks.permissions import bucket_name, results_bucket_name

UNFINISHED_DAYS = 7
"""Days until an unfinished upload in parts is aborted. Longer than a job may take
(`pending_seconds_max`): what is aborted here has no writer any more."""

REQUEST_DAYS = 30
"""Days that a request for a bulk import is kept: much longer than a run may take."""

UNFINISHED = "unfinished"
"""The folder where earlier releases put large objects before they copied them to their path. The
lifecycle removes what such a release left there."""


class BucketsStack(Stack):
    """Two buckets, closed to the public, reached by TLS only.

    That of the lake is versioned although objects are never overwritten: a delete is then a mark
    that can be taken back for `deleted_days` (docs/decisions/0010).
    Results can be had again, and go after `results_days`.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("data"),
            description=f"Lakebed {deployment.instance}: objects",
        )
        self._key = key_of(self, deployment)
        warn_of_key_policy(self, deployment)
        settings = deployment.settings
        bucket = self._bucket(
            "Bucket",
            deployment,
            name=bucket_name(deployment),
            versioned=True,
            rules=[
                s3.LifecycleRule(
                    id="what-nobody-finishes-or-reads",
                    abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_DAYS),
                    noncurrent_version_expiration=Duration.days(settings.deleted_days),
                    expired_object_delete_marker=True,
                ),
                s3.LifecycleRule(
                    id="large-objects-of-earlier-releases",
                    prefix=f"{OBJECTS_PREFIX}/{UNFINISHED}/",
                    expiration=Duration.days(UNFINISHED_DAYS),
                    noncurrent_version_expiration=Duration.days(1),
                ),
                s3.LifecycleRule(
                    id="requests-whose-end-nobody-told",
                    prefix=f"{IMPORTS_PREFIX}/",
                    expiration=Duration.days(REQUEST_DAYS),
                ),
            ],
        )
        if settings.spark_clusters:
            bucket.add_lifecycle_rule(
                id="logs-of-clusters-go",
                prefix=f"{LOGS_PREFIX}/",
                expiration=Duration.days(int(settings.log_days)),
            )
        _write_once(bucket, OBJECTS_PREFIX, IMPORTS_PREFIX)
        results = self._bucket(
            "Results",
            deployment,
            name=results_bucket_name(deployment),
            versioned=False,
            rules=[
                s3.LifecycleRule(
                    id="results-go",
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                    expiration=Duration.days(settings.results_days),
                ),
            ],
        )
        keep_exports(self, bucket.bucket_name, results.bucket_name)

    def _bucket(
        self,
        id: str,
        deployment: Deployment,
        *,
        name: str,
        versioned: bool,
        rules: Sequence[s3.LifecycleRule],
    ) -> s3.Bucket:
        kept = deployment.settings.data_kept
        bucket = s3.Bucket(
            self,
            id,
            bucket_name=name,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if self._key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._key,
            bucket_key_enabled=True if self._key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=versioned,
            removal_policy=(
                RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if kept else RemovalPolicy.DESTROY
            ),
            lifecycle_rules=rules,
        )
        Validations.of(bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="an access log would be an object or more for each of a lake's; CloudTrail"
                " data events tell who read what, where an account wants that",
            )
        )
        return bucket


def _write_once(bucket: s3.Bucket, *prefixes: str) -> None:
    """Deny all writes of objects below `PREFIX/objects/` but those that fail where the key is taken
    (protocol H19).

    To begin an upload in parts, and to send one, is no such write: completing it is. S3 refuses
    every copy to these keys.
    """
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            sid="ObjectsAreWrittenOnce",
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["s3:PutObject"],
            resources=[bucket.arn_for_objects(f"{prefix}/objects/*") for prefix in prefixes],
            conditions={
                "Null": {"s3:if-none-match": "true"},
                "Bool": {"s3:ObjectCreationOperation": "true"},
            },
        )
    )
