"""Machines on which tasks run: what is refused before anything is made."""

import pytest

from lakebed.config.instance import instance_settings
from lakebed.config.machines import disk_of_machine, machine_types
from lakebed.errors import InvalidError


@pytest.mark.parametrize(
    ("name", "is_arm", "vcpus", "gib"),
    [
        ("m7g.large", True, 2, 8),
        ("c7gn.xlarge", True, 4, 8),
        ("r8gd.16xlarge", True, 64, 512),
        ("m7i.2xlarge", False, 8, 32),
        ("c5.large", False, 2, 4),
        ("m5dn.4xlarge", False, 16, 64),
    ],
)
def test_a_name_says_what_a_machine_has(name: str, is_arm: bool, vcpus: int, gib: int) -> None:
    (found,) = machine_types(name, architecture="arm64")
    assert (found.is_arm, found.vcpus) == (is_arm, vcpus)
    assert found.memory_mib == gib * 1_024


def test_a_machine_has_room_by_processors_and_by_memory() -> None:
    (one,) = machine_types("m7g.xlarge", architecture="arm64")
    assert one.room_for(vcpus="1", memory_mib=2_048) == 4
    assert one.room_for(vcpus="1", memory_mib=4_096) == 3
    assert one.room_for(vcpus="0.25", memory_mib=1_024) == 14
    assert one.room_for(vcpus="8", memory_mib=16_384) == 0
    assert disk_of_machine([one], vcpus="1", memory_mib=4_096, disk_gib=20) == 30 + 4 * 20


def test_types_that_no_setting_names_are_of_one_size() -> None:
    for architecture in ("arm64", "x86_64"):
        found = machine_types("", architecture=architecture)
        assert {one.vcpus for one in found} == {4}
        assert {one.is_arm for one in found} == {architecture == "arm64"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"machine_types": "m7i.xlarge"}, "another processor"),
        ({"machine_types": "m7g.xlarge", "architecture": "x86_64"}, "another processor"),
        ({"machine_types": "m7g.xlarge,m7g.2xlarge"}, "several kinds"),
        ({"machine_types": "m7g.xlarge,m7g.xlarge"}, "named twice"),
        ({"machine_types": "c7g.large"}, "no task fits"),
        ({"task_vcpus": "8", "task_memory_mib": "16384"}, "no task fits"),
        ({"machine_types": "t4g.large"}, "machine_types"),
        ({"machine_types": "m7g"}, "machine_types"),
        ({"machine_types": "m7g.metal"}, "machine_types"),
        ({"machine_types": "m7g.0xlarge"}, "machine_types"),
        ({"machine_types": "c4.8xlarge", "architecture": "x86_64"}, "machine_types"),
        ({"machine_types": "m7g.xlarge,m7i.xlarge", "architecture": "machine"}, "several kinds"),
        ({"machines_max": "2"}, "room=6.*machines_max=3"),
        ({"compaction_tasks_max": "13"}, "machines_max=5"),
        ({"ingest_capacity": "ec2", "ingest_tasks_max": "5"}, "tasks=13.*room=12"),
        ({"machine_types": "m7g.xlarge;reboot"}, "machine_types"),
        ({"machines_max": "0"}, "machines_max"),
        ({"machines_max": "101"}, "machines_max"),
        ({"compaction_capacity": "ec3"}, "compaction_capacity"),
    ],
)
def test_machines_on_which_no_task_could_run_are_refused(
    settings: dict[str, object], why: str
) -> None:
    with pytest.raises(InvalidError, match=why):
        instance_settings({"compaction_capacity": "ec2", **settings})


def test_machines_that_no_task_asks_for_are_not_looked_at() -> None:
    assert instance_settings({"machine_types": "c7g.large"}).machine_types == "c7g.large"
