"""A schedule that runs a function."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.instance import Deployment


class Schedule(Construct):
    """Runs a function every so often, unless the instance is paused. name: of the work.

    An event that nothing came of is tried once more within a minute; then the next one does it.
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
        rule = events.Rule(
            self,
            "Rule",
            rule_name=deployment.name(name),
            description=f"Lakebed {deployment.instance}: {name}",
            schedule=events.Schedule.rate(every),
            enabled=not deployment.settings.paused,
            targets=[
                targets.LambdaFunction(
                    function, max_event_age=Duration.minutes(1), retry_attempts=1
                )
            ],
        )
        Validations.of(rule).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-EventBusDLQ",
                reason="an event that is lost is made up for by the next one of the schedule",
            )
        )
