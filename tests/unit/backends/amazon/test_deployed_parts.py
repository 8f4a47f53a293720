"""What was deployed, as an emulator of AWS tells it: as it was made, and as it was changed by hand.
What any deployment answers is in tests/unit/doctor."""

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.deployed.parts import AmazonDeployedParts
from lakebed.backends.system.clock import SystemClock
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId
from lakebed.errors import DeniedError
from lakebed.ports.examined.deployed_parts import (
    DeployedAlarm,
    DeployedBucket,
    DeployedFunction,
    DeployedNetwork,
    DeployedQueue,
    DeployedRule,
    DeployedStack,
    DeployedTable,
    DeployedTask,
    Recipient,
)
from tests.unit.backends.amazon.small_cloud import ACCOUNT, BUCKET, REGION, Cloud, parts_of
from tests.unit.backends.amazon_clients import made_up_clients

NAMED = InstanceResources(
    instance=InstanceId("dev"), bucket="b", log_table="l", registry_table="r", tracker_table="t"
)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", REGION)
    with mock_aws():
        yield Cloud()


@pytest.fixture
def parts(cloud: Cloud) -> Iterator[AmazonDeployedParts]:
    with closing(AmazonClients(clock=SystemClock(), rng=random.Random(0))) as clients:
        yield parts_of(clients, cloud.resources)


@pytest.mark.parametrize(
    ("answer", "told"), [({"EventBridgeConfiguration": {}}, True), ({}, False)]
)
def test_a_bucket_that_sends_its_events_says_so_by_a_field_that_is_empty(
    parts: AmazonDeployedParts,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, object],
    told: bool,
) -> None:
    """Moto keeps it, and does not tell."""
    s3 = parts._asking.clients.s3
    monkeypatch.setattr(s3, "get_bucket_notification_configuration", lambda **_: answer)
    assert parts.sends_file_events("landing") is told


def rule_of(parts: AmazonDeployedParts) -> DeployedRule:
    (found,) = [rule for rule in parts.rules() if rule.scheduled]
    return found


def test_schedules_event_sources_and_functions_of_this_instance_alone(
    cloud: Cloud, parts: AmazonDeployedParts
) -> None:
    assert parts.identity().account == ACCOUNT
    assert sorted(parts.rules(), key=lambda rule: rule.name) == [
        DeployedRule(name="lakebed-dev-arrivals-0", enabled=True, targets=0, scheduled=False),
        DeployedRule(name="lakebed-dev-garbage", enabled=True, targets=1),
    ]
    assert parts.functions() == [DeployedFunction(name="lakebed-dev-garbage-handle")]
    (source,) = parts.event_sources("garbage")
    assert (source.id, source.function) == (cloud.source, "lakebed-dev-garbage-handle")
    assert source.enabled
    assert parts.event_sources("sweep") == ()
    queue = DeployedQueue(kind="garbage", has_dead_letters=True, kept_seconds=1_209_600)
    assert (parts.queue("garbage"), parts.queue("sweep")) == (queue, None)


