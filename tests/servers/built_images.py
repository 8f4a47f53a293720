"""Images of tasks, built from the folders that the stacks hand to Docker, by buildah in its place.

The base that the Dockerfiles name lies in a registry. One made of Debian's packages stands in for
it: with apt, as Debian's images have it, and the same Python, `python` and `pip` in /usr/local. It
differs in two things: Debian's testing release and not its stable one, and a Python that Debian
built. All else is as Docker does it: each step of the Dockerfile, packages by their hashes, the
user, the entry point.

An image for the other architecture is built the same way, where the kernel of this machine hands
its programs to an emulator; that takes half an hour, not a minute.

Base and layers are kept in `.cache/built-images`: a second build takes seconds, and one after a
change of our code compiles its kernels again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.source import ROOT

PROGRAMS = ("buildah", "runc", "mmdebstrap")
INSTALL = f"apt install --no-install-recommends {' '.join(PROGRAMS)}"
SUITE = "forky"
"""Of Debian: the one with the Python of the Dockerfiles."""
BASE_PACKAGES = ("ca-certificates", "python{python}", "python{python}-venv")
BASE_OPTIONS = (
    "--mode=root",
    "--variant=apt",
    # A mirror of one day is as good: signatures are checked all the same.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "locale", "man")),
)
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""By architecture, as Debian and images call it, what its programs call the machine."""
OWN_ARCHITECTURE = "arm64" if platform.machine() in ("arm64", "aarch64") else "amd64"
(OTHER_ARCHITECTURE,) = MACHINES.keys() - {OWN_ARCHITECTURE}
EMULATOR = f"qemu-{MACHINES[OTHER_ARCHITECTURE]}"
EMULATORS = Path("/proc/sys/fs/binfmt_misc")
"""What Linux hands programs of other architectures to."""
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
CACHE = ROOT / ".cache" / "built-images"
PIP_SETTINGS = ("cert", "extra-index-url", "index-url", "proxy", "trusted-host")
"""Those of this machine are pip's in a build, as far as they say where packages are."""
CERTIFICATES = "/etc/pip-certificates.pem"


def skip_where_images_cannot_be_built() -> None:
    processors = pytest.importorskip("lakebed.kernels.toolchain.processors")
    target = processors.baseline()
    if sys.platform != "linux" or target is None or not target.supported():
        pytest.skip(f"images are not built on {sys.platform} {platform.machine()}")
    if os.geteuid() != 0:
        pytest.skip("images are built by root only: run the tests with sudo")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: {INSTALL}")
    CACHE.mkdir(parents=True, exist_ok=True)
    if not _can_mount_overlays():
        pytest.skip(f"no overlay can be mounted in {CACHE}: a container would be a copy")


def skip_where_the_other_architecture_is_not_emulated() -> None:
    """Skip also where an emulator is there that programs in a container do not see: its entry has
    no flag F."""
    skip_where_images_cannot_be_built()
    entry = EMULATORS / EMULATOR
    flags = re.findall(r"^flags: (\w+)", entry.read_text(), re.MULTILINE) if entry.exists() else []
    if not any("F" in one for one in flags):
        pytest.skip(f"no {EMULATOR} for containers: apt install qemu-user-binfmt (Debian 13)")


def _can_mount_overlays() -> bool:
    """Whether this kernel lets this process, on the file system of the cache."""
    places = [CACHE / "overlay" / name for name in ("lower", "upper", "work", "whole")]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    options = "lowerdir={},upperdir={},workdir={}".format(*places)
    mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(places[-1])]
    return subprocess.run(["unshare", "--mount", *mount], check=False).returncode == 0


