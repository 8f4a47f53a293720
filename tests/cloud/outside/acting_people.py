"""People of an instance, who assume roles."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import ClientError

from lakebed.model.names import TableId
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance, with_variables

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
        with with_variables(self.credentials):
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
