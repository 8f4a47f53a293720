"""Feeds of an instance: what senders push by the URL of a function is landed by tasks, once."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.feeds.test_feeds import Operator
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.test_rare_entries import bodies, texts
from tests.cloud.users import stop_tasks

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("no_tasks_left")]

FUNCTION = f"lakebed-{INSTANCE}-feeds-push"
ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{FUNCTION}"
BOTH = ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction")
"""What a sender may do."""
PUSHED = """
[feed.pushed]
source = { push = true }
decoder = { format = "json" }
rotate_seconds = 1
[feed.guarded]
source = { push = true, token = "secret:kafka" }
[connection.pushed]
feed = "pushed"
table = "pushed"
policy = "Prompt"
[policy.Prompt]
extends = "FaultTolerant"
rotate_seconds = 1
"""
NDJSON = {"Content-Type": "application/x-ndjson"}


class Heard(NamedTuple):
    """What a sender hears."""

    status: int
    said: dict[str, Any]
    head: Mapping[str, str]


class Sender:
    """Pushes, as a role that may do some things to the function and nothing else."""

    def __init__(self, instance: RunningInstance, name: str, *actions: str) -> None:
        self.instance = instance
        iam = instance.cloud.client("iam")
        own = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
        may = {"Effect": "Allow", "Action": actions or "sqs:SendMessage", "Resource": ARN}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(own))
        iam.put_role_policy(RoleName=name, PolicyName="push", PolicyDocument=_document(may))
        assumed = instance.cloud.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{name}", RoleSessionName="sender"
        )["Credentials"]
        self.credentials = Credentials(
            assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
        )
        self.name = name

    def forget(self) -> None:
        """Leave no role to the next test."""
        iam = self.instance.cloud.client("iam")
        iam.delete_role_policy(RoleName=self.name, PolicyName="push")
        iam.delete_role(RoleName=self.name)

    def push(
        self,
        numbers: range,
        key: str = "",
        *,
        feed: str = "pushed",
        body: bytes | None = None,
        content_type: str = NDJSON["Content-Type"],
        changes: Mapping[str, str] | None = None,
        is_signed: bool = True,
    ) -> Heard:
        """Push rows. changes: to headers, after they were signed."""
        text = b"".join(json.dumps({"id": n}).encode() + b"\n" for n in numbers)
        body = text if body is None else body
        headers = {"Content-Type": content_type} | ({"Idempotency-Key": key} if key else {})
        url = f"{url_of(self.instance)}{feed}"
        request = AWSRequest("POST", url, headers, body)
        if is_signed:
            SigV4Auth(self.credentials, "lambda", REGION).add_auth(request)
        return _sent(self.instance, url, body, {**request.headers, **(changes or {})})


def _document(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _sent(instance: RunningInstance, url: str, body: bytes, headers: dict[str, str]) -> Heard:
    parts = urlsplit(url)
    trusted = ssl.create_default_context(cafile=instance.cloud.environment()["SSL_CERT_FILE"])
    where = f"{parts.hostname}", parts.port
    with closing(http.client.HTTPSConnection(*where, context=trusted, timeout=60)) as client:
        client.request("POST", parts.path, body, headers)
        answer = client.getresponse()
        return Heard(answer.status, json.loads(answer.read()), dict(answer.getheaders()))


def url_of(instance: RunningInstance) -> str:
    """Return the address that the stack says."""
    outputs = instance.cloud.deployment.outputs[f"lakebed-{INSTANCE}-feed-push"]
    url: str = outputs["Url"]
    return url


@pytest.fixture
def feeds(instance: RunningInstance, tmp_path: Path) -> Iterator[Operator]:
    operator = Operator(instance, tmp_path)
    operator.types("table", "create", "pushed", "--row-key", "id:int64")
    operator.starts("pushed", PUSHED)
    operator._feeds.append("guarded")
    yield operator
    operator.drop_all()
    for key in segments(instance):
        instance.cloud.client("s3").delete_object(Bucket=bucket_of(instance), Key=key)


@pytest.fixture
def sender(instance: RunningInstance) -> Iterator[Sender]:
    sender = Sender(instance, "sender", *BOTH)
    yield sender
    sender.forget()


def test_what_is_pushed_by_the_url_is_landed_by_a_task_once(
    feeds: Operator, sender: Sender
) -> None:
    first = sender.push(range(10), "a")
    assert (first.status, first.said) == (200, {"records": 10, "state": "landed"})
    assert sender.push(range(10), "a").said == first.said, "while it waits"
    assert sender.push(range(10, 12)).status == 200
    assert feeds.tick() == 1
    feeds.until("they are rows", lambda: len(feeds.ids("pushed")) >= 12)
    assert sender.push(range(10), "a").said == first.said, "after it was landed"
    assert sender.push(range(9), "a").status == 409
    assert sender.push(range(12, 20), "b").status == 200
    feeds.until("they are rows, too", lambda: len(feeds.ids("pushed")) >= 20)
    feeds.until("nothing waits", lambda: not segments(feeds.instance))
    with feeds.instance.lake() as lake:
        landed = lake.table("pushed_landing").query().read_all()["value"].to_pylist()
    assert sorted(json.loads(value)["id"] for value in landed) == list(range(20))
    assert not feeds.cloud.failures


def bucket_of(instance: RunningInstance) -> str:
    buckets = instance.cloud.client("s3").list_buckets()["Buckets"]
    (bucket,) = [b["Name"] for b in buckets if "-data-" in b["Name"]]
    return f"{bucket}"


def segments(instance: RunningInstance) -> list[str]:
    """Return the keys of what was pushed into any feed, and waits."""
    s3 = instance.cloud.client("s3")
    found = s3.list_objects_v2(Bucket=bucket_of(instance), Prefix="lake/objects/feeds/")
    return [each["Key"] for each in found.get("Contents", [])]


def test_who_does_not_sign_or_may_not_invoke_is_refused_and_nothing_is_kept(
    feeds: Operator, sender: Sender
) -> None:
    assert sender.push(range(3), is_signed=False).status == 403
    assert sender.push(range(3), changes={"X-Amz-Date": "20200101T000000Z"}).status == 403
    assert sender.push(range(3), changes={"Idempotency-Key": "signed"}, key="b").status == 403
    for name, actions in (("stranger", ()), ("one", BOTH[:1]), ("other", BOTH[1:])):
        other = Sender(feeds.instance, name, *actions)
        assert other.push(range(3)).status == 403, name
        other.forget()
    assert not segments(feeds.instance)
    assert not feeds.cloud.failures


def test_what_cannot_be_pushed_is_refused_as_by_any_receiver(
    feeds: Operator, sender: Sender
) -> None:
    for feed in ("nope", "", "pushed/x"):
        found = sender.push(range(3), feed=feed)
        assert (found.status, found.said["problem"]) == (404, "no such feed here")
    assert sender.push(range(3), feed="guarded").status == 403
    assert sender.push(range(3), content_type="text/csv").status == 415
    assert sender.push(range(0)).status == 400
    large = sender.push(range(0), body=bytes((4 << 20) + 1))
    assert (large.status, large.said["hint"]) == (413, f"send at most {4 << 20} bytes at once")
    assert not segments(feeds.instance)
    assert sender.push(range(0), body=b"caf\xe9", content_type="text/plain").status == 415
    assert sender.push(range(0), body=b"x" * (4 << 20)).status == 200
    assert sender.push(range(3), content_type="text/plain; charset=utf-8").status == 200
    assert len(segments(feeds.instance)) == 2


@pytest.mark.slow
def test_a_key_is_known_by_who_meets_a_landing_table_again_whose_log_was_emptied(
    feeds: Operator, sender: Sender
) -> None:
    """What the table knows comes from a snapshot then, and from entries beside the log."""
    assert sender.push(range(5), "a").status == 200
    assert feeds.tick() == 1
    feeds.until("they are rows", lambda: len(feeds.ids("pushed")) == 5)
    feeds.until("nothing waits", lambda: not segments(feeds.instance))
    stop_tasks(feeds.instance)
    assert sender.push(range(5), "a").status == 200, "the function has met the table"
    with feeds.instance.lake() as lake:
        table = lake.table("pushed_landing")
        for seed in (1, 2, 3):
            table.clear(split_points=texts(1_700, 1_000, seed=seed))
            feeds.cloud.fire(f"lakebed-{INSTANCE}-snapshots")
        table.clear(split_points=texts(1_700, 1_000, seed=4))
        assert bodies(feeds.instance, table) > 1
    assert sender.push(range(5), "a").status == 200
    assert sender.push(range(4), "a").status == 409
    assert not segments(feeds.instance)
    assert not feeds.cloud.failures
