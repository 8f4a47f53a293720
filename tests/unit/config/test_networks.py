"""Settings of networks that no deployment could work with are refused."""

import pytest

from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError

OWN = {"vpc_id": "vpc-0a1b2c3d", "subnet_ids": "subnet-0a1b2c3d"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        OWN,
        {"zones": "use1-az1"},
        {"zones": "use1-az1,use1-az2,use1-az6"},
        {"zones": "apne1-az4,apne1-az1"},
    ],
)
def test_one_network_is_described(settings: dict[str, object]) -> None:
    assert instance_settings(settings).zones == settings.get("zones", "")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"vpc_id": "vpc-0a1b2c3d"}, "needs both settings"),
        ({**OWN, "zones": "use1-az1"}, "zones of a network that exists"),
        ({"zones": "us-east-1a"}, "zones"),
        ({"zones": "use1-az1,"}, "zones"),
        ({"zones": "use1-az1,use1-az1"}, "named twice"),
        ({"zones": "use1-az1,euc1-az1"}, "several regions"),
        ({"zones": "apne1-az1,apne1-az3"}, "without Fargate .*apne1-az3.*apne1-az2"),
        ({"zones": "usw1-az2"}, "without Fargate"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        instance_settings(settings)
