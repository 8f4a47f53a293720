"""Bulk import: the queue of users' messages, who starts Spark for them, and who looks after it."""

import json

import msgspec
from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.environments import (
    BulkImportFollowEnvironment,
    BulkImportRunsEnvironment,
    BulkImportStartEnvironment,
)
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import BULK_IMPORT_JOBS, WORK_SECONDS_MAX
from stacks import partition_permissions, permissions, trust
from stacks.constructs import spark_permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import ROWS, SPARK_PYTHON, STATE, target_of
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.constructs.schedule import Schedule
from stacks.constructs.spark_program import RELEASE, SparkProgram
from stacks.spark.clusters import SparkClustersStack
from stacks.spark.permissions import NO_RESOURCE, start_clusters, use_shared_cluster

IDLE_MINUTES = 5
QUEUED_MINUTES_MAX = 720
"""Minutes after which a run that finds no room fails: the most that EMR Serverless keeps it."""
GB_PER_VCPU = 4
RUN_VCPUS_MIN = 6
"""Fewest vCPUs of a run: a driver and one executor. Runs for which there is no room wait, instead
of holding it while they wait for each other."""
ARCHITECTURES = {"arm64": "ARM64", "x86_64": "X86_64"}


class BulkImportStack(Stack):
    """Messages wait here until Spark is started for them (docs/design/bulk_import.md).

    clusters: None: all imports run on EMR Serverless.

    The application holds no capacity while nothing runs, and costs nothing then. It is in no
    network of ours: from there it reaches S3 and DynamoDB of its region.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        clusters: SparkClustersStack | None,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("bulk-import"),
            description=f"Lakebed {deployment.instance}: rows in by Spark",
        )
        self.jobs = FifoJobQueue(self, "Jobs", shape=BULK_IMPORT_JOBS, deployment=deployment)
        self._program = SparkProgram(self, deployment=deployment)
        self._clusters = clusters
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
        """Return what drivers and tasks have."""
        own = self._program.permissions(deployment, stores)
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
            **self._variables(deployment, stores),
            batches_table=stores.batches.table_name,
            queue_url=self.jobs.queue.queue_url,
        )
        own = QueueLambda(
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
                partition_permissions.read_batches(stores.batches),
                *self._may_start(deployment),
                permissions.give_up(self.jobs.dead_letters),
                permissions.show_again(self.jobs.queue),
            ],
        )
        self._accept(own.role)

    def _variables(self, deployment: Deployment, stores: LakeStores) -> dict[str, str]:
        """Return what both functions read: where Spark runs, and what it runs."""
        absent = {
            name: ""
            for name in BulkImportRunsEnvironment.__struct_fields__
            if name.startswith("cluster_") or name == "shared_cluster"
        }
        return {
            **msgspec.structs.asdict(stores.function_environment(deployment)),
            "tracker_table": stores.tracker.table_name,
            "sources": deployment.settings.sources,
            "spark_release": RELEASE,
            "application_id": self._application.attr_application_id,
            "job_role_arn": self._role.role_arn,
            "entry_point": self._program.program.s3_object_url,
            "archive": self._program.archive.s3_object_url,
            "python": f"python{SPARK_PYTHON}",
            "tags": json.dumps(deployment.all_tags()),
            **(absent if self._clusters is None else self._clusters.variables()),
        }

    def _may_start(self, deployment: Deployment) -> list[iam.PolicyStatement]:
        """Return what it takes to start Spark wherever the instance runs it, and to find runs."""
        statements = spark_permissions.start_spark_runs(self._application, self._role)
        return [*statements, *self._may_use_clusters(deployment)]

    def _may_follow(self, deployment: Deployment) -> list[iam.PolicyStatement]:
        """Return what it takes to find runs, and to ask for machines again where there were
        none."""
        lists = spark_permissions.list_spark_runs(self._application)
        return [lists, *(self._may_use_clusters(deployment) if self._clusters else [])]

    def _may_use_clusters(self, deployment: Deployment) -> list[iam.PolicyStatement]:
        statements: list[iam.PolicyStatement] = []
        if self._clusters is not None:
            statements += start_clusters(
                deployment,
                service=self._clusters.service_role,
                machines=self._clusters.machine_role,
            )
        if deployment.settings.shared_cluster:
            statements.append(use_shared_cluster(deployment.settings.shared_cluster))
        return statements

    def _accept(self, role: iam.Role) -> None:
        if self._clusters is not None:
            permissions.accepted_everywhere(role, NO_RESOURCE)
            arn = "arn:<AWS::Partition>:elasticmapreduce:<AWS::Region>:<AWS::AccountId>:cluster/*"
            Validations.of(role).acknowledge(
                Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{arn}]", reason=NO_RESOURCE
                )
            )

    def _follow(self, deployment: Deployment, stores: LakeStores) -> None:
        """Every five minutes, tell how runs ended whose drivers could not."""
        environment = BulkImportFollowEnvironment(**self._variables(deployment, stores))
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
                *self._may_follow(deployment),
            ],
            runs_apart=every,
            timeout_seconds=WORK_SECONDS_MAX,
        )
        self._accept(own.role)
        Schedule(
            self,
            "FollowSchedule",
            deployment=deployment,
            name="bulk-import",
            every=every,
            function=own.function,
        )
