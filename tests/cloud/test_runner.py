"""The runner itself, on an assembly written by hand: a schedule, a queue, two functions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from tests.cloud.assemblies import (
    alarm,
    arn,
    function,
    invoke_config,
    notices,
    outcomes,
    permission,
    queue,
    role,
    rule,
    source,
    task,
    write_assembly,
)

CODE = """
import json, os, sys, time
from datetime import datetime, timezone

import boto3

QUEUE, TABLE = os.environ["QUEUE"], os.environ["TABLE"]
sqs, dynamodb = boto3.client("sqs"), boto3.client("dynamodb")


def trigger(event, context):
    for group in "abc":
        sqs.send_message(
            QueueUrl=QUEUE, MessageBody=json.dumps({"group": group}), MessageGroupId=group,
            MessageDeduplicationId=group + event["time"],
        )


def handle(event, context):
    failures, poisoned = [], set()
    for record in event["Records"]:
        group = record["attributes"]["MessageGroupId"]
        body = json.loads(record["body"])
        if body.get("poison") or group in poisoned:
            poisoned.add(group)
            failures.append({"itemIdentifier": record["messageId"]})
            continue
        for name in ("sleep", "exit", "hoard"):
            if name in body:
                ACTS[name](body[name])
        dynamodb.update_item(
            TableName=TABLE, Key={"pk": {"S": group}}, UpdateExpression="ADD times :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
        print(json.dumps({"_aws": {"CloudWatchMetrics": [{
            "Namespace": "Test", "Dimensions": [["of"]],
            "Metrics": [{"Name": "handled", "Unit": "Count"}]}]}, "of": group, "handled": 1}))
    return {"batchItemFailures": failures}


def hoard(mib):
    hoard.held = bytearray(mib << 20)
    time.sleep(3)


ACTS = {"sleep": time.sleep, "exit": os._exit, "hoard": hoard}


def look(event, context):
    return {
        "path": sys.path, "now": datetime.now(timezone.utc).timestamp(), "time": time.time(),
        "names": sorted(name for name in os.environ if not name.startswith("AWS_")),
        "left": context.get_remaining_time_in_millis(), "own": os.environ["FOLDER"],
    }


def refused(event, context):
    return sqs.delete_queue(QueueUrl=QUEUE)
"""

IMAGE = """
import os, signal, sys, time

ours = {name: value for name, value in sorted(os.environ.items()) if "LAKEBED" in name}
print(ours, sys.path, flush=True)
if os.environ["LAKEBED_DOES"] == "wait":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
    time.sleep(60)
if os.environ["LAKEBED_DOES"] == "hang":
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        time.sleep(60)
sys.exit(int(os.environ["LAKEBED_DOES"]))
"""

VARIABLES = {"QUEUE": {"Ref": "Queue"}, "TABLE": {"Ref": "Table"}, "FOLDER": "/tmp/states"}
READ = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def stacks() -> dict[str, Any]:
    stores = {
        "Queue": queue("work", dead="Dead", VisibilityTimeout=30),
        "Dead": queue("work-dead"),
        "Table": outcomes("outcomes"),
        "DeadAlarm": alarm(
            "dead",
            "AWS/SQS",
            "ApproximateNumberOfMessagesVisible",
            tells="Operators",
            QueueName="work-dead.fifo",
        ),
        "OtherDead": queue("other-dead"),
        "OtherDeadAlarm": alarm(
            "other-dead",
            "AWS/SQS",
            "ApproximateNumberOfMessagesVisible",
            QueueName="other-dead.fifo",
        ),
        **notices("Operators", "heard"),
        "HandledAlarm": alarm("handled", "Test", "handled", of="b"),
        "ErrorAlarm": alarm("errors", "AWS/Lambda", "Errors", FunctionName={"Ref": "Handler"}),
        "Sender": role((["sqs:SendMessage"], arn("Queue"))),
        "Worker": role((READ, arn("Queue")), (["dynamodb:UpdateItem"], arn("Table"))),
        "Trigger": function(
            "trigger", "app.trigger", "Sender", Environment={"Variables": VARIABLES}
        ),
        "Handler": function("handle", "app.handle", "Worker", Environment={"Variables": VARIABLES}),
        "Look": function("look", "app.look", "Worker", Environment={"Variables": VARIABLES}),
        "Refused": function(
            "refused", "app.refused", "Worker", Environment={"Variables": VARIABLES}
        ),
        "Source": source("Queue", "Handler", BatchSize=10),
        "Rule": rule("each-hour", "rate(1 hour)", "Trigger"),
        "May": permission("Trigger", "Rule"),
        "Once": function("once", "app.refused", "Worker", Environment={"Variables": VARIABLES}),
        "OnceRuns": invoke_config("Once", retries=0),
        "OnceRule": rule("once-each-hour", "rate(1 hour)", "Once", State="DISABLED"),
        "MayOnce": permission("Once", "OnceRule"),
        "Cluster": {"Type": "AWS::ECS::Cluster", "Properties": {"ClusterName": "tasks"}},
        "Task": task("worker", "Worker", LAKEBED_DOES="3"),
        "Net": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    }
    return {"runner": stores}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("cloud")
    assembly = write_assembly(folder / "assembly", stacks(), code=CODE, image=IMAGE)
    with LocalCloud(assembly, folder / "run", clock=SystemClock()) as cloud:
        yield cloud


@pytest.fixture(autouse=True)
def _clean(cloud: LocalCloud) -> Iterator[None]:
    yield
    cloud.faults.dies_before_delete = cloud.faults.delivers_twice = lambda *_: False
    cloud.failures.clear()
    for name in ("work.fifo", "work-dead.fifo", "other-dead.fifo"):
        cloud.client("sqs").purge_queue(QueueUrl=url(cloud, name))
    for group in times(cloud):
        key = {"pk": {"S": group}}
        cloud.client("dynamodb").delete_item(TableName="outcomes", Key=key)


def url(cloud: LocalCloud, name: str) -> str:
    return str(cloud.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])


def send(cloud: LocalCloud, group: str, **body: object) -> None:
    cloud.client("sqs").send_message(
        QueueUrl=url(cloud, "work.fifo"),
        MessageBody=json.dumps(body),
        MessageGroupId=group,
        MessageDeduplicationId=f"{group}-{body}-{cloud.clock.now()}",
    )


def times(cloud: LocalCloud) -> dict[str, int]:
    items = cloud.client("dynamodb").scan(TableName="outcomes")["Items"]
    return {item["pk"]["S"]: int(item["times"]["N"]) for item in items}


def waiting(cloud: LocalCloud, name: str) -> int:
    figures = cloud.queues()[name]
    return int(figures["visible"] + figures["hidden"])


def test_a_schedule_calls_its_function_whose_messages_call_another(cloud: LocalCloud) -> None:
    cloud.fire()
    assert times(cloud) == {"a": 1, "b": 1, "c": 1}
    assert waiting(cloud, "work.fifo") == 0
    assert not cloud.failures


def test_a_schedule_that_is_fired_again_at_once_asks_again(cloud: LocalCloud) -> None:
    for _ in range(5):
        cloud.fire("each-hour")
    assert times(cloud) == {"a": 5, "b": 5, "c": 5}


def test_virtual_hours_pass_in_a_moment_and_schedules_fire_at_each(cloud: LocalCloud) -> None:
    before = cloud.clock.seconds()
    cloud.advance(3 * 3_600)
    assert times(cloud) == {"a": 3, "b": 3, "c": 3}
    assert cloud.clock.seconds() - before == pytest.approx(3 * 3_600, abs=60)
    told = cloud.invoke("look", {}).value
    assert told["now"] == pytest.approx(cloud.clock.seconds(), abs=30)
    assert told["time"] == pytest.approx(told["now"], abs=1)


def test_a_function_sees_its_bundle_and_its_environment_and_nothing_else(
    cloud: LocalCloud,
) -> None:
    told = cloud.invoke("look", {}).value
    assert not [path for path in told["path"] if "site-packages" in path]
    given = {"QUEUE", "TABLE", "FOLDER"}
    assert given <= set(told["names"])
    known = {"HOME", "LAMBDA_TASK_ROOT", "LANG", "PATH", "SSL_CERT_FILE", "TMPDIR", "TZ"}
    assert set(told["names"]) - given <= known | {"_HANDLER", "LD_LIBRARY_PATH", "LC_CTYPE"}
    assert told["own"].endswith("/states")
    assert not told["own"].startswith("/tmp/states")
    assert 0 < told["left"] <= 3_000


def test_a_function_may_do_what_its_role_permits_and_nothing_else(cloud: LocalCloud) -> None:
    error = cloud.invoke("refused", {}).error
    assert error is not None
    assert "AccessDenied" in error["errorMessage"]


def test_a_poisoned_group_ends_as_dead_letters_and_holds_up_nobody(cloud: LocalCloud) -> None:
    for group, poison in (("a", False), ("b", True), ("c", False)):
        send(cloud, group, poison=poison)
    cloud.settle()
    assert times(cloud) == {"a": 1, "c": 1}
    assert cloud.alarms()["dead"] != "ALARM"
    cloud.advance(61)
    assert waiting(cloud, "work-dead.fifo") == 1
    assert cloud.alarms()["dead"] == "ALARM"
    assert 'ALARM: "dead"' in heard(cloud)
    send(cloud, "b")
    cloud.settle()
    assert times(cloud) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(("told", "other"), [("dead", "other-dead"), ("other-dead", "dead")])
def test_a_letter_in_one_queue_sets_off_the_alarm_of_that_queue_alone(
    cloud: LocalCloud, told: str, other: str
) -> None:
    cloud.advance(361, schedules=False)
    assert (cloud.alarms()[told], cloud.alarms()[other]) == ("OK", "OK")
    name = {"dead": "work-dead.fifo", "other-dead": "other-dead.fifo"}[told]
    cloud.client("sqs").send_message(
        QueueUrl=url(cloud, name),
        MessageBody="a letter",
        MessageGroupId="one",
        MessageDeduplicationId=told,
    )
    cloud.advance(361, schedules=False)
    assert (cloud.alarms()[told], cloud.alarms()[other]) == ("ALARM", "OK")


def heard(cloud: LocalCloud) -> str:
    """What the queue that is subscribed to the topic of alarms was told."""
    told = cloud.client("sqs").receive_message(
        QueueUrl=url(cloud, "heard"), MaxNumberOfMessages=10, WaitTimeSeconds=5
    )
    return "".join(json.loads(message["Body"])["Subject"] for message in told["Messages"])


def test_a_failed_run_of_a_schedule_is_repeated_as_often_as_its_function_says(
    cloud: LocalCloud,
) -> None:
    cloud.fire("once-each-hour")
    cloud.advance(600)
    assert [failure.function for failure in cloud.failures] == ["once"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"exit": 3}, "the process ended with 3"),
        ({"hoard": 400}, "more than 256 MiB"),
        ({"sleep": 30}, "Task timed out after 3 seconds"),
    ],
    ids=["exits", "takes too much memory", "takes too long"],
)
def test_a_worker_that_fails_is_replaced_and_its_messages_come_back(
    cloud: LocalCloud, body: dict[str, object], told: str
) -> None:
    send(cloud, "a", **body)
    cloud.settle()
    assert [told in failure.error["errorMessage"] for failure in cloud.failures] == [True]
    assert waiting(cloud, "work.fifo") == 1
    send(cloud, "b")
    cloud.settle()
    assert times(cloud) == {"b": 1}


def test_a_worker_killed_before_the_delete_does_its_work_again(cloud: LocalCloud) -> None:
    kills = iter([True])
    cloud.faults.dies_before_delete = lambda *_: next(kills, False)
    send(cloud, "a")
    cloud.settle()
    assert times(cloud) == {"a": 1}
    cloud.advance(31)
    assert times(cloud) == {"a": 2}
    assert waiting(cloud, "work.fifo") == 0


def test_a_batch_may_be_delivered_twice(cloud: LocalCloud) -> None:
    cloud.faults.delivers_twice = lambda *_: True
    send(cloud, "a")
    cloud.settle()
    assert times(cloud) == {"a": 2}


def test_what_functions_print_and_how_they_fail_sets_off_alarms(cloud: LocalCloud) -> None:
    cloud.advance(301)
    send(cloud, "b")
    cloud.settle()
    assert cloud.alarms()["handled"] == "ALARM"
    assert cloud.alarms()["errors"] != "ALARM"
    send(cloud, "a", exit=1)
    cloud.settle()
    assert cloud.alarms()["errors"] == "ALARM"


def start_task(cloud: LocalCloud, does: str | None = None) -> str:
    ecs = cloud.client("ecs")
    added = [{"name": "LAKEBED_DOES", "value": does}] if does else []
    asked = ecs.run_task(
        cluster="tasks",
        taskDefinition="worker",
        launchType="FARGATE",
        overrides={"containerOverrides": [{"name": "worker", "environment": added}]},
    )
    cloud.settle()
    return str(asked["tasks"][0]["taskArn"])


def exit_code(cloud: LocalCloud, arn: str) -> int:
    assert cloud.finish_tasks(seconds_max=30)
    (told,) = cloud.client("ecs").describe_tasks(cluster="tasks", tasks=[arn])["tasks"]
    assert told["lastStatus"] == "STOPPED"
    return int(told["containers"][0]["exitCode"])


def test_a_task_is_a_process_with_the_image_its_environment_and_nothing_else(
    cloud: LocalCloud,
) -> None:
    ended = start_task(cloud)
    (task,) = cloud.tasks.running
    assert exit_code(cloud, ended) == 3
    said = task.log.read_text()
    image = task.spec.image.folder
    assert f"'LAKEBED_CODE': '{image}/code', 'LAKEBED_DOES': '3'" in said
    assert "/private/worker-1/cache'" in said
    assert "site-packages" not in said


@pytest.mark.parametrize(("does", "code"), [("wait", 4), ("hang", -9)])
def test_a_task_that_is_stopped_may_end_in_order_and_is_killed_when_it_does_not(
    cloud: LocalCloud, does: str, code: int
) -> None:
    arn = start_task(cloud, does)
    (task,) = cloud.tasks.running
    while not task.log.read_bytes():
        cloud.clock.sleep(0.02)
    cloud.client("ecs").stop_task(cluster="tasks", task=arn)
    assert cloud.finish_tasks(seconds_max=30)
    assert task.process.returncode == code
