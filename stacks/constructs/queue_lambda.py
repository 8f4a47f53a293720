"""A function that a FIFO queue runs."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.environments import FunctionEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import WORK_SECONDS_MAX
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.python_bundle import Bundle
from stacks.constructs.python_function import PythonFunction

MESSAGES_AT_ONCE = 10
"""The most that a FIFO queue hands to one run."""


class QueueLambda(Construct):
    """Runs for messages of a queue, at most one run at a time for each group.

    No more messages are received than runs are allowed: a message that is received and finds no run
    counts as one that failed. Of a run that fails in part only what failed comes again. While the
    instance is paused messages wait. code_room: see `PythonFunction`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        bundle: Bundle,
        queue: FifoJobQueue,
        room: str,
        verb: str,
        code_room: str | None = None,
        environment: FunctionEnvironment,
        permissions: Sequence[iam.PolicyStatement],
        memory_mib: int = 512,
        seconds_max: int = WORK_SECONDS_MAX,
        messages_at_once: int = MESSAGES_AT_ONCE,
    ) -> None:
        super().__init__(scope, id)
        may_take = iam.PolicyStatement(
            actions=["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            resources=[queue.queue.queue_arn],
        )
        own = PythonFunction(
            self,
            "Own",
            deployment=deployment,
            bundle=bundle,
            room=room,
            verb=verb,
            code_room=code_room,
            environment=environment,
            permissions=[may_take, *permissions],
            runs_apart=Duration.seconds(queue.hidden_seconds),
            timeout_seconds=seconds_max,
            memory_mib=memory_mib,
        )
        self.function, self.role = own.function, own.role
        source = lambda_.EventSourceMapping(
            self,
            "Source",
            target=self.function,
            event_source_arn=queue.queue.queue_arn,
            batch_size=messages_at_once,
            max_concurrency=queue.runs_max,
            report_batch_item_failures=True,
            enabled=not deployment.settings.paused,
        )
        Validations.of(source).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-LambdaEventSourceMappingDestination",
                reason="SQS keeps what failed: after some receives it goes to the dead letters",
            )
        )
