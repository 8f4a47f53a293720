"""Defines what people may do with an instance: a policy for each role, and roles for those who are
named.

Policies cost nothing and are always there, to be attached to users, groups or roles of one's own.
They name what the other stacks make by its physical name, so this one needs none of them.
"""

from __future__ import annotations

from typing import Literal

from aws_cdk import Acknowledgment, Aws, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.deployments.optional_stacks import queues_without
from lakebed.config.dynamo_tables import (
    BATCHES_TABLE,
    LOG_TABLE,
    PROCESS_PREFIX,
    REGISTRY_TABLE,
    TRACKER_TABLE,
)
from lakebed.config.instance import OBJECTS_PREFIX, Deployment, parameter_name
from lakebed.config.job_queues import ALL_QUEUES, COMMITS, JOB_QUEUES, QUERIES
from lakebed.config.people.role_settings import PERSON_ROLES, PersonRole, principals_of
from lakebed.config.people.table_access import (
    FILE_WRITES,
    LakeArns,
    Statement,
    TablePatterns,
    allow,
    keep_usage,
    on_items,
    reading,
    use_key,
    writing,
)
from lakebed.errors import InvalidError
from stacks.outside.operator_permissions import look_at_parts, start_tasks, turn_on_parts
from stacks.permissions import RESULTS, bucket_name, results_bucket_name, source_folders

SharedPolicy = Literal["parts", "sources"]

NAMED_BY_KIND = (
    "people work on tables, files, logs and schedules that are made while the instance lives; of"
    " these the instance is exact"
)
QUERY_FUNCTION = "query-answer"
SENT_KINDS = [shape.kind for shape in JOB_QUEUES if shape.from_users and shape is not QUERIES]
"""Kinds of messages that ask for work and give no rows back."""
ALL_KINDS = [shape.kind for shape in ALL_QUEUES]
EVERY_TABLE = TablePatterns(
    id="*",
    files="tables/*/files/*",
    snapshots="tables/*/snapshots/*",
    bodies="logs/*",
)
LISTS = ["s3:ListBucket", "s3:ListBucketVersions"]
READS = ["dynamodb:GetItem", "dynamodb:Query"]
DELETES = ("s3:DeleteObject", "s3:DeleteObjectVersion")
"""The second takes the mark of a deletion back, as `lakebed fsck --repair` does."""


SHARED: dict[SharedPolicy, tuple[PersonRole, ...]] = {
    "parts": ("operator", "admin"),
    "sources": ("writer", "admin"),
}
"""Roles with a policy beside their own, by its part: IAM takes 6,144 characters of one."""