def test_what_was_turned_off_is_turned_on_again(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    cloud.client("events").disable_rule(Name="lakebed-dev-garbage")
    cloud.client("events").remove_targets(Rule="lakebed-dev-garbage", Ids=["1"])
    functions = cloud.client("lambda")
    functions.update_event_source_mapping(UUID=cloud.source, Enabled=False)
    functions.put_function_concurrency(
        FunctionName="lakebed-dev-garbage-handle", ReservedConcurrentExecutions=0
    )
    assert rule_of(parts) == DeployedRule(name="lakebed-dev-garbage", enabled=False, targets=0)
    assert not parts.event_sources("garbage")[0].enabled
    assert parts.functions()[0].reserved == 0
    parts.turn_on_rule("lakebed-dev-garbage")
    parts.turn_on_event_source(cloud.source)
    assert rule_of(parts).enabled
    assert parts.event_sources("garbage")[0].enabled


def test_alarms_and_who_hears_of_them(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    cloud.put_alarm("lakebed-dev-two-garbage-age")
    cloud.put_alarm("lakebed-dev-sweep-age")
    cloud.put_alarm("lakebed-dev-query-age", AlarmActions=[cloud.topic], ActionsEnabled=False)
    cloud.client("cloudwatch").set_alarm_state(
        AlarmName="lakebed-dev-garbage-age", StateValue="ALARM", StateReason="too old"
    )
    found = {alarm.name: alarm for alarm in parts.alarms()}
    assert sorted(found) == [f"lakebed-dev-{kind}-age" for kind in ("garbage", "query", "sweep")]
    assert found["lakebed-dev-garbage-age"] == DeployedAlarm(
        name="lakebed-dev-garbage-age",
        state="ALARM",
        actions=(cloud.topic,),
        is_on=True,
        reason="too old",
    )
    assert not found["lakebed-dev-query-age"].is_on
    assert parts.topic() == cloud.topic
    parts.add_alarm_action("lakebed-dev-sweep-age", cloud.topic)
    (put,) = cloud.client("cloudwatch").describe_alarms(AlarmNames=["lakebed-dev-sweep-age"])[
        "MetricAlarms"
    ]
    assert put["AlarmActions"] == [cloud.topic]
    assert (put["Threshold"], put["AlarmDescription"]) == (3_600, "see docs/operate/queue-age.md")
    assert put["TreatMissingData"] == "notBreaching"


def test_stores_as_they_were_made(parts: AmazonDeployedParts) -> None:
    assert parts.bucket() == DeployedBucket(
        name=BUCKET,
        versioned=True,
        closed=True,
        old_versions_days=3,
        expiring=(),
        write_once=True,
    )
    assert parts.tables() == [
        DeployedTable(name=name, status="ACTIVE", recovers=True, protected=True, expiry="")
        for name in ("lakebed-dev-log", "lakebed-dev-registry")
    ], "there is no tracker"


def test_stores_that_were_changed_by_hand(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    s3, dynamodb = cloud.client("s3"), cloud.client("dynamodb")
    expires = {
        "ID": "mine",
        "Status": "Enabled",
        "Filter": {"Prefix": "lake/objects/"},
        "Expiration": {"Days": 30},
    }
    cloud.put_rules(expires)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})
    s3.delete_public_access_block(Bucket=BUCKET)
    s3.delete_bucket_policy(Bucket=BUCKET)
    log = "lakebed-dev-log"
    dynamodb.update_table(TableName=log, DeletionProtectionEnabled=False)
    dynamodb.update_continuous_backups(
        TableName=log, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )
    dynamodb.update_time_to_live(
        TableName=log, TimeToLiveSpecification={"Enabled": True, "AttributeName": "at"}
    )
    assert parts.bucket() == DeployedBucket(
        name=BUCKET,
        versioned=False,
        closed=False,
        old_versions_days=3,
        expiring=("lake/objects/",),
        write_once=False,
    )
    table = parts.tables()[0]
    assert (table.recovers, table.protected, table.expiry) == (False, False, "at")
    parts.keep_versions()
    parts.keep_history(log)
    parts.protect(log)
    bucket, table = parts.bucket(), parts.tables()[0]
    assert bucket is not None
    assert bucket.versioned
    assert (table.recovers, table.protected) == (True, True)
    s3.delete_bucket_lifecycle(Bucket=BUCKET)
    parts.keep_versions()
    bucket = parts.bucket()
    assert bucket is not None
    assert (bucket.old_versions_days, bucket.expiring) == (None, ())


def test_a_key_that_is_to_be_deleted(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    kms = cloud.client("kms")
    made = kms.create_key()["KeyMetadata"]
    arn = made["Arn"]
    assert parts.key_state(arn) == "Enabled"
    kms.schedule_key_deletion(KeyId=made["KeyId"])
    with closing(AmazonClients(clock=SystemClock(), rng=random.Random(0))) as clients:
        assert parts_of(clients, cloud.resources).key_state(arn) == "PendingDeletion"


def test_tasks_and_their_images(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    registry = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
    cloud.client("ecr").create_repository(repositoryName="assets")
    ecs = cloud.client("ecs")
    for kind in ("compaction", "ingest"):
        container = {"name": kind, "image": f"{registry}/assets:gone", "memory": 512}
        ecs.register_task_definition(family=f"lakebed-dev-{kind}", containerDefinitions=[container])
    image = f"{registry}/assets:gone"
    assert parts.tasks() == [
        DeployedTask(kind=kind, image=image, is_there=False) for kind in ("compaction", "ingest")
    ]
    assert parts.cluster_state() == ""
    ecs.create_cluster(clusterName="lakebed-dev-tasks")
    parts._forget()
    assert parts.cluster_state() == "ACTIVE"


def test_a_network_with_one_gateway_that_a_route_leads_to(
    cloud: Cloud, parts: AmazonDeployedParts
) -> None:
    assert parts.network() is None
    ec2 = cloud.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "lakebed-dev-tasks"}])
    routes = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    for service, tables in (("s3", [routes]), ("dynamodb", [])):
        ec2.create_vpc_endpoint(
            VpcId=vpc,
            ServiceName=f"com.amazonaws.{REGION}.{service}",
            VpcEndpointType="Gateway",
            RouteTableIds=tables,
        )
    parts._forget()
    assert parts.network() == DeployedNetwork(id=vpc, gateways=("s3",))


