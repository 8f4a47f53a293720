"""How many processes share a merge on this machine, or in this container."""

from pathlib import Path

import pytest

from lakebed.bootstrap import machine
from lakebed.bootstrap.machine import (
    PROCESSES,
    PROCESSES_MAX,
    TASK_MEMORY_MIB,
    TASK_VCPUS,
    cpus,
    memory_bytes,
    merge_processes,
    open_tables_max,
    task_work_bytes,
)
from lakebed.errors import InvalidError

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (PROCESSES, TASK_VCPUS, TASK_MEMORY_MIB):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    sizes = {"SC_PHYS_PAGES": 64 * GIB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(machine.os, "sysconf", sizes.__getitem__)


def container(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert (cpus(tmp_path), memory_bytes(tmp_path)) == (64, 64 * GIB)
    assert merge_processes(tmp_path) == PROCESSES_MAX
    root = container(tmp_path, {"cpu.max": "max 100000", "memory.max": "max"})
    assert (cpus(root), memory_bytes(root)) == (64, 64 * GIB)


@pytest.mark.parametrize(
    ("cpu", "memory", "processes"),
    [
        ("200000 100000", 4 * GIB, 2),
        ("400000 100000", 3 * GIB, 3),
        ("50000 100000", 8 * GIB, 1),
        ("400000 100000", GIB // 2, 1),
    ],
)
def test_a_container(tmp_path: Path, cpu: str, memory: int, processes: int) -> None:
    root = container(tmp_path, {"cpu.max": cpu, "memory.max": str(memory)})
    assert merge_processes(root) == processes


def test_a_container_of_the_older_kind(tmp_path: Path) -> None:
    quota, period = "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"
    assert cpus(container(tmp_path, {quota: "300000", period: "100000"})) == 3
    assert cpus(container(tmp_path, {quota: "-1"})) == 64
    limit = "memory/memory.limit_in_bytes"
    assert memory_bytes(container(tmp_path, {limit: str(2 * GIB)})) == 2 * GIB


def test_a_variable_says_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROCESSES, "3")
    assert merge_processes(tmp_path) == 3
    for wrong in ("0", "-1", "9", "many", "", "²"):
        monkeypatch.setenv(PROCESSES, wrong)
        with pytest.raises(InvalidError, match="number of processes"):
            merge_processes(tmp_path)


@pytest.mark.parametrize(
    ("vcpus", "memory_mib", "processes"),
    [
        ("0.25", 1_024, 1),
        ("1", 4_096, 1),
        ("4", 8_192, 4),
        ("8", 4_096, 4),
        ("16", 122_880, PROCESSES_MAX),
    ],
)
def test_a_task_is_as_large_as_its_variables_say_whatever_its_machine_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vcpus: str, memory_mib: int, processes: int
) -> None:
    monkeypatch.setenv(TASK_VCPUS, vcpus)
    monkeypatch.setenv(TASK_MEMORY_MIB, str(memory_mib))
    assert cpus(tmp_path) == max(1, int(float(vcpus)))
    assert memory_bytes(tmp_path) == min(64 * GIB, memory_mib << 20)
    assert merge_processes(tmp_path) == processes
    assert task_work_bytes(tmp_path) == memory_bytes(tmp_path) // 8
    smaller = container(tmp_path, {"cpu.max": "50000 100000", "memory.max": str(GIB // 2)})
    assert (cpus(smaller), memory_bytes(smaller)) == (1, GIB // 2)


@pytest.mark.parametrize("variable", [TASK_VCPUS, TASK_MEMORY_MIB])
def test_a_size_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for wrong in ("", "0", "0.0", "-1", "many", "1e9", "nan", "²"):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(InvalidError, match="not the size of a task"):
            merge_processes(tmp_path)


@pytest.mark.parametrize(
    ("files", "tables"), [(20, 4), (256, 16), (1_024, 64), (1 << 20, 64), (-1, 64)]
)
def test_few_files_mean_few_open_tables(
    files: int, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (files, files))
    assert open_tables_max() == tables