class PeopleStack(Stack):
    """`lakebed-INSTANCE-ROLE`, a managed policy for each role of people, policies that some of them
    share, and a role of that name where a setting says who may assume it."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("people"),
            description=f"Lakebed {deployment.instance}: what people may do",
        )
        shared = {
            part: self._policy(part, deployment, statements, " or ".join(roles))
            for part, roles in SHARED.items()
            if (statements := shared_statements(part, deployment))
        }
        for role in PERSON_ROLES:
            principals = principals_of(deployment.settings, role)
            statements = statements_of(role, deployment)
            if not statements:
                _refuse_idle_role(role, principals)
                continue
            own = self._policy(role, deployment, statements, f"its {role}")
            if principals:
                more = [policy for part, policy in shared.items() if role in SHARED[part]]
                self._role(role, deployment, [own, *more], principals)

    def _policy(
        self, part: str, deployment: Deployment, statements: list[Statement], who: str
    ) -> iam.ManagedPolicy:
        policy = iam.ManagedPolicy(
            self,
            f"{part.capitalize()}Policy",
            managed_policy_name=deployment.name(part),
            description=f"Lakebed {deployment.instance}: what people may do as {who}",
            document=iam.PolicyDocument(
                statements=[iam.PolicyStatement.from_json(one) for one in statements]
            ),
        )
        Validations.of(policy).acknowledge(*_accepted(statements))
        return policy

    def _role(
        self,
        role: PersonRole,
        deployment: Deployment,
        policies: list[iam.ManagedPolicy],
        principals: list[str],
    ) -> None:
        iam.Role(
            self,
            f"{role.capitalize()}Role",
            role_name=deployment.name(role),
            description=f"Lakebed {deployment.instance}: people as its {role}",
            assumed_by=iam.CompositePrincipal(*map(iam.ArnPrincipal, principals)),
            managed_policies=policies,
        )


def statements_of(role: PersonRole, deployment: Deployment) -> list[Statement]:
    """Return what a role may do. An admin may do what all others may."""
    lake = lake_arns(deployment)
    match role:
        case "reader":
            direct = deployment.settings.people_direct
            return [
                *_ask(deployment, lake),
                *_send("AskLater", lake, deployment, [QUERIES.kind]),
                *([*reading(lake, EVERY_TABLE), _list_names(lake)] if direct else []),
                *use_key(lake, *(["dynamodb"] if direct else []), "s3", "sqs", writes=True),
            ]
        case "sender":
            return [
                *_send("Send", lake, deployment, SENT_KINDS),
                *(use_key(lake, "sqs", writes=True) if _there(deployment, SENT_KINDS) else []),
            ]
        case "writer":
            return [
                *reading(lake, EVERY_TABLE),
                _list_names(lake),
                *writing(lake, EVERY_TABLE),
                *_send("Commit", lake, deployment, [COMMITS.kind]),
                allow("QueuedCommits", ["s3:PutObject"], lake.keys("tables/*/commits/*")),
                *use_key(lake, "dynamodb", "s3", "sqs", writes=True),
            ]
        case "operator":
            return [
                *_look(lake),
                *_redrive(lake, deployment, takes_jobs=False),
                *_watch(lake, deployment),
                *use_key(lake, "dynamodb", "s3", "sqs", writes=True),
            ]
        case "admin":
            return [
                *_ask(deployment, lake),
                *_own(lake),
                *_redrive(lake, deployment, takes_jobs=True),
                *_watch(lake, deployment),
                *turn_on_parts(lake, deployment),
                *use_key(lake, "dynamodb", "s3", "sqs", writes=True),
            ]


def shared_statements(part: SharedPolicy, deployment: Deployment) -> list[Statement]:
    """Return what several roles may do beside what is their own."""
    lake = lake_arns(deployment)
    if part == "sources":
        return _read_sources(lake, deployment)
    return [*look_at_parts(lake, deployment), *start_tasks(lake, deployment)]


def lake_arns(deployment: Deployment) -> LakeArns:
    """Return what policies call the parts of an instance."""
    return LakeArns(
        partition=Aws.PARTITION,
        region=Aws.REGION,
        account=Aws.ACCOUNT_ID,
        parameter=parameter_name(deployment.instance),
        bucket=bucket_name(deployment),
        objects=f"{OBJECTS_PREFIX}/objects",
        log_table=deployment.name(LOG_TABLE.part),
        registry_table=deployment.name(REGISTRY_TABLE.part),
        tracker_table=deployment.name(TRACKER_TABLE.part),
        batches_table=deployment.name(BATCHES_TABLE.part) if _has_batches(deployment) else "",
        key_arn=deployment.settings.key_arn,
    )


def _has_batches(deployment: Deployment) -> bool:
    return "batching" in deployment.stacks


def _tables(lake: LakeArns) -> list[str]:
    """Return the tables of DynamoDB, that of reports last."""
    batches = [lake.table(lake.batches_table)] if lake.batches_table else []
    return [
        *batches,
        *map(lake.table, (lake.log_table, lake.registry_table, lake.tracker_table)),
    ]


def _read_sources(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """Find files of users that are to be taken in, where the setting `sources` says that they lie:
    who submits or ingests them looks at them first."""
    found = []
    for number, (bucket, folder) in enumerate(source_folders(deployment)):
        arn = f"arn:{lake.partition}:s3:::{bucket}"
        listed: dict[str, object] = {"s3:prefix": f"{folder}*"}
        conditions = {"StringLike": listed} if folder else {}
        found += [
            allow(f"Files{number}", ["s3:GetObject"], [f"{arn}/{folder}*"]),
            allow(f"Lists{number}", ["s3:ListBucket"], [arn], **conditions),
        ]
    return found


def _ask(deployment: Deployment, lake: LakeArns) -> list[Statement]:
    """Ask queries, by the function, and fetch results."""
    results = f"arn:{Aws.PARTITION}:s3:::{results_bucket_name(deployment)}/{RESULTS}"
    function = lake.of("lambda", f"function:{deployment.name(QUERY_FUNCTION)}")
    if not _there(deployment, [QUERIES.kind]):
        return []
    return [
        allow("Ask", ["lambda:InvokeFunction"], [function]),
        allow("Results", ["s3:GetObject"], [results]),
    ]


def _list_names(lake: LakeArns) -> Statement:
    return on_items("AllNames", lake.table(lake.registry_table), ["names"], "Query")


def _send(sid: str, lake: LakeArns, deployment: Deployment, kinds: list[str]) -> list[Statement]:
    """Send messages of some kinds, as far as they have queues."""
    queues = _queues(lake, deployment, _there(deployment, kinds))
    return [allow(sid, ["sqs:GetQueueUrl", "sqs:SendMessage"], queues)] if queues else []


def _look(lake: LakeArns) -> list[Statement]:
    """See all that is known of tables, jobs and tasks, and no rows; take tables offline and put
    them online."""
    registry, tracker = lake.table(lake.registry_table), lake.table(lake.tracker_table)
    listed: dict[str, object] = {"s3:prefix": f"{OBJECTS_PREFIX}/*"}
    return [
        allow("Instance", ["ssm:GetParameter"], [lake.of("ssm", f"parameter{lake.parameter}")]),
        allow("Tables", READS, [*_tables(lake), f"{tracker}/index/*"]),
        on_items("Online", registry, ["names"], "UpdateItem"),
        on_items("Release", tracker, [f"{PROCESS_PREFIX}*"], "PutItem"),
        keep_usage(lake, "*"),
        allow("States", ["s3:GetObject"], lake.keys(EVERY_TABLE.snapshots, EVERY_TABLE.bodies)),
        allow("Lists", ["s3:ListBucket"], [lake.bucket_arn], StringLike=listed),
    ]


def _redrive(lake: LakeArns, deployment: Deployment, *, takes_jobs: bool) -> list[Statement]:
    """Count messages, look at dead ones, and send them again. takes_jobs: live ones, too."""
    seen = ["sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
    taken = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"]
    sent = [*seen, "sqs:SendMessage", *(taken if takes_jobs else [])]
    kinds = _there(deployment, ALL_KINDS)
    dead = [f"{kind}-dead" for kind in kinds]
    return [
        allow("Queues", sent, _queues(lake, deployment, kinds)),
        allow("DeadLetters", [*seen, *taken], _queues(lake, deployment, dead)),
    ]


def _watch(lake: LakeArns, deployment: Deployment) -> list[Statement]:
    """Read logs, alarms and figures; switch schedules off and on."""
    ours = deployment.name("*")
    groups = [lake.of("logs", f"log-group:{folder}/{ours}") for folder in ("/aws/lambda", "/ecs")]
    switches = ["DescribeRule", "DisableRule", "EnableRule", "ListTargetsByRule"]
    dashboard = f"arn:{lake.partition}:cloudwatch::{lake.account}:dashboard/{ours}"
    return [
        allow(
            "Schedules",
            [f"events:{action}" for action in switches],
            [lake.of("events", f"rule/{ours}")],
        ),
        allow("Logs", ["logs:FilterLogEvents"], groups),
        allow("Alarms", ["cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"], ["*"]),
        allow("Dashboard", ["cloudwatch:GetDashboard"], [dashboard]),
    ]


def _own(lake: LakeArns) -> list[Statement]:
    """Do with a lake what the library can: create and drop tables, read, write, mend."""
    tables = _tables(lake)
    writes = ("BatchWriteItem", "ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")
    objects = [f"{lake.bucket_arn}/{OBJECTS_PREFIX}/*"]
    listed: dict[str, object] = {"s3:prefix": f"{OBJECTS_PREFIX}/*"}
    return [
        allow("Instance", ["ssm:GetParameter"], [lake.of("ssm", f"parameter{lake.parameter}")]),
        allow(
            "Tables",
            [*READS, *(f"dynamodb:{action}" for action in writes)],
            [*tables, f"{tables[-1]}/index/*"],
        ),
        allow("Objects", ["s3:GetObject", *FILE_WRITES, *DELETES], objects),
        allow("Lists", LISTS, [lake.bucket_arn], StringLike=listed),
        allow("Bill", ["ce:GetCostAndUsage"], ["*"]),
    ]


def _there(deployment: Deployment, kinds: list[str]) -> list[str]:
    """Return the kinds of messages that have a queue in this instance."""
    absent = queues_without(deployment.stacks)
    return [kind for kind in kinds if kind not in absent]


def _refuse_idle_role(role: PersonRole, principals: list[str]) -> None:
    """Refuse a role that could do nothing, where a setting names who may assume it.

    Raises:
        InvalidError: with what to do.
    """
    if principals:
        hint = "take the stacks that it works with out of `without`, or the setting back"
        raise InvalidError("a role may do nothing", setting=f"people_{role}", hint=hint)


def _queues(lake: LakeArns, deployment: Deployment, kinds: list[str]) -> list[str]:
    return [lake.of("sqs", f"{deployment.name(kind)}.fifo") for kind in kinds]


def _accepted(statements: list[Statement]) -> list[Acknowledgment]:
    """Return what policies name by its kind."""
    shown = {
        Aws.PARTITION: "<AWS::Partition>",
        Aws.REGION: "<AWS::Region>",
        Aws.ACCOUNT_ID: "<AWS::AccountId>",
    }
    found = []
    for resource in {one for s in statements for one in s["Resource"] if "*" in one}:
        text = resource
        for token, name in shown.items():
            text = text.replace(token, name)
        rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::{text}]"
        found.append(Acknowledgment(id=rule, reason=NAMED_BY_KIND))
    return found
