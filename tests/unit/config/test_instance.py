import json

import msgspec
import pytest

from lakebed.config.deployments.instance_resources import (
    InstanceResources,
    decode_resources,
    encode_resources,
)
from lakebed.config.instance import (
    InstanceId,
    InstanceSettings,
    instance_id,
    instance_settings,
    parameter_name,
    physical_name,
)
from lakebed.errors import CorruptError, InvalidError, NewerFormatError

DEV = InstanceId("dev")
RESOURCES = InstanceResources(
    instance=DEV,
    bucket="lakebed-dev-data-123456789012-eu-west-1",
    log_table="lakebed-dev-log",
    registry_table="lakebed-dev-registry",
    tracker_table="lakebed-dev-tracker",
    queues={"compaction": "https://sqs.example/123456789012/lakebed-dev-compaction.fifo"},
    quotas={"L-B99A9384": 10},
    release="0.3.0",
)
STORED = (
    '{"format":1,"instance":"dev","bucket":"lakebed-dev-data-123456789012-eu-west-1",'
    '"prefix":"lake","log_table":"lakebed-dev-log","registry_table":"lakebed-dev-registry",'
    '"tracker_table":"lakebed-dev-tracker",'
    '"queues":{"compaction":"https://sqs.example/123456789012/lakebed-dev-compaction.fifo"},'
    '"quotas":{"L-B99A9384":10},"release":"0.3.0"}'
)


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("alarm_mail", "ops", "give an email address that gets each alarm;"),
        ("key_arn", "arn:aws:kms:x", "give a key of KMS .*, by its ARN"),
        ("zones", "us-east-1a", "give availability zones .*by their ids"),
        ("task_disk_gib", "300", "give a number, 20 to 200;"),
        ("task_vcpus", "3", "give one of `0.25`, `0.5`"),
        ("paused", "maybe", "give one of `true`, `false`;"),
    ],
)
def test_a_wrong_value_is_answered_by_what_is_allowed(setting: str, value: str, says: str) -> None:
    wanted = rf"^not a value for the setting \(setting={setting} value='{value}'\): {says}"
    with pytest.raises(InvalidError, match=wanted):
        instance_settings({setting: value})


@pytest.mark.parametrize("name", ["a", "dev", "team-7-prod", "a2345678901234-6", "x" * 16])
def test_an_instance_has_a_short_name_that_buckets_may_carry(name: str) -> None:
    assert instance_id(name) == name
    assert len(f"lakebed-{name}-results-123456789012-ap-southeast-1") <= 63


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 17,
        "Dev",
        "7up",
        "-dev",
        "dev-",
        "a--b",
        "a_b",
        "a.b",
        "dev\n",
        "dév",
        "a b",
        7,
        None,
    ],
)
def test_another_name_is_refused_with_what_is_allowed(name: object) -> None:
    with pytest.raises(InvalidError, match="use 1 to 16 of a-z, 0-9 and single '-'"):
        instance_id(name)


def test_names_of_resources_say_whose_they_are() -> None:
    assert parameter_name(DEV) == "/lakebed/dev"
    assert physical_name(DEV, "log") == "lakebed-dev-log"


def test_settings_come_as_texts_or_values() -> None:
    assert instance_settings({}) == InstanceSettings(data_kept=True, deleted_days=1)
    changed = InstanceSettings(data_kept=False, deleted_days=3)
    assert instance_settings({"data_kept": "false", "deleted_days": "3"}) == changed
    assert instance_settings({"data_kept": False, "deleted_days": 3}) == changed


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data_keep": "true"}, "did you mean 'data_kept'"),
        ({"data_kept": "perhaps"}, "data_kept"),
        ({"deleted_days": "0"}, "deleted_days"),
        ({"deleted_days": "366"}, "deleted_days"),
        ({"deleted_days": "soon"}, "lakebed explain instance"),
    ],
)
def test_wrong_settings_are_refused_by_name(changes: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        instance_settings(changes)


def test_what_a_deployment_wrote_stays_readable() -> None:
    assert encode_resources(RESOURCES) == STORED
    assert decode_resources(STORED, DEV) == RESOURCES


def test_an_older_deployment_does_not_say_its_release() -> None:
    older = STORED.replace(',"release":"0.3.0"', "")
    assert decode_resources(older, DEV) == msgspec.structs.replace(RESOURCES, release="")


def test_what_a_newer_deployment_wrote_is_refused_as_such() -> None:
    newer = json.dumps({"format": 2, "instance": "dev", "shelves": []})
    with pytest.raises(NewerFormatError, match=r"instance=dev format=2.*upgrade"):
        decode_resources(newer, DEV)


def test_fields_that_a_newer_deployment_added_are_ignored() -> None:
    more = STORED.replace('"prefix"', '"shelf":1,"prefix"')
    assert decode_resources(more, DEV) == RESOURCES
    newer = more.replace('"format":1', '"format":2,"needs":1')
    assert decode_resources(newer, DEV) == msgspec.structs.replace(RESOURCES, format=2)


def test_a_parameter_that_needs_a_newer_release_is_no_corrupt_one() -> None:
    newer = STORED.replace('"prefix"', '"needs":2,"prefix":["of another form"],"was"')
    with pytest.raises(NewerFormatError, match=r"instance=dev format=2.*upgrade"):
        decode_resources(newer, DEV)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "7",
        "{}",
        '"\ud800"',
        STORED.replace('"format":1,', ""),
        STORED.replace('"format":1', '"format":"1"'),
        STORED.replace('"format":1', '"format":0'),
        STORED.replace('"format":1', '"format":true'),
        STORED.replace('"dev"', '"prod"'),
        STORED.replace('"bucket"', '"bukcet"'),
    ],
)
def test_another_text_in_the_parameter_is_told_with_its_name(text: str) -> None:
    with pytest.raises(CorruptError, match="parameter=/lakebed/dev"):
        decode_resources(text, DEV)
