"""Permissions of operators and admins for what was deployed: to look at its parts, as `lakebed
doctor` does, start tasks, and turn on again what was turned off."""

from __future__ import annotations

from lakebed.config.dynamo_tables import DYNAMO_TABLES
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMPACTION_JOBS, INGEST_JOBS
from lakebed.config.people.table_access import LakeArns, Statement, allow
from stacks.permissions import source_folders

ALARMS_TOPIC = "alarms"
UNNAMED = [
    "cloudformation:ListStacks",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "ecs:DescribeTaskDefinition",
    "emr-serverless:ListApplications",
    "events:ListRules",
    "lambda:GetAccountSettings",
    "lambda:ListEventSourceMappings",
    "lambda:ListFunctions",
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
]
"""Actions that only look, and that IAM knows no resource for, or that list."""


def look_at_parts(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """See what was deployed, and whether it is as it should be."""
    functions = lake.of("lambda", f"function:{deployment.name('*')}")
    stores = [lake.table(deployment.name(one.part)) for one in DYNAMO_TABLES]
    forms = ["ContinuousBackups", "Table", "TimeToLive"]
    topic = lake.of("sns", deployment.name(ALARMS_TOPIC))
    bucket = [
        "s3:GetBucketPolicy",
        "s3:GetBucketPublicAccessBlock",
        "s3:GetBucketVersioning",
        "s3:GetLifecycleConfiguration",
    ]
    return [
        allow("Looks", UNNAMED, ["*"]),
        allow(
            "Functions",
            ["lambda:GetFunctionConcurrency", "lambda:GetFunctionConfiguration"],
            [functions],
        ),
        allow("Stores", [f"dynamodb:Describe{form}" for form in forms], stores),
        allow("Bucket", bucket, [lake.bucket_arn]),
        allow("Topic", ["sns:GetTopicAttributes", "sns:ListSubscriptionsByTopic"], [topic]),
        allow("Instances", ["ssm:GetParametersByPath"], [lake.of("ssm", "parameter/lakebed/")]),
        *_look_at_sources(lake, deployment),
        *([allow("KeyState", ["kms:DescribeKey"], [lake.key_arn])] if lake.key_arn else []),
    ]


def _look_at_sources(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """See whether buckets of users tell of files that arrive."""
    buckets = sorted({bucket for bucket, _ in source_folders(deployment)})
    arns = [f"arn:{lake.partition}:s3:::{bucket}" for bucket in buckets]
    return [allow("Notices", ["s3:GetBucketNotification"], arns)] if arns else []


def start_tasks(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """See tasks' cluster and images, and start tasks of the instance, now. CloudFormation names the
    roles of tasks; the instance's other roles trust other services than ECS."""
    if "networking" not in deployment.stacks:
        return []
    kinds = [COMPACTION_JOBS.kind]
    kinds += [INGEST_JOBS.kind] if "ingest" in deployment.stacks else []
    definitions = [lake.of("ecs", f"task-definition/{deployment.name(kind)}:*") for kind in kinds]
    name = deployment.name("tasks")
    cluster = lake.of("ecs", f"cluster/{name}")
    images = lake.of("ecr", f"repository/cdk-*-container-assets-{lake.account}-{lake.region}")
    roles = f"arn:{lake.partition}:iam::{lake.account}:role/{deployment.name('*')}"
    in_cluster = {"ecs:cluster": cluster}
    tagged = {"ecs:CreateAction": "RunTask"}
    passed = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
    return [
        allow("Cluster", ["ecs:DescribeClusters"], [cluster]),
        allow("Images", ["ecr:DescribeImages"], [images]),
        allow("CountTasks", ["ecs:ListTasks"], ["*"], ArnEquals=in_cluster),
        allow("StartTasks", ["ecs:RunTask"], definitions, ArnEquals=in_cluster),
        allow("Tags", ["ecs:TagResource"], [lake.of("ecs", f"task/{name}/*")], StringEquals=tagged),
        allow("TaskRoles", ["iam:PassRole"], [roles], StringEquals=passed),
    ]


def turn_on_parts(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """Let event sources hand messages to functions again, and alarms tell of themselves. What turns
    versions of the bucket, recovery and protection of tables on could turn them off, too: that is
    left to who deploys."""
    ours = deployment.name("*")
    functions = {"lambda:FunctionArn": lake.of("lambda", f"function:{ours}")}
    sources = [lake.of("lambda", "event-source-mapping:*")]
    alarms = ["cloudwatch:EnableAlarmActions", "cloudwatch:PutMetricAlarm"]
    return [
        allow("EventSources", ["lambda:UpdateEventSourceMapping"], sources, ArnLike=functions),
        allow("AlarmActions", alarms, [lake.of("cloudwatch", f"alarm:{ours}")]),
    ]