def test_what_runs_bulk_imports(cloud: Cloud, parts: AmazonDeployedParts) -> None:
    assert parts.spark_state() == ""
    cloud.client("emr-serverless").create_application(
        name="lakebed-dev-bulk-import", releaseLabel="emr-7.0.0", type="SPARK"
    )
    parts._forget()
    assert parts.spark_state() in {"CREATED", "STARTED", "STOPPED"}


def summary(name: str, status: str, **more: object) -> dict[str, object]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return {"StackName": name, "StackStatus": status, "CreationTime": at, **more}


def test_stacks_of_this_instance_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    drift = {"StackDriftStatus": "DRIFTED"}
    pages = [
        {
            "StackSummaries": [
                summary("lakebed-dev-data", "UPDATE_COMPLETE", DriftInformation=drift),
                summary("lakebed-dev-old", "DELETE_COMPLETE"),
            ],
            "NextToken": "more",
        },
        {
            "StackSummaries": [
                summary("lakebed-dev-two-data", "CREATE_COMPLETE"),
                summary("lakebed-dev-state", "UPDATE_ROLLBACK_FAILED"),
            ]
        },
    ]
    with made_up_clients(monkeypatch, tries_max=1) as clients:
        stacks, ssm = Stubber(clients.stacks), Stubber(clients.ssm)
        others = [{"Name": "/lakebed/dev"}, {"Name": "/lakebed/dev-two"}, {"Name": "/lakebed/a"}]
        ssm.add_response("get_parameters_by_path", {"Parameters": others}, {"Path": "/lakebed/"})
        stacks.add_response("list_stacks", pages[0], {})
        stacks.add_response("list_stacks", pages[1], {"NextToken": "more"})
        with stacks, ssm:
            assert parts_of(clients, NAMED).stacks() == [
                DeployedStack(name="lakebed-dev-data", status="UPDATE_COMPLETE", drift="DRIFTED"),
                DeployedStack(name="lakebed-dev-state", status="UPDATE_ROLLBACK_FAILED"),
            ]


def test_answers_that_only_aws_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    with made_up_clients(monkeypatch, tries_max=1) as clients:
        parts = parts_of(clients, NAMED)
        functions, ssm = Stubber(clients.functions), Stubber(clients.ssm)
        who, topics = Stubber(clients.sts), Stubber(clients.topics)
        ssm.add_client_error("get_parameters_by_path", "AccessDeniedException")
        functions.add_response(
            "list_functions", {"Functions": [{"FunctionName": "lakebed-dev-a"}]}, {}
        )
        functions.add_response(
            "get_function_configuration",
            {
                "State": "Failed",
                "StateReason": "the role is gone",
                "EphemeralStorage": {"Size": 2_048},
            },
            {"FunctionName": "lakebed-dev-a"},
        )
        functions.add_response("get_function_concurrency", {}, {"FunctionName": "lakebed-dev-a"})
        who.add_response(
            "get_caller_identity", {"Account": ACCOUNT, "Arn": "arn:aws:iam::1:user/a"}
        )
        topic = f"arn:aws:sns:eu-central-1:{ACCOUNT}:lakebed-dev-alarms"
        topics.add_response("get_topic_attributes", {"Attributes": {}}, {"TopicArn": topic})
        pending = {
            "SubscriptionArn": "PendingConfirmation",
            "Protocol": "email",
            "Endpoint": "a@b.c",
        }
        topics.add_response(
            "list_subscriptions_by_topic", {"Subscriptions": [pending]}, {"TopicArn": topic}
        )
        with functions, ssm, who, topics:
            (function,) = parts.functions()
            assert function.problem == "Failed: the role is gone"
            assert function.disk_mib == 2_048
            assert parts.recipients() == [
                Recipient(protocol="email", endpoint="a@b.c", confirmed=False)
            ]


def test_a_refusal_names_the_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    with made_up_clients(monkeypatch, tries_max=1) as clients:
        s3 = Stubber(clients.s3)
        s3.add_client_error("get_bucket_versioning", "AccessDenied", http_status_code=403)
        with s3, pytest.raises(DeniedError) as refused:
            parts_of(clients, NAMED).bucket()
    assert refused.value.facts["permission"] == "s3:GetBucketVersioning"
