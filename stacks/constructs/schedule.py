"""A schedule that runs a function."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.instance import Deployment

MADE_UP_FOR = "an event that is lost, or whose run fails, is made up for by the schedule's next one"


class Schedule(Construct):
    """Runs a function every so often, unless the instance is paused. name: of the work.

    An event that does not reach the function is sent once more within a minute. A run that fails is
    not repeated, and an event older than a minute starts none: the next one makes up for it. Left
    to itself, Lambda would repeat a run twice, and keep events of a throttled function for six
    hours.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        name: str,
        every: Duration,
        function: lambda_.Function,
    ) -> None:
        super().__init__(scope, id)
        age_max = Duration.minutes(1)
        runs = lambda_.EventInvokeConfig(
            self, "Runs", function=function, max_event_age=age_max, retry_attempts=0
        )
        rule = events.Rule(
            self,
            "Rule",
            rule_name=deployment.name(name),
            description=f"Lakebed {deployment.instance}: {name}",
            schedule=events.Schedule.rate(every),
            enabled=not deployment.settings.paused,
            targets=[targets.LambdaFunction(function, max_event_age=age_max, retry_attempts=1)],
        )
        for resource, finding in (
            (rule, "Serverless-EventBusDLQ"),
            (runs, "Serverless-LambdaAsyncFailureDestination"),
        ):
            Validations.of(resource).acknowledge(
                Acknowledgment(id=f"Serverless::{finding}", reason=MADE_UP_FOR)
            )
