"""What an instance records of how it is deployed, written as a file, deploys the same again."""

import random
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from lakebed.config.deployments.deployed_settings import (
    DIGESTED,
    deployed_settings,
    setting_differences,
)
from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.deployments.instance_file import instance_file_of
from lakebed.config.deployments.instance_resources import (
    InstanceResources,
    decode_resources,
    encode_resources,
)
from lakebed.config.deployments.instance_text import instance_text
from lakebed.config.deployments.optional_stacks import OPTIONAL_STACKS, stacks_of
from lakebed.config.deployments.tags import checked_tags
from lakebed.config.instance import Deployment, InstanceId, InstanceSettings
from lakebed.errors import InvalidError

DEV = InstanceId("dev")
ACCOUNT = "123456789012"
ROLES = tuple(f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("one", "two", "path/three"))
MAILS = ("ops@example.org", "a.b+c@mail.example.org")
QUEUES = tuple(f"arn:aws:sqs:eu-central-1:{ACCOUNT}:{name}" for name in ("one", "two_2"))
TEXTS = {
    "key_arn": (f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/one",),
    "machine_types": ("m7g.large", "m7g.large,c7g.xlarge"),
    "sources": ("s3://landing", "s3://landing/trips,s3://other/a=b"),
    "feed_queues": QUEUES,
    "feed_secrets": ("one", "one,two"),
    "feed_ports": ("9092", "9092-9098,443"),
    "vpc_id": ("vpc-0123abcd",),
    "subnet_ids": ("subnet-0123abcd", "subnet-0123abcd,subnet-0123abce"),
    "zones": ("use1-az1", "use1-az1,use1-az2"),
    "account_quotas": ("L-3032A538=40", "L-3032A538=40,L-B99A9384=7"),
    "spark_cluster_types": ("m7g.2xlarge", "m7g.2xlarge,r7g.2xlarge"),
    "shared_cluster": ("j-1ABC",),
    "alarm_mail": MAILS,
    "alarm_topic_arn": (f"arn:aws:sns:eu-central-1:{ACCOUNT}:mine",),
    "notices_mail": (MAILS[0], ",".join(MAILS)),
    "notices_https": ("https://example.org/x?token=1",),
    "notices_queue": (QUEUES[0], ",".join(QUEUES)),
    "packages": ("wheels", "a.whl,/absolute/b.whl"),
    "tables": ("tables", 'a "folder" of ours'),
} | dict.fromkeys(
    [f"people_{role}" for role in ("reader", "sender", "writer", "operator", "admin")],
    (ROLES[0], ",".join(ROLES)),
)
TAGS = ("data", "", "Größe 1=2:/+@", "a b")


def some_settings(rng: random.Random) -> InstanceSettings:
    """Settings that each have a value they may have; not all go together."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(InstanceSettings, include_extras=True).items():
        if rng.random() < 0.6:
            continue
        inner, meta = get_args(hint)
        if inner is bool:
            found[name] = rng.random() < 0.5
        elif inner is int:
            found[name] = rng.randint(meta.ge, meta.le if meta.le is not None else meta.ge + 1_000)
        elif get_origin(inner) is Literal:
            found[name] = rng.choice(get_args(inner))
        else:
            found[name] = rng.choice(TEXTS[name])
    return InstanceSettings(**found)


def some_deployment(rng: random.Random) -> Deployment:
    settings = some_settings(rng)
    without = [s.name for s in OPTIONAL_STACKS if not s.asked_for and rng.random() < 0.2]
    try:
        stacks = stacks_of(settings, without)
    except InvalidError:  # they do not go without each other
        stacks = stacks_of(settings, []) if _goes(settings) else frozenset()
    keys = rng.sample(["team", "cost center", "a:b", "Größe"], rng.randint(0, 4))
    tags = checked_tags({key: rng.choice(TAGS) for key in keys})
    return Deployment(instance=DEV, settings=settings, stacks=stacks, tags=tags)


def _goes(settings: InstanceSettings) -> bool:
    try:
        return bool(stacks_of(settings, []))
    except InvalidError:
        return False


@pytest.mark.parametrize("seed", range(300))
def test_a_file_that_is_written_of_a_deployment_is_of_an_equal_one(seed: int) -> None:
    deployment = some_deployment(random.Random(seed))
    resources = InstanceResources(
        instance=DEV,
        bucket="b",
        log_table="l",
        registry_table="r",
        tracker_table="t",
        deployed_with=deployed_settings(deployment),
    )
    recorded = decode_resources(encode_resources(resources), DEV).recorded_settings()
    file = instance_file_of(instance_text(DEV, recorded), Path("lakebed.toml"))
    settings = msgspec.structs.replace(InstanceSettings(), **file.settings)
    read = Deployment(
        instance=InstanceId(str(file.name)),
        settings=settings,
        stacks=frozenset(s.name for s in OPTIONAL_STACKS if s.is_in(settings)) - {*file.without},
        tags=file.tags,
    )
    withheld = dict.fromkeys(DIGESTED, "")
    expected = msgspec.structs.replace(
        deployment, settings=msgspec.structs.replace(deployment.settings, **withheld)
    )
    assert read == expected
    differing = [one.name for one in setting_differences(recorded, deployed_settings(read))]
    assert differing == [name for name in DIGESTED if getattr(deployment.settings, name)]


def test_an_address_that_may_hold_a_token_is_recorded_as_its_digest() -> None:
    def deployed(url: str) -> Deployment:
        return deployment_of({"instance": "dev", "notices_https": url})

    recorded = deployed_settings(deployed("https://example.org/token"))
    assert "token" not in str(recorded)
    assert not setting_differences(
        recorded, deployed_settings(deployed("https://example.org/token"))
    )
    assert setting_differences(recorded, deployed_settings(deployed("https://example.org/other")))
    text = instance_text(DEV, recorded)
    assert "# [notices] https is set, and is not written down" in text
    assert instance_file_of(text, Path("lakebed.toml")).settings == {}


def test_folders_of_the_machine_that_deploys_differ_only_where_there_is_none() -> None:
    here, there, none = (
        deployed_settings(deployment_of({"instance": "dev", "packages": path}))
        for path in ("wheels", "/build/wheels", "")
    )
    assert setting_differences(here, there) == []
    assert [one.name for one in setting_differences(here, none)] == ["packages"]


def test_a_setting_of_a_newer_release_is_shown_and_written() -> None:
    older = deployed_settings(deployment_of({"instance": "dev"}))
    newer = msgspec.structs.replace(older, settings={"more": 7})
    assert setting_differences(newer, older)[0].name == "more"
    assert "more = 7" in instance_text(DEV, newer)
