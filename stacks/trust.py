"""Names the services that may take a role, or send to a queue, and for whom each must be working.

A service of AWS works for every account. It tells IAM for which account and resource it asks
(`aws:SourceAccount`, `aws:SourceArn`), and a role names its own: else who gets a service to act
with the role of another account has that account's permissions.

Lambda does not tell: AWS documents both keys for what calls a function, and not for the function's
role (docs/decisions/0033).
"""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct


def function_service() -> iam.ServicePrincipal:
    """Lambda."""
    return iam.ServicePrincipal("lambda.amazonaws.com")


def task_service(scope: Construct) -> iam.ServicePrincipal:
    """ECS, for what runs in a task. AWS supports no narrower ARN than the account and region."""
    tasks = Stack.of(scope).format_arn(
        service="ecs", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME
    )
    return _service("ecs-tasks.amazonaws.com", tasks)


def task_start_service(scope: Construct) -> iam.ServicePrincipal:
    """ECS, while it starts a task. AWS does not document the ARN for this: it is compared if it is
    told."""
    tasks = Stack.of(scope).format_arn(
        service="ecs", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME
    )
    return _service("ecs-tasks.amazonaws.com", tasks, operator="ArnLikeIfExists")


def spark_service(application: emrserverless.CfnApplication) -> iam.ServicePrincipal:
    """EMR Serverless, for runs of one application."""
    return _service("emr-serverless.amazonaws.com", application.attr_arn)


def cluster_service(scope: Construct) -> iam.ServicePrincipal:
    """EMR, for clusters of the account and region. Their ids are not known before."""
    clusters = Stack.of(scope).format_arn(
        service="elasticmapreduce", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME
    )
    return _service("elasticmapreduce.amazonaws.com", clusters)


def machine_service() -> iam.ServicePrincipal:
    """EC2, for machines. It does not tell for whom it asks, as Lambda: who makes a machine must be
    allowed to pass it the role."""
    return iam.ServicePrincipal("ec2.amazonaws.com")


def rule_service(rule: events.CfnRule) -> iam.ServicePrincipal:
    """EventBridge, for one rule."""
    return _service("events.amazonaws.com", rule.attr_arn)


def flow_log_service(scope: Construct) -> iam.ServicePrincipal:
    """VPC Flow Logs. The log's id is not known before it is made."""
    flow_logs = Stack.of(scope).format_arn(
        service="ec2", resource="vpc-flow-log", resource_name="*"
    )
    return _service("vpc-flow-logs.amazonaws.com", flow_logs)


def _service(name: str, source: str, *, operator: str = "ArnLike") -> iam.ServicePrincipal:
    conditions = {
        "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
        operator: {"aws:SourceArn": source},
    }
    return iam.ServicePrincipal(name, conditions=conditions)
