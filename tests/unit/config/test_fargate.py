import pytest

from lakebed.config.fargate import cpu_units
from lakebed.config.instance import instance_settings
from lakebed.errors import InvalidError

SIZES = [
    ("0.25", 256, 1_024, 2_048, 1_024),
    ("0.5", 512, 1_024, 4_096, 1_024),
    ("1", 1_024, 2_048, 8_192, 1_024),
    ("2", 2_048, 4_096, 16_384, 1_024),
    ("4", 4_096, 8_192, 30_720, 1_024),
    ("8", 8_192, 16_384, 61_440, 4_096),
    ("16", 16_384, 32_768, 122_880, 8_192),
]
"""As the page of AWS has them, but for 512 MiB: vCPUs, units, least and most MiB, steps."""


@pytest.mark.parametrize(("vcpus", "units", "least", "most", "step"), SIZES)
def test_every_size_that_fargate_has_is_allowed_and_its_neighbours_are_not(
    vcpus: str, units: int, least: int, most: int, step: int
) -> None:
    assert cpu_units(vcpus) == units
    sizes = set(range(least, most + 1, step))
    for size in sorted(sizes):
        found = instance_settings({"task_vcpus": vcpus, "task_memory_mib": str(size)})
        assert (found.task_vcpus, found.task_memory_mib) == (vcpus, size)
    wrong = {size + by for size in sizes for by in (-1, 1, step // 2)} | {most + step, least - step}
    for size in sorted(wrong - sizes):
        with pytest.raises(InvalidError):
            instance_settings({"task_vcpus": vcpus, "task_memory_mib": str(size)})


@pytest.mark.parametrize(
    ("vcpus", "memory_mib", "told"),
    [
        (
            "1",
            "16384",
            "with 1 vCPU give 2048 to 8192 in steps of 1024 MiB; 16384 goes with 2 or 4",
        ),
        ("0.25", "1536", "with 0.25 vCPU give 1024 or 2048 MiB"),
        ("8", "17408", "with 8 vCPU give 16384 to 61440 in steps of 4096 MiB; 17408 goes with 4"),
    ],
)
def test_a_size_is_refused_with_what_is_allowed(vcpus: str, memory_mib: str, told: str) -> None:
    with pytest.raises(InvalidError, match="Fargate has no task of this size") as refused:
        instance_settings({"task_vcpus": vcpus, "task_memory_mib": memory_mib})
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_vcpus", "3"),
        ("task_vcpus", "32"),
        ("task_vcpus", "0.250"),
        ("task_memory_mib", "512"),
        ("task_memory_mib", "many"),
        ("task_disk_gib", "19"),
        ("task_disk_gib", "201"),
    ],
)
def test_a_size_out_of_bounds_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidError, match="not a value for the setting"):
        instance_settings({name: value})
