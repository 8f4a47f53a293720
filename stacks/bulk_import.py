"""Bulk import: the queue of users' messages, who starts Spark for them, and who looks after it."""

import msgspec
from aws_cdk import AssetHashType, Duration, Stack, Validations
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from lakebed.config.environments import (
    BulkImportFollowEnvironment,
    BulkImportStartEnvironment,
)
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import BULK_IMPORT_JOBS, WORK_SECONDS_MAX
from stacks import permissions, trust
from stacks.constructs.encryption import use_key
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.packages import packages_for
from stacks.constructs.python_bundle import (
    ROOT,
    ROWS,
    SPARK,
    SPARK_PYTHON,
    STATE,
    bundle_of,
    target_of,
)
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.constructs.schedule import Schedule
from stacks.partition_permissions import report_processes

RELEASE = "emr-spark-8.0.0"
IDLE_MINUTES = 5
QUEUED_MINUTES_MAX = 720
"""After which a run fails that finds no room: the most that EMR Serverless keeps it."""
GB_PER_VCPU = 4
RUN_VCPUS_MIN = 6
"""Of a driver and one executor. Runs for which there is no room wait, instead of holding it while
they wait for each other."""
ARCHITECTURES = {"arm64": "ARM64", "x86_64": "X86_64"}


class BulkImportStack(Stack):
    """Messages wait here until Spark is started for them (docs/design/bulk_import.md).

    The application holds no capacity while nothing runs, and costs nothing then. It is in no
    network of ours: from there it reaches S3 and DynamoDB of its region.
    """

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("bulk-import"),
            description=f"Lakebed {deployment.instance}: rows in by Spark",
        )
        self.jobs = FifoJobQueue(self, "Jobs", shape=BULK_IMPORT_JOBS, deployment=deployment)
        target = target_of(deployment.settings.architecture, python=SPARK_PYTHON)
        bundle = bundle_of(SPARK, target, packages_for(deployment, target))
        self._archive = s3_assets.Asset(
            self,
            "Environment",
            path=str(bundle.folder),
            asset_hash=bundle.digest,
            asset_hash_type=AssetHashType.CUSTOM,
        )
        program = str(ROOT / "spark_jobs" / "main.py")
        self._program = s3_assets.Asset(self, "Program", path=program)
        self._application = self._spark(deployment)
        self._role = self._job_role(deployment, stores)
        self._start(deployment, stores)
        self._follow(deployment, stores)

    def _spark(self, deployment: Deployment) -> emrserverless.CfnApplication:
        on = emrserverless.CfnApplication
        vcpus = deployment.settings.bulk_import_vcpus_max
        target = target_of(deployment.settings.architecture)
        return emrserverless.CfnApplication(
            self,
            "Application",
            name=deployment.name("bulk-import"),
            type="SPARK",
            release_label=RELEASE,
            architecture=ARCHITECTURES[target.architecture],
            auto_start_configuration=on.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=on.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
            scheduler_configuration=on.SchedulerConfigurationProperty(
                max_concurrent_runs=vcpus // RUN_VCPUS_MIN, queue_timeout_minutes=QUEUED_MINUTES_MAX
            ),
            maximum_capacity=on.MaximumAllowedResourcesProperty(
                cpu=f"{vcpus} vCPU", memory=f"{GB_PER_VCPU * vcpus} GB"
            ),
        )

    def _job_role(self, deployment: Deployment, stores: LakeStores) -> iam.Role:
        """Return what drivers and tasks have: they read sources, write files, and commit."""
        own = [
            *use_key(deployment),
            *stores.may_commit(deployment),
            permissions.write_bodies(deployment),
            permissions.write_large_objects(deployment, "tables/*/files/*", "tables/*/runs/*"),
            permissions.delete_objects(deployment, "tables/*/runs/*"),
            permissions.write_job_reports(stores.tracker),
            report_processes(deployment),
            *permissions.import_requests(deployment),
            *permissions.read_sources(deployment),
            *permissions.read_assets(self._archive, self._program),
        ]
        role = iam.Role(
            self,
            "JobRole",
            assumed_by=trust.spark_service(self._application),
            inline_policies={"Own": iam.PolicyDocument(statements=own)},
        )
        Validations.of(role).acknowledge(*permissions.accepted(deployment))
        return role

    def _start(self, deployment: Deployment, stores: LakeStores) -> None:
        """Hand each message that can work to Spark, and refuse the rest."""
        environment = BulkImportStartEnvironment(
            **msgspec.structs.asdict(stores.function_environment(deployment)),
            tracker_table=stores.tracker.table_name,
            sources=deployment.settings.sources,
            queue_url=self.jobs.queue.queue_url,
            application_id=self._application.attr_application_id,
            job_role_arn=self._role.role_arn,
            entry_point=self._program.s3_object_url,
            archive=self._archive.s3_object_url,
            python=f"python{SPARK_PYTHON}",
        )
        QueueLambda(
            self,
            "Start",
            deployment=deployment,
            bundle=ROWS,
            queue=self.jobs,
            room="bulk-import",
            verb="start",
            environment=environment,
            permissions=[
                *stores.may_read(deployment),
                permissions.write_job_reports(stores.tracker),
                permissions.read_reports(stores.tracker),
                *permissions.import_requests(deployment, "s3:PutObject", "s3:DeleteObject"),
                *permissions.start_spark_runs(self._application, self._role),
                permissions.give_up(self.jobs.dead_letters),
                permissions.show_again(self.jobs.queue),
            ],
        )

    def _follow(self, deployment: Deployment, stores: LakeStores) -> None:
        """Every five minutes, tell how runs ended whose drivers could not."""
        environment = BulkImportFollowEnvironment(
            **msgspec.structs.asdict(stores.function_environment(deployment)),
            tracker_table=stores.tracker.table_name,
            application_id=self._application.attr_application_id,
        )
        every = Duration.minutes(5)
        own = PythonFunction(
            self,
            "Follow",
            deployment=deployment,
            bundle=STATE,
            room="bulk-import",
            verb="follow",
            environment=environment,
            permissions=[
                *permissions.read_objects(deployment),
                permissions.read_log(stores.log),
                permissions.list_tables(stores.registry),
                permissions.write_job_reports(stores.tracker),
                permissions.read_reports(stores.tracker),
                *permissions.import_requests(deployment, "s3:DeleteObject"),
                permissions.put_import_requests_aside(deployment),
                permissions.list_spark_runs(self._application),
            ],
            runs_apart=every,
            timeout_seconds=WORK_SECONDS_MAX,
        )
        Schedule(
            self,
            "FollowSchedule",
            deployment=deployment,
            name="bulk-import",
            every=every,
            function=own.function,
        )
