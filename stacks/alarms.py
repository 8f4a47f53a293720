"""The topic that the instance's alarms notify, and who hears of them."""

from __future__ import annotations

from aws_cdk import (
    Acknowledgment,
    Annotations,
    ArnFormat,
    Duration,
    RemovalPolicy,
    Stack,
    Validations,
)
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from lakebed.config.alarm_settings import listeners_of
from lakebed.config.instance import Deployment, InstanceSettings
from lakebed.config.settings import named_in
from stacks.constructs.operator_alarm import topic_name

UNENCRYPTED = (
    "CloudWatch cannot publish to a topic encrypted with the key that AWS manages; an alarm holds"
    " no data, and a key costs a dollar a month: instances that name listeners have one"
)
NO_REDRIVE = "SNS sends a letter that fails again by itself, and the alarm stays on meanwhile"
UNHEARD = "lakebed:alarms-unheard"
QUEUE_POLICY = "lakebed:notices-queue-policy"
KEY_DAYS = 7
"""Days in which a deleted key can be brought back: the least that KMS allows. Nothing is kept under
it but notices on their way."""
CLOUDWATCH = "cloudwatch.amazonaws.com"


class AlarmsStack(Stack):
    """A topic to which only CloudWatch may publish, only for alarms of this instance, and only by
    TLS. AWS asks owners of addresses to confirm that they want to hear of it.

    Where a setting of notices names listeners, a key of its own encrypts what waits for them.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("alarms"),
            description=f"Lakebed {deployment.instance}: who is told of alarms",
        )
        self._alarms = self.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=deployment.name("*"),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        topic = sns.Topic(
            self,
            "Topic",
            topic_name=topic_name(deployment),
            enforce_ssl=True,
            master_key=self._key(deployment) if _names_listeners(deployment.settings) else None,
        )
        topic.add_to_resource_policy(self._for_alarms(["sns:Publish"], topic.topic_arn))
        Validations.of(topic).acknowledge(
            Acknowledgment(id="AwsSolutions::AwsSolutions-SNS2", reason=UNENCRYPTED)
        )
        self._subscribe(topic, deployment)

    def _key(self, deployment: Deployment) -> kms.Key:
        """Return a key that CloudWatch may use for the instance's alarms: the policy of the key
        that AWS manages for SNS lets it not."""
        key = kms.Key(
            self,
            "Key",
            description=f"Lakebed {deployment.instance}: notices of alarms on their way",
            enable_key_rotation=True,
            pending_window=Duration.days(KEY_DAYS),
            removal_policy=RemovalPolicy.DESTROY,
        )
        key.add_to_resource_policy(self._for_alarms(["kms:Decrypt", "kms:GenerateDataKey"], "*"))
        return key

    def _for_alarms(self, actions: list[str], resource: str) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            principals=[iam.ServicePrincipal(CLOUDWATCH)],
            actions=actions,
            resources=[resource],
            conditions={
                "StringEquals": {"aws:SourceAccount": self.account},
                "ArnLike": {"aws:SourceArn": self._alarms},
            },
        )

    def _subscribe(self, topic: sns.Topic, deployment: Deployment) -> None:
        listeners = listeners_of(deployment.settings)
        for protocol, endpoint in listeners:
            subscription = sns.Subscription(
                topic,
                endpoint,
                topic=topic,
                protocol=sns.SubscriptionProtocol(protocol.upper()),
                endpoint=endpoint,
            )
            Validations.of(subscription).acknowledge(
                Acknowledgment(id="Serverless::Serverless-SNSRedrivePolicy", reason=NO_REDRIVE)
            )
        name = topic_name(deployment)
        if not listeners:
            Annotations.of(topic).add_warning_v2(
                UNHEARD,
                "alarms have no subscriber yet: add `-c notices_mail=ADDRESS`, or subscribe"
                f" to the topic {name}",
            )
        queues = named_in(deployment.settings.notices_queue)
        if queues:
            Annotations.of(topic).add_warning_v2(
                QUEUE_POLICY,
                f"the policies of {', '.join(queues)} are yours: each must let sns.amazonaws.com"
                f" send for the topic {name}, or notices are lost: docs/operate/notices.md has the"
                " statement to add",
            )


def _names_listeners(settings: InstanceSettings) -> bool:
    return bool(settings.notices_mail or settings.notices_https or settings.notices_queue)
