"""The topic that the instance's alarms tell, and who hears of them."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Annotations, ArnFormat, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from lakebed.config.instance import Deployment
from stacks.constructs.operator_alarm import topic_name

UNENCRYPTED = (
    "CloudWatch cannot publish to a topic encrypted with the key that AWS manages, and an alarm"
    " holds no data: its name, a threshold and a count"
)
NO_REDRIVE = "SNS sends a letter that fails again by itself, and the alarm stays on meanwhile"
UNHEARD = "lakebed:alarms-unheard"


class AlarmsStack(Stack):
    """A topic to which only CloudWatch may publish, only for alarms of this instance.

    With an address of mail it is subscribed; AWS asks its owner to confirm that.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("alarms"),
            description=f"Lakebed {deployment.instance}: who is told of alarms",
        )
        topic = sns.Topic(self, "Topic", topic_name=topic_name(deployment), enforce_ssl=True)
        alarms = self.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=deployment.name("*"),
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": self.account},
                    "ArnLike": {"aws:SourceArn": alarms},
                },
            )
        )
        Validations.of(topic).acknowledge(
            Acknowledgment(id="AwsSolutions::AwsSolutions-SNS2", reason=UNENCRYPTED)
        )
        if deployment.settings.alarm_mail:
            subscription = subscriptions.EmailSubscription(deployment.settings.alarm_mail)
            Validations.of(topic.add_subscription(subscription)).acknowledge(
                Acknowledgment(id="Serverless::Serverless-SNSRedrivePolicy", reason=NO_REDRIVE)
            )
        else:
            Annotations.of(topic).add_warning_v2(
                UNHEARD,
                "alarms have no subscriber yet: add `-c alarm_mail=ADDRESS`, or subscribe"
                f" to the topic {topic_name(deployment)}",
            )
