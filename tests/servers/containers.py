"""Containers of images that were built here, run by runc, as ECS has it run tasks: by the image's
user, as the first process, with no capability, in cgroups that hold it to a task's size.

They share this machine's network, for the servers of tests. What a container sees is mounted while
one command runs and for that command alone, so that a test that is killed leaves nothing mounted.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.servers.built_images import BUILDAH, buildah, config_of

CPU_PERIOD_MICROS = 100_000
KILLED = 137
"""Exit code of a process that was killed, as when it takes more memory than it may."""
LISTED = r"%P\t%U\t%m\t%s\t%T@\n"
_IN_ITS_FILES = (
    """mount --bind "$({buildah} mount "$1")" "$2/rootfs"; cd "$2"; shift 2; exec "$@" """
)
_numbers = count()


@dataclass(frozen=True)
class Container:
    """One container of an image. name: buildah's. folder: on this machine, for what runs it.
    config: of its image. memory_mib, vcpus: what all processes in it may use."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    memory_mib: int
    vcpus: float

    @property
    def user(self) -> int:
        return int(self.config["User"])

    def command(self, more: Mapping[str, str], arguments: Sequence[str] = ()) -> list[str]:
        """Return a command that runs a program in this container.

        more: variables, beside the image's. arguments: if other than the image's entry point.
        """
        process = {
            "terminal": False,
            "user": {"uid": self.user, "gid": self.user},
            "args": list(arguments or self.config["Entrypoint"]),
            "env": [*self.config["Env"], *(f"{name}={value}" for name, value in more.items())],
            "cwd": self.config["WorkingDir"],
            "capabilities": {},
        }
        (self.folder / "config.json").write_text(json.dumps(self._specification(process)))
        return self._in_its_files(*self._runc("run", self.name))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another program in this container to its end."""
        command = self.command({}, arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def stop(self) -> None:
        """Send SIGTERM to the program that runs."""
        subprocess.run(self._runc("kill", self.name, "TERM"), check=True)

    def files(self) -> set[str]:
        """Return a line for each file, by which it differs when anything wrote to it."""
        find = self._in_its_files("find", "rootfs", "-mindepth", "1", "-printf", LISTED)
        done = subprocess.run(find, check=True, capture_output=True, text=True)
        return set(done.stdout.splitlines())

    def remove(self) -> None:
        subprocess.run(self._runc("delete", "--force", self.name), check=False)
        buildah("rm", self.name)

    def _specification(self, process: dict[str, Any]) -> dict[str, Any]:
        """Return the defaults of runc, with what this container has in their place."""
        own = self.folder / "config.json"
        own.unlink(missing_ok=True)
        subprocess.run(["runc", "spec", "--bundle", str(self.folder)], check=True)
        made: dict[str, Any] = json.loads(own.read_text())
        made["process"] |= process
        made["root"] = {"path": "rootfs", "readonly": False}
        linux = made["linux"]
        linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "network"]
        linux["cgroupsPath"] = f"/{self.name}"
        size = self.memory_mib << 20
        quota = int(self.vcpus * CPU_PERIOD_MICROS)
        linux["resources"] |= {
            "memory": {"limit": size, "swap": size},
            "cpu": {"quota": quota, "period": CPU_PERIOD_MICROS},
        }
        return made

    def _runc(self, *arguments: str) -> list[str]:
        return ["runc", "--root", str(self.folder / "runc"), *arguments]

    def _in_its_files(self, *command: str) -> list[str]:
        """Return a command that finds what this container sees in the folder `rootfs`."""
        script = _IN_ITS_FILES.format(buildah=" ".join(f"'{word}'" for word in BUILDAH))
        own = (self.name, str(self.folder))
        return ["unshare", "--mount", "sh", "-euc", script, "sh", *own, *command]


@contextmanager
def container(image: str, folder: Path, *, memory_mib: int, vcpus: float) -> Iterator[Container]:
    """Make a container of an image, and remove it at the end. folder: empty, of this machine."""
    name = f"lakebed-test-{os.getpid()}-{next(_numbers)}"
    (folder / "rootfs").mkdir(parents=True)
    buildah("from", "--pull-never", f"--name={name}", image)
    made = Container(name, folder, config_of(image), memory_mib, vcpus)
    try:
        yield made
    finally:
        made.remove()
