"""Batching: files that users submit, or that arrive in watched folders, wait; each minute they
become batches, and batches jobs."""

import hashlib
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import msgspec
from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.environments import (
    BatchingEnvironment,
    BatchingTriggerEnvironment,
    SubmissionsEnvironment,
)
from lakebed.config.instance import ARRIVALS, Deployment
from lakebed.config.job_queues import BATCHING, SUBMISSIONS
from lakebed.config.sent.arrived_files import ARRIVED, SOURCE
from stacks import partition_permissions, permissions, trust
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.operator_alarm import AlarmNotice, Breach, operator_alarm
from stacks.constructs.python_bundle import ROWS, STATE
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.constructs.schedule import Schedule
from stacks.constructs.scheduled_tables import TRIGGER_SECONDS_MAX

EVERY = Duration.minutes(1)
SUBMIT_MEMORY_MIB = 1_769
"""Memory in MiB with which a function has a whole processor, which five thousand files of one
message need."""
SUBMIT_SECONDS_MAX = 45
"""Less than others have: of the ten runs of a new account each takes some from messages that wait
(tests/stacks/test_quotas.py)."""
LOST_MINUTES = 5
DIGEST_CHARACTERS = 8
"""Characters of the digest of a bucket's name, which may be longer than the name of a rule."""


class BatchingStack(Stack):
    """Tables with submitted files are told to a queue, and a function makes batches of them
    (docs/design/batching.md). ingest, bulk_import: the queues that
    their jobs go to; all is ingested where there is no bulk import."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        ingest: NamedJobQueue,
        bulk_import: NamedJobQueue | None,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("batching"),
            description=f"Lakebed {deployment.instance}: submitted files become jobs",
        )
        self.tables = FifoJobQueue(self, "Tables", shape=BATCHING, deployment=deployment)
        self.submissions = FifoJobQueue(
            self, "Submissions", shape=SUBMISSIONS, deployment=deployment
        )
        self._submit(deployment, stores)
        for bucket, folders in groupby(
            sorted(permissions.source_folders(deployment)), key=itemgetter(0)
        ):
            self._send_arrivals(deployment, bucket, [folder for _, folder in folders])
        self._trigger(deployment, stores)
        QueueLambda(
            self,
            "Handle",
            deployment=deployment,
            bundle=STATE,
            queue=self.tables,
            room="batching",
            verb="handle",
            environment=BatchingEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                batches_table=stores.batches.table_name,
                tracker_table=stores.tracker.table_name,
                ingest_queue_url=ingest.queue.queue_url,
                bulk_import_queue_url=bulk_import.queue.queue_url if bulk_import else "",
            ),
            permissions=[
                *permissions.read_objects(deployment),
                permissions.read_log(stores.log),
                permissions.list_tables(stores.registry),
                *partition_permissions.make_batches(stores.batches),
                permissions.report_jobs_one_by_one(stores.tracker),
                permissions.send(ingest.queue),
                *([permissions.send(bulk_import.queue)] if bulk_import else []),
            ],
        )

    def _submit(self, deployment: Deployment, stores: LakeStores) -> None:
        """Look at files, and let them wait."""
        QueueLambda(
            self,
            "Submit",
            deployment=deployment,
            bundle=ROWS,
            queue=self.submissions,
            room="batching",
            verb="submit",
            environment=SubmissionsEnvironment(
                instance=deployment.instance,
                registry_table=stores.registry.table_name,
                batches_table=stores.batches.table_name,
                queue_url=self.submissions.queue.queue_url,
                sources=deployment.settings.sources,
            ),
            permissions=[
                *permissions.read_sources(deployment),
                permissions.find_tables(stores.registry),
                *partition_permissions.submit_files(stores.batches),
                permissions.give_up(self.submissions.dead_letters),
                permissions.show_again(self.submissions.queue),
            ],
            memory_mib=SUBMIT_MEMORY_MIB,
            seconds_max=SUBMIT_SECONDS_MAX,
        )

    def _send_arrivals(self, deployment: Deployment, bucket: str, folders: Sequence[str]) -> None:
        """Send what S3 says of new files in folders of a bucket to the queue, in order. It goes on
        while the instance is paused: messages wait."""
        digest = hashlib.sha256(bucket.encode()).hexdigest()[:DIGEST_CHARACTERS]
        name = deployment.name(f"{ARRIVALS}-{digest}")
        below = [{"prefix": folder} for folder in folders]
        queue = self.submissions.queue
        rule = events.CfnRule(
            self,
            f"Arrivals{digest}",
            name=name,
            description=f"Lakebed {deployment.instance}: files that arrive in {bucket}",
            state="ENABLED",
            event_pattern={
                "source": [SOURCE],
                "detail-type": [ARRIVED],
                "detail": {
                    "bucket": {"name": [bucket]},
                    **({"object": {"key": below}} if all(folders) else {}),
                },
            },
            targets=[
                events.CfnRule.TargetProperty(
                    id="Queue",
                    arn=queue.queue_arn,
                    sqs_parameters=events.CfnRule.SqsParametersProperty(message_group_id=bucket),
                )
            ],
        )
        queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[trust.rule_service(rule)],
                actions=["sqs:SendMessage"],
                resources=[queue.queue_arn],
            )
        )
        Validations.of(rule).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-EventBusDLQ",
                reason="an alarm tells of lost events, and a folder that is submitted makes up for"
                " them: what was taken in is not taken again",
            )
        )
        self._alarm_of_lost(deployment, bucket, name)

    def _alarm_of_lost(self, deployment: Deployment, bucket: str, rule: str) -> None:
        """Let an alarm go off when a rule could not send. rule: its name."""
        operator_alarm(
            self,
            f"LostArrivals{rule[-DIGEST_CHARACTERS:]}",
            deployment=deployment,
            name=f"{rule}-lost",
            notice=AlarmNotice(
                what=f"files arrived in {bucket}, and their events were lost",
                command=f"submit TABLE s3://{bucket}/FOLDER/",
                page="docs/operate/lost-arrivals.md",
            ),
            metric=cloudwatch.Metric(
                namespace="AWS/Events",
                metric_name="FailedInvocations",
                dimensions_map={"RuleName": rule},
            ),
            statistic="Sum",
            breach=Breach(1, LOST_MINUTES),
        )

    def _trigger(self, deployment: Deployment, stores: LakeStores) -> None:
        """Send tables with something to do to the queue, each minute."""
        own = PythonFunction(
            self,
            "Trigger",
            deployment=deployment,
            bundle=STATE,
            room="batching",
            verb="trigger",
            environment=BatchingTriggerEnvironment(
                instance=deployment.instance,
                batches_table=stores.batches.table_name,
                queue_url=self.tables.queue.queue_url,
            ),
            permissions=[
                partition_permissions.list_batched_tables(stores.batches),
                permissions.send(self.tables.queue),
            ],
            runs_apart=EVERY,
            timeout_seconds=TRIGGER_SECONDS_MAX,
            memory_mib=256,
        )
        Schedule(
            self,
            "Schedule",
            deployment=deployment,
            name=BATCHING.kind,
            every=EVERY,
            function=own.function,
        )
