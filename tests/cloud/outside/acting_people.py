"""People of an instance, who assume roles, and what each may try: one request of AWS a name."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import boto3
from botocore.exceptions import ClientError

from lakebed.model.names import TableId
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance

NAME = f"lakebed-{INSTANCE}"
DATA, RESULTS = (f"{NAME}-{part}-{ACCOUNT}-{REGION}" for part in ("data", "results"))
OBJECTS = "lake/objects"
DENIED = {"AccessDenied", "AccessDeniedException"}

Client = Any
"""One of boto3's: their classes are made at run time."""
Credentials = Mapping[str, str]
"""As AWS's variables are called."""


class Person:
    """Somebody with credentials. Requests go to the instance's cloud."""

    def __init__(self, instance: RunningInstance, credentials: Credentials) -> None:
        self.credentials = credentials
        self._places = instance.cloud.environment()
        self._clients: dict[str, Client] = {}

    def client(self, service: str) -> Client:
        """Return a client of a service."""
        if service not in self._clients:
            make: Any = boto3.Session().client
            self._clients[service] = make(
                service,
                region_name=REGION,
                endpoint_url=self._places["AWS_ENDPOINT_URL"],
                verify=self._places["AWS_CA_BUNDLE"],
                aws_access_key_id=self.credentials["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=self.credentials["AWS_SECRET_ACCESS_KEY"],
                aws_session_token=self.credentials.get("AWS_SESSION_TOKEN"),
            )
        return self._clients[service]

    def may(self, action: "Action", table: TableId) -> bool:
        """Whether a request is let through, whatever becomes of it then."""
        try:
            action.ask(self, table)
        except ClientError as error:
            return str(error.response["Error"]["Code"]).rpartition(".")[2] not in DENIED
        return True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Until the block ends, this process has these credentials."""
        with patch.dict(os.environ, dict(self.credentials)):
            yield


class Action(NamedTuple):
    """A request, and who may make it."""

    name: str
    ask: Callable[[Person, TableId], object]
    roles: str


def user(instance: RunningInstance, name: str) -> Person:
    """Return a user of IAM, who may assume any role that lets them."""
    iam = instance.cloud.client("iam")
    if name not in {one["UserName"] for one in iam.list_users()["Users"]}:
        iam.create_user(UserName=name)
    may = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [may]})
    iam.put_user_policy(UserName=name, PolicyName="roles", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    known = {"AWS_ACCESS_KEY_ID": "AccessKeyId", "AWS_SECRET_ACCESS_KEY": "SecretAccessKey"}
    return Person(instance, {variable: key[part] for variable, part in known.items()})


def with_role(instance: RunningInstance, person: Person, role: str) -> Person:
    """Return a person who has assumed a role. Raises: ClientError: they may not."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    assumed = person.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    return Person(
        instance,
        {
            "AWS_ACCESS_KEY_ID": assumed["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": assumed["SecretAccessKey"],
            "AWS_SESSION_TOKEN": assumed["SessionToken"],
        },
    )


def queue_url(person: Person, kind: str) -> str:
    """Return the URL of a queue, by its kind."""
    places = person.client("sqs").meta.endpoint_url
    return f"{places}/{ACCOUNT}/{NAME}-{kind}.fifo"


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
