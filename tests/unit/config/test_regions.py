"""Places that do not fit together, or not where an instance is deployed to, are refused."""

import pytest

from lakebed.config.instance import InstanceSettings, instance_settings
from lakebed.config.regions import check_deployed_to, partition_of
from lakebed.errors import InvalidError

KEY = "arn:aws:kms:eu-west-1:123456789012:key/0f1e2d3c-aaaa-bbbb-cccc-1234567890ab"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
SUBNETS = [f"subnet-{number:08x}" for number in range(17)]


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("eu-west-1", "aws"),
        ("us-east-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("us-iso-east-1", "aws-iso"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eusc-de-east-1", "aws-eusc"),
    ],
)
def test_a_region_belongs_to_a_partition(region: str, partition: str) -> None:
    assert partition_of(region) == partition


def test_arns_of_one_region_are_taken() -> None:
    found = instance_settings({"key_arn": KEY, "alarm_topic_arn": TOPIC})
    assert found.arns() == {"key_arn": KEY, "alarm_topic_arn": TOPIC}
    assert InstanceSettings().arns() == {}
    cn = "arn:aws-cn:kms:cn-north-1:123456789012:key/mrk-0f1e"
    assert instance_settings({"key_arn": cn}).key_arn == cn


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"key_arn": KEY.replace("eu-west-1", "eu")}, "key_arn"),
        ({"key_arn": KEY.replace("eu-west-1", "")}, "key_arn"),
        ({"key_arn": KEY.replace(":aws:", ":azure:")}, "key_arn"),
        ({"key_arn": KEY.replace(":key/", ":alias/")}, "key_arn"),
        (
            {"key_arn": KEY.replace("eu-west-1", "cn-north-1")},
            "the partition of cn-north-1 is aws-cn",
        ),
        (
            {"alarm_topic_arn": TOPIC.replace(":aws:", ":aws-cn:")},
            "the partition of eu-west-1 is aws",
        ),
        (
            {"key_arn": KEY, "alarm_topic_arn": TOPIC.replace("west-1", "west-2")},
            "different regions.*eu-west-1.*eu-west-2.*own region only",
        ),
        ({"vpc_id": "vpc-0123abcd", "subnet_ids": ",".join(SUBNETS)}, "name at most 16"),
        ({"vpc_id": "vpc-0123abcd", "subnet_ids": ",".join(SUBNETS[:1] * 2)}, "each once"),
    ],
)
def test_what_can_work_in_no_region_is_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        instance_settings(settings)


@pytest.mark.parametrize(
    ("region", "account", "says"),
    [
        ("eu-west-2", None, "another region.*region=eu-west-2.*deploy to eu-west-1"),
        ("eu-west-1", "210987654321", "another account.*name a key of 210987654321"),
    ],
)
def test_a_key_of_another_place_than_the_deployments_is_refused(
    region: str, account: str | None, says: str
) -> None:
    check_deployed_to({"key_arn": KEY}, region="eu-west-1", account="123456789012")
    check_deployed_to({"key_arn": KEY}, region="eu-west-1", account=None)
    with pytest.raises(InvalidError, match=says):
        check_deployed_to({"key_arn": KEY}, region=region, account=account)


def test_a_topic_of_another_account_is_taken() -> None:
    """Its policy lets CloudWatch publish for that account, or not: that is its owner's."""
    check_deployed_to({"alarm_topic_arn": TOPIC}, region="eu-west-1", account="210987654321")


@pytest.mark.parametrize(
    "address",
    [
        "ops",
        "@example.org",
        "ops@example",
        "ops@@example.org",
        "ops @example.org",
        "ops.@example.org",
        ".ops@example.org",
        "o..ps@example.org",
        "ops@-example.org",
        "ops@example-.org",
        "ops@example..org",
        "ops@example.org.",
        "ops@192.0.2.1",
        "o" * 65 + "@example.org",
        "a@example.org, b@example.org",
        "ops@example.org\n",
    ],
)
def test_an_address_of_mail_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidError, match=r"alarm_mail.*lakebed explain instance"):
        instance_settings({"alarm_mail": address})


@pytest.mark.parametrize(
    "address",
    ["ops@example.org", "on.call+lake@team-7.example.co.uk", "o'neil@xn--d1acufc.xn--p1ai"],
)
def test_an_address_of_mail_is_taken(address: str) -> None:
    assert instance_settings({"alarm_mail": address}).alarm_mail == address
