"""What each of the people of an instance may try: one request of AWS a name."""

from collections.abc import Callable
from typing import Any

from lakebed.model.names import TableId
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE
from tests.cloud.outside.acting_people import (
    DATA,
    NAME,
    OBJECTS,
    RESULTS,
    Action,
    Person,
    queue_url,
)


def send_to(kind: str) -> Callable[[Person, TableId], object]:
    """Return a request that sends a message that can never work."""
    return lambda person, _: person.client("sqs").send_message(
        QueueUrl=queue_url(person, kind),
        MessageBody="{}",
        MessageGroupId="one",
        MessageDeduplicationId="one",
    )


def receive_from(kind: str) -> Callable[[Person, TableId], object]:
    """Return a request that receives a message."""
    return lambda person, _: person.client("sqs").receive_message(
        QueueUrl=queue_url(person, kind), VisibilityTimeout=0
    )


def get(key: str, bucket: str = DATA) -> Callable[[Person, TableId], object]:
    """Return a request that reads an object. key: {} stands for a table's id."""
    return lambda person, table: person.client("s3").get_object(
        Bucket=bucket, Key=key.format(table)
    )


def put(key: str) -> Callable[[Person, TableId], object]:
    """Return a request that puts an object."""
    return lambda person, table: person.client("s3").put_object(
        Bucket=DATA, Key=key.format(table), Body=b"", IfNoneMatch="*"
    )


def remove(key: str) -> Callable[[Person, TableId], object]:
    """Return a request that deletes an object."""
    return lambda person, table: person.client("s3").delete_object(
        Bucket=DATA, Key=key.format(table)
    )


def listed(prefix: str) -> Callable[[Person, TableId], object]:
    """Return a request that lists objects."""
    return lambda person, table: person.client("s3").list_objects_v2(
        Bucket=DATA, Prefix=prefix.format(table)
    )


def items(part: str, method: str, key: str, sort: object) -> Callable[..., object]:
    """Return a request about an item, which changes none: what is there is not changed, and what is
    not there does not come. part: of the name of DynamoDB's table. key: {} stands for a table's
    id."""

    def ask(person: Person, table: TableId) -> object:
        sort_key = {"N": str(sort)} if isinstance(sort, int) else {"S": str(sort)}
        named = {"pk": {"S": key.format(table)}, "sk": sort_key}
        given: dict[str, Any] = {"Item": named} if method == "put_item" else {"Key": named}
        if method == "put_item":
            given["ConditionExpression"] = "attribute_exists(made_up)"
        if method == "update_item":
            given |= SET
        if method == "query":
            values = {":pk": named["pk"]}
            given = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values}
        request = getattr(person.client("dynamodb"), method)
        return request(TableName=f"{NAME}-{part}", **given)

    return ask


def start_task(cluster: str, family: str) -> Callable[[Person, TableId], object]:
    """Return a request that starts a task of a revision that is not there."""
    definition = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{family}:999"
    return lambda person, _: person.client("ecs").run_task(
        cluster=cluster, taskDefinition=definition, launchType="FARGATE"
    )


SET = {
    "UpdateExpression": "SET #m = :m",
    "ExpressionAttributeNames": {"#m": "made_up"},
    "ExpressionAttributeValues": {":m": {"S": "x"}},
    "ConditionExpression": "attribute_exists(#m)",
}
FILE, SNAPSHOT = f"{OBJECTS}/tables/{{}}/files/0", f"{OBJECTS}/tables/{{}}/snapshots/0"
BODY = f"{OBJECTS}/logs/{{}}/0"
NOBODY = ""

