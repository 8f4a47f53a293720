"""Builds what Spark runs for us: a program, our code with its packages, and what both may do."""

from __future__ import annotations

from aws_cdk import AssetHashType
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from lakebed.config.instance import Deployment
from stacks import permissions
from stacks.constructs import spark_permissions
from stacks.constructs.encryption import use_key
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.packages import packages_for
from stacks.constructs.python_bundle import ROOT, SPARK, SPARK_PYTHON, bundle_of, target_of
from stacks.partition_permissions import keep_usage, read_usage, report_processes

RELEASE = "emr-spark-8.0.0"
"""Release of EMR, serverless and on clusters: Spark 4.0, on Python 3.11."""


class SparkProgram(Construct):
    """The driver's program and the archive of our code, as files that Spark reads by URL."""

    def __init__(self, scope: Construct, *, deployment: Deployment) -> None:
        super().__init__(scope, "Spark")
        target = target_of(deployment.settings.architecture, python=SPARK_PYTHON)
        bundle = bundle_of(SPARK, target, packages_for(deployment, target))
        # Ids of before: what is read by running jobs stays.
        self.archive = s3_assets.Asset(
            scope,
            "Environment",
            path=str(bundle.folder),
            asset_hash=bundle.digest,
            asset_hash_type=AssetHashType.CUSTOM,
        )
        program = str(ROOT / "spark_jobs" / "main.py")
        self.program = s3_assets.Asset(scope, "Program", path=program)

    def permissions(self, deployment: Deployment, stores: LakeStores) -> list[iam.PolicyStatement]:
        """Return what drivers and tasks may do: they read sources, write files, and commit."""
        return [
            *use_key(deployment),
            *stores.may_commit(deployment),
            permissions.write_bodies(deployment),
            permissions.write_large_objects(deployment, "tables/*/files/*", "tables/*/runs/*"),
            permissions.delete_objects(deployment, "tables/*/runs/*"),
            permissions.write_job_reports(stores.tracker),
            report_processes(deployment),
            keep_usage(deployment),
            read_usage(deployment),
            *permissions.import_requests(deployment),
            *permissions.read_sources(deployment),
            *spark_permissions.read_assets(self.archive, self.program),
        ]
