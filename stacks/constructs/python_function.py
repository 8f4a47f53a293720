"""A function of ours: its role, its log, an alarm on its errors."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Duration, Size, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from lakebed.config.dynamo_tables import TRACKER_TABLE
from lakebed.config.environments import FunctionEnvironment, ReportedEnvironment, variables_of
from lakebed.config.instance import Deployment
from stacks.constructs.encryption import use_key
from stacks.constructs.log_group import log_group
from stacks.constructs.operator_alarm import AlarmNotice, operator_alarm, too_many_errors
from stacks.constructs.packages import packages_for
from stacks.constructs.python_bundle import Bundle, bundle_of, target_of
from stacks.partition_permissions import keep_usage, report_processes
from stacks.permissions import accepted
from stacks.trust import function_service

NO_DEAD_LETTERS = (
    "a queue's messages have dead letters of their own, and a schedule's next run makes up for one"
    " that failed; errors have an alarm"
)
NO_TRACING = "a run makes a few requests, and its log line tells how long it took: nothing to trace"
WAITED_FOR = "CloudFormation waits for the answer, and says so where none comes"
ANSWER_HOURS_MAX = 1
"""Hours that CloudFormation waits for an answer. Source: `ServiceTimeout` of
`AWS::CloudFormation::CustomResource`, AWS CloudFormation Template Reference."""
RUNS_UNTIL_ANSWERED = 3
THIS_MACHINE = "it is synthesized to run on this machine, which has another Python"


class PythonFunction(Construct):
    """Runs `lambdas.ROOM.VERB.handler` of a bundle, as `lakebed-INSTANCE-ROOM-VERB`.

    room, verb: in Python's names - is _.
    code_room: the folder in `lambdas`, where several functions share one. None: the room.
    environment: all of its variables.
    permissions: all that its role may do, besides writing its log.
    runs_apart: the longest time from one failing run to the next; None: it runs when it is called.
    reported: whether it works on the lake: it reports its release, which it is told where to and
        permitted, and has an alarm. Else a deployment waits for it, and tells of its errors; a run
        that could not answer is repeated, and an event older than the wait starts none.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        bundle: Bundle,
        room: str,
        verb: str,
        code_room: str | None = None,
        environment: FunctionEnvironment,
        permissions: Sequence[iam.PolicyStatement],
        runs_apart: Duration | None,
        timeout_seconds: int,
        memory_mib: int = 512,
        reported: bool = True,
    ) -> None:
        super().__init__(scope, id)
        name = deployment.name(room, verb)
        target = target_of(deployment.settings.architecture)
        log = log_group(self, "Log", name=f"/aws/lambda/{name}", deployment=deployment)
        variables = variables_of(environment)
        if reported:
            table = deployment.name(TRACKER_TABLE.part)
            where = ReportedEnvironment(instance=deployment.instance, processes_table=table)
            variables |= variables_of(where)
            permissions = [*permissions, report_processes(deployment), keep_usage(deployment)]
        self.role = self._role(deployment, log, permissions)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=lambda_.Runtime(f"python{target.python}", lambda_.RuntimeFamily.PYTHON),
            architecture=(
                lambda_.Architecture.ARM_64
                if target.architecture == "arm64"
                else lambda_.Architecture.X86_64
            ),
            code=bundle_of(bundle, target, packages_for(deployment, target)).code(),
            handler=f"lambdas.{code_room or room}.{verb}.handler".replace("-", "_"),
            environment=variables,
            role=self.role.without_policy_updates(),
            log_group=log,
            timeout=Duration.seconds(timeout_seconds),
            memory_size=memory_mib,
            ephemeral_storage_size=_disk_of(environment),
        )
        self._acknowledge(here=target.here)
        if reported:
            self._alarm(deployment, name, runs_apart)
        else:
            self._repeat_until_answered()

    def _repeat_until_answered(self) -> None:
        runs = lambda_.EventInvokeConfig(
            self,
            "Runs",
            function=self.function,
            max_event_age=Duration.hours(ANSWER_HOURS_MAX),
            retry_attempts=RUNS_UNTIL_ANSWERED - 1,
        )
        Validations.of(runs).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-LambdaAsyncFailureDestination", reason=WAITED_FOR
            )
        )

    def _alarm(self, deployment: Deployment, name: str, runs_apart: Duration | None) -> None:
        operator_alarm(
            self,
            "ErrorsAlarm",
            deployment=deployment,
            name=f"{name}-errors",
            notice=AlarmNotice(
                what=f"runs of {name} fail",
                command=f"aws logs tail /aws/lambda/{name} --since 1h",
                page="docs/operate/function-errors.md",
            ),
            metric=self.function.metric_errors(),
            statistic="Sum",
            breach=too_many_errors(runs_apart),
        )

    def _role(
        self,
        deployment: Deployment,
        log: logs.LogGroup,
        permissions: Sequence[iam.PolicyStatement],
    ) -> iam.Role:
        may_log = iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log.log_group_arn],
        )
        statements = [may_log, *use_key(deployment), *permissions]
        role = iam.Role(
            self,
            "Role",
            assumed_by=function_service(),
            inline_policies={"Own": iam.PolicyDocument(statements=statements)},
        )
        Validations.of(role).acknowledge(*accepted(deployment))
        return role

    def _acknowledge(self, *, here: bool) -> None:
        reasons = {
            "Serverless::Serverless-LambdaDLQ": NO_DEAD_LETTERS,
            "Serverless::Serverless-LambdaTracing": NO_TRACING,
        }
        if here:
            reasons["AwsSolutions::AwsSolutions-L1"] = THIS_MACHINE
            reasons["Serverless::Serverless-LambdaLatestVersion"] = THIS_MACHINE
        Validations.of(self.function).acknowledge(
            *(Acknowledgment(id=id_, reason=reason) for id_, reason in reasons.items())
        )


def _disk_of(environment: FunctionEnvironment) -> Size | None:
    """Return what a function is told to have; None: it keeps no states, and has the least."""
    mib = getattr(environment, "function_disk_mib", None)
    return None if mib is None else Size.mebibytes(int(mib))