def buildah(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run buildah on images and containers of these tests."""
    command = [*BUILDAH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


BUILDAH = (
    "buildah",
    f"--root={CACHE / 'storage'}",
    f"--runroot={CACHE / 'run'}",
    "--storage-driver=overlay",
)


def build(kind: str, context: Path, architecture: str = OWN_ARCHITECTURE) -> str:
    """Build the image of `containers/KIND` from the folder for it. Returns its name."""
    name = f"localhost/lakebed-{kind}-{architecture}"
    for path in [context, *context.rglob("*")]:
        os.utime(path, (0, 0))  # by which buildah tells layers apart, and Docker does not
    with _alone():
        base = _base(context / "Dockerfile", architecture)
        buildah(
            *("bud", "--isolation=chroot", "--network=host", "--layers", "--pull-never"),
            *(f"--from={base}", f"--tag={name}", f"--arch={architecture}"),
            *(f"--volume={there}:{inside}:ro" for there, inside in _pip_settings()),
            str(context),
        )
    return name


@contextmanager
def python_of_debian(python: str, folder: Path) -> Iterator[list[str]]:
    """Yields a command that starts a Python, which sees a folder of this machine as itself, and of
    all others none. python: its version."""
    with _alone():
        base = _base_with(python)
    container = buildah("from", "--pull-never", base).stdout.strip()
    mount = f"--volume={folder}:{folder}:ro"
    try:
        yield [*BUILDAH, "run", "--isolation=chroot", mount, container, "--", f"python{python}"]
    finally:
        buildah("rm", container)


def config_of(image: str) -> dict[str, Any]:
    """Return what an image says of its process: `User`, `Env`, `Entrypoint`, `WorkingDir`."""
    told: dict[str, Any] = json.loads(buildah("inspect", "--type=image", image).stdout)
    config: dict[str, Any] = told["OCIv1"]["config"]
    return config


@contextmanager
def _alone() -> Iterator[None]:
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the other process of these tests
        yield


def _base(dockerfile: Path, architecture: str) -> str:
    """Return the name of what stands in for the base that a Dockerfile names."""
    (python,) = re.findall(r"^FROM \S+/python:([0-9.]+)-slim", dockerfile.read_text(), re.MULTILINE)
    return _base_with(python, architecture)


def _base_with(python: str, architecture: str = OWN_ARCHITECTURE) -> str:
    packages = [name.format(python=python) for name in BASE_PACKAGES]
    recipe = json.dumps([SUITE, packages, BASE_OPTIONS, PATH, architecture])
    name = f"localhost/lakebed-base:{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if buildah("inspect", "--type=image", name, check=False).returncode != 0:
        _make_base(name, python, packages, architecture)
    return name


def _make_base(name: str, python: str, packages: Sequence[str], architecture: str) -> None:
    archive = CACHE / "base.tar"
    more = [f"--architectures={architecture}", f"--include={','.join(packages)}"]
    made = subprocess.run(
        ["mmdebstrap", *BASE_OPTIONS, *more, SUITE, str(archive)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0 and not os.environ.get("CI"):
        told = "\n".join(line for line in made.stderr.splitlines() if line.startswith("E:"))
        pytest.skip(f"Debian's packages for the base of images cannot be had:\n{told}")
    assert made.returncode == 0, made.stderr
    container = buildah("from", "--pull-never", "scratch").stdout.strip()
    try:
        buildah("add", container, str(archive), "/")
        make = (f"python{python}", "-m", "venv", "/usr/local")
        buildah("run", "--isolation=chroot", container, "--", *make)
        buildah("config", f"--env=PATH={PATH}", f"--arch={architecture}", container)
        buildah("commit", container, name)
    finally:
        buildah("rm", container)
        archive.unlink()


def _pip_settings() -> Iterator[tuple[Path, str]]:
    """Yield files of this machine, and what they are called while an image is built."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    found = dict(re.findall(r"^(?:global|:env:)\.([\w-]+)='(.*)'$", listed.stdout, re.MULTILINE))
    settings = {name: found[name] for name in PIP_SETTINGS if name in found}
    if "cert" in settings:
        yield Path(settings["cert"]), CERTIFICATES
        settings["cert"] = CERTIFICATES
    written = CACHE / "pip.conf"
    written.write_text("".join(["[global]\n", *(f"{k} = {v}\n" for k, v in settings.items())]))
    yield written, "/etc/pip.conf"
