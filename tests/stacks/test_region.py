"""What can never work where `cdk` deploys to is refused before anything is made, by its code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Stack

from lakebed.config.instance import InstanceSettings, instance_settings
from lakebed.config.regions import partition_of
from lakebed.errors import InvalidError
from stacks.constructs.region import ZONES_WITHOUT_FARGATE, check_region, warn_of_zones
from stacks.instance import PARTITIONS, instance_app
from tests.stacks.conftest import CONTEXT, HERE, IN_PLACE, ROOT, Synthesize
from tests.stacks.test_checks import reports
from tests.stacks.test_security import KEY


def test_regions_are_in_the_partitions_that_their_names_tell() -> None:
    from aws_cdk import region_info

    for one in region_info.RegionInfo.regions:
        assert partition_of(one.name) == one.partition


@pytest.mark.parametrize(
    ("region", "says"),
    [
        (
            "eu-west-9",
            "no region that this release knows.*region=eu-west-9.*did you mean 'eu-west-",
        ),
        ("europe", "no region that this release knows"),
        ("us-iso-east-1", "partition=aws-iso.*deploy to a region of aws"),
        ("cn-north-1", "partition=aws-cn.*deploy to a region of aws"),
    ],
)
def test_a_region_that_templates_are_not_made_for_is_refused(region: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        check_region(InstanceSettings(), {"CDK_DEFAULT_REGION": region}, partitions=PARTITIONS)


def test_where_nothing_is_told_nothing_is_refused() -> None:
    check_region(InstanceSettings(key_arn=KEY), {}, partitions=PARTITIONS)
    there = {"CDK_DEFAULT_REGION": "eu-west-1", "CDK_DEFAULT_ACCOUNT": "123456789012"}
    check_region(InstanceSettings(key_arn=KEY), there, partitions=PARTITIONS)


def test_a_key_of_another_region_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    context = {**CONTEXT, **HERE, **IN_PLACE, "instance": "dev", "key_arn": KEY}
    with pytest.raises(InvalidError, match=r"another region.*deploy to eu-west-1"):
        instance_app(context, outdir=str(tmp_path))


@pytest.mark.parametrize(
    ("region", "zones"),
    [
        ("us-east-1", "use1-az1,use1-az6"),
        ("ap-northeast-1", "apne1-az1,apne1-az4"),
        ("ap-southeast-2", "apse2-az3"),
        ("eu-central-1", "euc1-az2"),
        ("us-west-2", "usw2-az1"),
        ("il-central-1", "ilc1-az1"),
    ],
)
def test_zones_are_of_the_region(region: str, zones: str) -> None:
    there = {"CDK_DEFAULT_REGION": region}
    check_region(InstanceSettings(zones=zones), there, partitions=PARTITIONS)
    elsewhere = {"CDK_DEFAULT_REGION": "eu-west-1"}
    with pytest.raises(InvalidError, match=r"zone of another region.*begin with euw1-az"):
        check_region(InstanceSettings(zones=zones), elsewhere, partitions=PARTITIONS)


@pytest.mark.parametrize(
    ("region", "settings", "named"),
    [
        (
            "ap-northeast-1",
            {},
            "-c zones=apne1-az1,apne1-az2` (of apne1-az1, apne1-az2, apne1-az4)",
        ),
        ("us-west-1", {}, "-c zones=usw1-az1,usw1-az3`"),
        ("us-west-1", {"zones": "usw1-az1,usw1-az3"}, ""),
        ("us-west-1", {"vpc_id": "vpc-0a1b2c3d", "subnet_ids": "subnet-0a1b2c3d"}, ""),
        ("eu-west-1", {}, ""),
        (None, {}, ""),
    ],
)
def test_where_zones_lack_fargate_and_none_are_named_a_warning_names_some(
    region: str | None, settings: dict[str, object], named: str
) -> None:
    stack = Stack(App())
    warn_of_zones(stack, instance_settings(settings), {"CDK_DEFAULT_REGION": region or ""})
    warned = [str(one.data) for one in stack.node.metadata if one.type == "aws:cdk:warning"]
    assert len(warned) == (1 if named else 0)
    assert all(named in text for text in warned)


def test_who_synthesizes_is_warned_of_zones_without_fargate(
    synthesize: Synthesize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "ap-northeast-1")
    synthesize(tmp_path)
    found = [v["ruleName"] for report in reports(tmp_path).values() for v in report["violations"]]
    assert f"Annotation::{ZONES_WITHOUT_FARGATE}" in found


def test_who_deploys_reads_code_and_reason_and_nothing_is_made(tmp_path: Path) -> None:
    """As the command `cdk` starts it: what it shows is what the program says."""
    run = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={
            **{name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
            "CDK_OUTDIR": str(tmp_path),
            "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, **HERE, **IN_PLACE, "instance": "dev"}),
            "CDK_DEFAULT_REGION": "eu-westt-1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "cannot deploy: no region that this release knows (region=eu-westt-1)" in run.stderr
    assert "did you mean 'eu-west-1'?" in run.stderr
    assert "code: invalid, see `lakebed explain invalid`" in run.stderr
    assert not list(tmp_path.glob("*.template.json"))
