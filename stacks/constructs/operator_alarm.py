"""Alarms: all go off in the same way, and each notifies the topic of the instance's operators: when
it goes off, and when it is over."""

from __future__ import annotations

import msgspec
from aws_cdk import Arn, ArnComponents, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from lakebed.config.instance import Deployment

OFTEN_MINUTES, SELDOM_MINUTES = 5, 30


class Breach(msgspec.Struct, frozen=True):
    """The value that sets an alarm off, and the minutes over which the value is taken.

    CloudWatch looks each minute at the minutes before: the window slides.
    """

    threshold: float
    minutes: int


class AlarmNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an alarm's notice.

    what: is wrong.
    command: to be typed first. One of `lakebed` without that word, or a whole one of `aws`.
    page: of `docs/operate`, which helps.
    """

    what: str
    command: str
    page: str

    def text(self, deployment: Deployment) -> str:
        """Return it in one line."""
        command = self.command
        if not command.startswith("aws "):
            command = f"lakebed --at {deployment.instance} {command}"
        return f"{self.what}; run `{command}`: see {self.page}"


def too_many_errors(runs_apart: Duration | None) -> Breach:
    """Return how many failing runs of a function are too many.

    Where each run fails, the alarm must go off: so the window holds that many runs.

    runs_apart: the longest time from a failing run to the next, by the function's schedule or by
    the visibility timeout of its queue. None: users or deployments call it, at any time.
    """
    if runs_apart is None:
        return Breach(1, OFTEN_MINUTES)
    minutes = runs_apart.to_minutes()
    if minutes <= OFTEN_MINUTES:
        return Breach(3, 3 * OFTEN_MINUTES)
    if minutes <= SELDOM_MINUTES:
        return Breach(2, 2 * SELDOM_MINUTES)
    return Breach(1, OFTEN_MINUTES)


def topic_name(deployment: Deployment) -> str:
    """Return the name of the instance's own topic of alarms."""
    return deployment.name("alarms")


def operator_alarm(
    scope: Construct,
    id: str,
    *,
    deployment: Deployment,
    name: str,
    notice: AlarmNotice,
    metric: cloudwatch.Metric,
    statistic: str,
    breach: Breach,
) -> None:
    """Make an alarm that goes off when a value is at least a threshold, and tells the operators.

    name: physical.
    notice: what people read of it; when it went off, CloudWatch adds.
    statistic: over the minutes of the breach. Missing values are no breach.
    """
    alarm = cloudwatch.Alarm(
        scope,
        id,
        alarm_name=name,
        alarm_description=notice.text(deployment),
        metric=metric.with_(period=Duration.minutes(breach.minutes), statistic=statistic),
        threshold=breach.threshold,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=1,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    topic = sns.Topic.from_topic_arn(alarm, "Topic", _topic_arn(scope, deployment))
    alarm.add_alarm_action(actions.SnsAction(topic))
    alarm.add_ok_action(actions.SnsAction(topic))


def _topic_arn(scope: Construct, deployment: Deployment) -> str:
    """Return the topic of a setting, or the instance's own, which stacks know by its name."""
    own = ArnComponents(service="sns", resource=topic_name(deployment))
    return deployment.settings.alarm_topic_arn or Arn.format(own, Stack.of(scope))
