"""Containers of task images that do their jobs, for tests of images."""

import json
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from lakebed.config.environments import variables_of
from lakebed.config.fargate import check_task_size
from lakebed.ports.job_queue import JobQueue
from tests.e2e.task_instance import SECONDS_MAX, TaskInstance, until
from tests.servers.containers import Container, container
from tests.servers.nobody import USER

VCPUS, MEMORY_MIB = "0.5", 1_024


def small(image: str, folder: Path) -> AbstractContextManager[Container]:
    """Return a container of an image, of the size of a small task."""
    check_task_size(vcpus=VCPUS, memory_mib=MEMORY_MIB)
    return container(image, folder, memory_mib=MEMORY_MIB, vcpus=float(VCPUS))


def run_task(
    box: Container, instance: TaskInstance, is_done: Callable[[], bool], seconds_max: int
) -> tuple[list[dict[str, object]], set[str]]:
    """Run an image's task until its jobs are done, then stop it as ECS does.

    Returns the lines that it wrote, and the modules that it imported.
    """
    size = {"task_vcpus": VCPUS, "task_memory_mib": str(MEMORY_MIB)}
    variables = {
        **variables_of(msgspec.structs.replace(instance.environment, **size)),
        **instance.server.environment(),
        "LAKEBED_KERNELS": "always",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    log = box.folder / "imported"
    with log.open("w") as errors:
        command = box.command(variables)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            until("the jobs are done", lambda: process.poll() is not None or is_done(), seconds_max)
            assert process.poll() is None, log.read_text()[-2_000:]
            box.stop()
            out, _ = process.communicate(timeout=seconds_max)
        finally:
            process.kill()
            process.wait()
    told = log.read_text()
    assert process.returncode == 0, told[-2_000:]
    imported = set(re.findall(r"\| +([\w.]+)$", told, re.MULTILINE))
    return [json.loads(line) for line in out.splitlines()], imported


def is_empty(queue: JobQueue) -> bool:
    return queue.depth() == (0, 0)


def written(before: set[str], after: set[str]) -> dict[str, str]:
    """Return by path who owns what is new, or was changed."""
    parts = [line.split("\t") for line in after - before]
    return {path: owner for path, owner, *_ in parts}


def does_its_job(
    box: Container,
    instance: TaskInstance,
    is_done: Callable[[], bool],
    *,
    seconds_max: int = SECONDS_MAX,
) -> None:
    """Run a task until its jobs are done: it compiles nothing, writes below /tmp only, and stops
    when it is told. seconds_max: to wait for the jobs, and for its end."""
    assert box.run("true").returncode == 0  # makes what is mounted on
    before = box.files()
    lines, imported = run_task(box, instance, is_done, seconds_max)
    changed = written(before, box.files())
    (ended,) = [line for line in lines if line["event"] == "task_ended"]
    assert ended["ending"] == "stopped"
    assert {"lakebed.kernels.merging", "lakebed.kernels.toolchain.native"} <= imported
    assert "numba" not in imported
    assert not [path for path in changed if not f"{path}/".startswith("tmp/")]
    assert {owner for path, owner in changed.items() if path != "tmp"} <= {str(USER)}
