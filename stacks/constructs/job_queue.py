"""A queue of jobs with its dead letters, and an alarm on each."""

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import KEPT_DAYS, JobQueueShape
from stacks.constructs.encryption import key_of
from stacks.constructs.kept_exports import keep_exports
from stacks.constructs.names import named_job_queue
from stacks.constructs.operator_alarm import AlarmNotice, Breach, operator_alarm

PERIOD_MINUTES = 5


class FifoJobQueue(Construct):
    """Messages in order within a group. One that was received too often goes to the dead letters,
    and an alarm goes off; another does when the oldest message waits too long.

    Requests that repeat a message within five minutes are swallowed across all groups, as messages
    without a group rely on; that limits the queue to 3,000 messages a second, in batches.

    named: what other stacks know of it.
    """

    def __init__(
        self, scope: Construct, id: str, *, shape: JobQueueShape, deployment: Deployment
    ) -> None:
        super().__init__(scope, id)
        self.kind, self.hidden_seconds = shape.kind, shape.hidden_seconds
        self.named = named_job_queue(deployment, shape)
        self.runs_max = shape.runs_max(deployment.settings.function_runs_max)
        key = key_of(self, deployment)
        encryption = sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=self.named.dead_letters.queue_name,
            fifo=True,
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=Duration.days(KEPT_DAYS),
        )
        Validations.of(self.dead_letters).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-SQSRedrivePolicy",
                reason="these are the dead letters: a queue behind them would never be looked at",
            )
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=self.named.queue.queue_name,
            fifo=True,
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=Duration.days(KEPT_DAYS),
            content_based_deduplication=shape.from_users or None,
            visibility_timeout=Duration.seconds(shape.hidden_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=shape.receives_max
            ),
        )
        self._alarms(deployment, shape)
        keep_exports(
            self,
            self.queue.queue_url,
            self.queue.queue_name,
            self.dead_letters.queue_name,
        )

    def _alarms(self, deployment: Deployment, shape: JobQueueShape) -> None:
        name = deployment.name(shape.kind)
        operator_alarm(
            self,
            "DeadLettersAlarm",
            deployment=deployment,
            name=f"{name}-dead-letters",
            notice=AlarmNotice(
                what=f"messages of {shape.kind} were given up",
                command=f"dead-letters show --queue {shape.kind}",
                page="docs/operate/dead-letters.md",
            ),
            metric=self.dead_letters.metric_approximate_number_of_messages_visible(),
            statistic="Maximum",
            breach=Breach(1, PERIOD_MINUTES),
        )
        operator_alarm(
            self,
            "AgeAlarm",
            deployment=deployment,
            name=f"{name}-age",
            notice=AlarmNotice(
                what=f"a message of {shape.kind} waits too long",
                command=f"dead-letters list --queue {shape.kind}",
                page="docs/operate/queue-age.md",
            ),
            metric=self.queue.metric_approximate_age_of_oldest_message(),
            statistic="Maximum",
            breach=Breach(shape.age_seconds_max, PERIOD_MINUTES),
        )