ACTIONS = (
    Action(
        "ask a query",
        lambda person, _: person.client("lambda").invoke(
            FunctionName=f"{NAME}-query-answer", Payload=b"{}"
        ),
        "reader direct admin",
    ),
    Action(
        "call another function",
        lambda person, _: person.client("lambda").invoke(
            FunctionName=f"{NAME}-sweep-nameless", Payload=b"{}"
        ),
        NOBODY,
    ),
    Action("fetch a result", get("objects/results/0", RESULTS), "reader direct admin"),
    Action("send a query", send_to("query"), "reader direct operator admin"),
    Action("send an ingest job", send_to("ingest"), "sender operator admin"),
    Action("send a bulk import", send_to("bulk-import"), "sender operator admin"),
    Action("send a commit", send_to("commits"), "writer operator admin"),
    Action("submit files by a message", send_to("submissions"), "sender operator admin"),
    Action("send a compaction job", send_to("compaction"), "operator admin"),
    Action("receive a job", receive_from("ingest"), "admin"),
    Action("receive a commit", receive_from("commits"), "admin"),
    Action("receive a dead letter", receive_from("ingest-dead"), "operator admin"),
    Action(
        "count messages",
        lambda person, _: person.client("sqs").get_queue_attributes(
            QueueUrl=queue_url(person, "ingest"), AttributeNames=["All"]
        ),
        "operator admin",
    ),
    Action(
        "purge a queue",
        lambda person, _: person.client("sqs").purge_queue(
            QueueUrl=queue_url(person, "snapshots-dead")
        ),
        NOBODY,
    ),
    Action("read rows", get(FILE), "direct writer admin"),
    Action("read a state", get(SNAPSHOT), "direct writer operator admin"),
    Action("read a large entry", get(BODY), "direct writer operator admin"),
    Action("read beside the lake", get("bulk-import/objects/0"), NOBODY),
    Action("put a file", put(FILE), "writer admin"),
    Action("put a large entry", put(BODY), "writer admin"),
    Action("put queued commits", put(f"{OBJECTS}/tables/{{}}/commits/0"), "writer admin"),
    Action("put a snapshot", put(SNAPSHOT), "admin"),
    Action("put beside the lake", put("bulk-import/objects/0"), NOBODY),
    Action("delete a file", remove(FILE), "admin"),
    Action("delete beside the lake", remove("bulk-import/objects/0"), NOBODY),
    Action("list files", listed(f"{OBJECTS}/tables/{{}}/files/"), "direct writer operator admin"),
    Action("list all objects", listed(f"{OBJECTS}/"), "operator admin"),
    Action("list beside the lake", listed("bulk-import/"), NOBODY),
    Action(
        "find the instance",
        lambda person, _: person.client("ssm").get_parameter(Name=f"/lakebed/{INSTANCE}"),
        "direct writer operator admin",
    ),
    Action(
        "move the instance",
        lambda person, _: person.client("ssm").put_parameter(
            Name=f"/lakebed/{INSTANCE}", Value="{}", Type="String"
        ),
        NOBODY,
    ),
    Action(
        "find a table",
        items("registry", "get_item", "names", "nobody"),
        "direct writer operator admin",
    ),
    Action("list tables", items("registry", "query", "names", ""), "direct writer operator admin"),
    Action("see marks", items("registry", "query", "marks", ""), "operator admin"),
    Action("read the log", items("log", "query", "{}", 0), "direct writer operator admin"),
    Action("add to the log", items("log", "put_item", "nobody", 1), "writer admin"),
    Action("delete from the log", items("log", "delete_item", "nobody", 1), "admin"),
    Action(
        "scan the log",
        lambda person, _: person.client("dynamodb").scan(TableName=f"{NAME}-log", Limit=1),
        NOBODY,
    ),
    Action(
        "take a table offline",
        items("registry", "update_item", "names", "nobody"),
        "operator admin",
    ),
    Action("give a name", items("registry", "put_item", "ids", "nobody"), "admin"),
    Action("drop a name", items("registry", "delete_item", "names", "nobody"), "admin"),
    Action("mark a table", items("registry", "update_item", "marks", "nobody"), "writer admin"),
    Action("see reports", items("tracker", "query", "job#{}#0", ""), "operator admin"),
    Action(
        "list reports",
        lambda person, _: person.client("dynamodb").query(
            TableName=f"{NAME}-tracker",
            IndexName="by_state",
            KeyConditionExpression="listed = :l",
            ExpressionAttributeValues={":l": {"S": "tasks"}},
        ),
        "operator admin",
    ),
    Action("report a job", items("tracker", "put_item", "job#nobody#0", "0"), "writer admin"),
    Action(
        "report a release",
        items("tracker", "put_item", "process#nobody", "0"),
        "direct writer operator admin",
    ),
    Action("report a task", items("tracker", "put_item", "task#nobody", "0"), "admin"),
    Action("let a file wait", items("batches", "put_item", "pending#{}#0", "0"), "writer admin"),
    Action(
        "see what waits",
        items("batches", "query", "pending#{}#0", ""),
        "writer operator admin",
    ),
    Action(
        "see how far batches are",
        items("batches", "get_item", "batches#{}", "head"),
        "writer operator admin",
    ),
    Action("drop a batch", items("batches", "delete_item", "batches#{}", "nobody"), "admin"),
    Action(
        "see a batch's job",
        items("tracker", "get_item", "job#{0}#{0}-batch-1", "newest"),
        "writer operator admin",
    ),
    Action(
        "keep usage",
        items("tracker", "update_item", "usage#{}", "nobody"),
        "direct writer operator admin",
    ),
    Action(
        "see what was spent",
        items("tracker", "query", "usage#{}", ""),
        "direct writer operator admin",
    ),
    Action("read a file of users", get("files/0", "landing"), "writer admin"),
    Action("read beside files of users", get("others/0", "landing"), NOBODY),
    Action(
        "switch a schedule off",
        lambda person, _: person.client("events").disable_rule(Name=f"{NAME}-splitting"),
        "operator admin",
    ),
    Action(
        "remove a schedule",
        lambda person, _: person.client("events").delete_rule(Name=f"{NAME}-splitting"),
        NOBODY,
    ),
    Action(
        "read logs",
        lambda person, _: person.client("logs").filter_log_events(
            logGroupName=f"/aws/lambda/{NAME}-query-answer"
        ),
        "operator admin",
    ),
    Action(
        "see alarms",
        lambda person, _: person.client("cloudwatch").describe_alarms(MaxRecords=1),
        "operator admin",
    ),
    Action(
        "see the dashboard",
        lambda person, _: person.client("cloudwatch").get_dashboard(
            DashboardName=f"{NAME}-dashboard"
        ),
        "operator admin",
    ),
    Action(
        "look how tasks are started",
        lambda person, _: person.client("lambda").get_function_configuration(
            FunctionName=f"{NAME}-compaction-tasks-start"
        ),
        "operator admin",
    ),
    Action(
        "count tasks",
        lambda person, _: person.client("ecs").list_tasks(
            cluster=f"{NAME}-tasks", family=f"{NAME}-compaction"
        ),
        "operator admin",
    ),
    Action("start a task", start_task(f"{NAME}-tasks", f"{NAME}-compaction"), "operator admin"),
    Action("start a task in another cluster", start_task("default", f"{NAME}-compaction"), NOBODY),
    Action("start a task of others", start_task(f"{NAME}-tasks", "others"), NOBODY),
    Action(
        "see event sources",
        lambda person, _: person.client("lambda").list_event_source_mappings(),
        "operator admin",
    ),
    Action(
        "see how a table is made",
        lambda person, _: person.client("dynamodb").describe_table(TableName=f"{NAME}-log"),
        "operator admin",
    ),
    Action(
        "see the bucket's policy",
        lambda person, _: person.client("s3").get_bucket_policy(Bucket=DATA),
        "operator admin",
    ),
    Action(
        "see stacks",
        lambda person, _: person.client("cloudformation").list_stacks(),
        "operator admin",
    ),
    Action(
        "see other instances",
        lambda person, _: person.client("ssm").get_parameters_by_path(Path="/lakebed/"),
        "operator admin",
    ),
    Action(
        "protect a table",
        lambda person, _: person.client("dynamodb").update_table(
            TableName=f"{NAME}-log", DeletionProtectionEnabled=True
        ),
        NOBODY,
    ),
    Action(
        "drop what is stored",
        lambda person, _: person.client("dynamodb").delete_table(TableName=f"{NAME}-log"),
        NOBODY,
    ),
    Action(
        "open the bucket",
        lambda person, _: person.client("s3").delete_bucket_policy(Bucket=DATA),
        NOBODY,
    ),
    Action(
        "change a policy",
        lambda person, _: person.client("iam").put_role_policy(
            RoleName=f"{NAME}-reader", PolicyName="more", PolicyDocument="{}"
        ),
        NOBODY,
    ),
    Action(
        "take a role of the instance",
        lambda person, _: person.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{NAME}-admin", RoleSessionName="more"
        ),
        NOBODY,
    ),
)
"""What may be tried; nothing of it changes what tests rest on."""
