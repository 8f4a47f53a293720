"""What was deployed is told, and what was turned off is turned on again: in memory, and as an
emulator of AWS answers."""

import random
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
from moto import mock_aws

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.deployed.parts import AmazonDeployedParts
from lakebed.backends.memory.deployed_parts import MemoryDeployedParts
from lakebed.backends.system.clock import SystemClock
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId
from lakebed.ports.examined.deployed_parts import DeployedParts
from tests.unit.backends.amazon.small_cloud import BUCKET, REGION, Cloud, parts_of

RULE, ALARM, LOG = "lakebed-dev-garbage", "lakebed-dev-garbage-age", "lakebed-dev-log"


@pytest.fixture(params=["memory", "aws"])
def parts(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DeployedParts]:
    """Those of an instance in which a schedule, an event source and the actions of an alarm were
    turned off, and versions, recovery and protection, too."""
    if request.param == "memory":
        yield off_in_memory()
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", REGION)
    with mock_aws(), closing(AmazonClients(clock=SystemClock(), rng=random.Random(0))) as clients:
        made: AmazonDeployedParts = parts_of(clients, off_in_the_emulator().resources)
        yield made


def off_in_memory() -> MemoryDeployedParts:
    resources = InstanceResources(
        instance=InstanceId("dev"),
        bucket=BUCKET,
        log_table=LOG,
        registry_table="lakebed-dev-registry",
        tracker_table="lakebed-dev-tracker",
        queues={"garbage": "url"},
        sources=("s3://landing/trips",),
    )
    made, off = MemoryDeployedParts(resources), msgspec.structs.replace
    made.rule_of[RULE] = off(made.rule_of[RULE], enabled=False)
    made.source_of["garbage"] = off(made.source_of["garbage"], enabled=False)
    made.alarm_of[ALARM] = off(made.alarm_of[ALARM], is_on=False, actions=())
    assert made.own_bucket is not None
    made.own_bucket = off(made.own_bucket, versioned=False)
    made.table_of[LOG] = off(made.table_of[LOG], recovers=False, protected=False)
    return made


def off_in_the_emulator() -> Cloud:
    cloud = Cloud()
    cloud.client("events").disable_rule(Name=RULE)
    cloud.client("lambda").update_event_source_mapping(UUID=cloud.source, Enabled=False)
    cloud.put_alarm(ALARM, ActionsEnabled=False)
    cloud.client("s3").put_bucket_versioning(
        Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"}
    )
    dynamodb = cloud.client("dynamodb")
    dynamodb.update_table(TableName=LOG, DeletionProtectionEnabled=False)
    dynamodb.update_continuous_backups(
        TableName=LOG, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )
    return cloud


def picture(parts: DeployedParts) -> dict[str, object]:
    """What is on."""
    bucket = parts.bucket()
    assert bucket is not None
    (rule,) = [one for one in parts.rules() if one.name == RULE]
    (source,) = parts.event_sources("garbage")
    (alarm,) = [one for one in parts.alarms() if one.name == ALARM]
    (log,) = [one for one in parts.tables() if one.name == LOG]
    return {
        "rule": rule.enabled,
        "source": source.enabled,
        "alarm": alarm.is_on,
        "action": alarm.actions == (parts.topic(),),
        "versions": bucket.versioned,
        "recovery": log.recovers,
        "protection": log.protected,
    }


def test_what_is_off_is_told_and_turned_on_however_often(parts: DeployedParts) -> None:
    before = picture(parts)
    assert set(before.values()) == {False}
    for _ in range(2):
        parts.turn_on_rule(RULE)
        parts.turn_on_event_source(parts.event_sources("garbage")[0].id)
        parts.add_alarm_action(ALARM, parts.topic())
        parts.keep_versions()
        parts.keep_history(LOG)
        parts.protect(LOG)
        assert picture(parts) == dict.fromkeys(before, True) | {"alarm": False}


def test_rules_that_are_no_schedules_are_told(parts: DeployedParts) -> None:
    assert {one.scheduled for one in parts.rules()} == {True, False}
    assert not parts.sends_file_events(BUCKET)
    assert not parts.sends_file_events("gone")


def test_what_is_there_is_told(parts: DeployedParts) -> None:
    assert parts.identity().account == "123456789012"
    assert parts.topic().endswith(":lakebed-dev-alarms")
    assert {one.protocol for one in parts.recipients()} == {"email"}
    queue = parts.queue("garbage")
    assert queue is not None
    assert (queue.kind, queue.has_dead_letters) == ("garbage", True)
    assert queue.kept_seconds == 14 * 86_400
