"""Builds what functions run: our code and the packages that it needs, put together by pip, without
Docker.

Packages come from the registry, pinned with hashes, for the system and Python on which the
functions run, and are kept in `.cache/bundles`. One commit gives one digest, wherever it is made:
no dates, nothing of the machine. Where the same Python runs here, bytecode goes along, which halves
the time that imports take; it follows from the sources and is not part of the digest.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from aws_cdk import aws_lambda as lambda_

from lakebed.config.instance import Architecture
from lakebed.errors import InvalidError
from stacks.constructs.rooms import ROWS_ROOMS, SPARK_ROOMS, STATE_ROOMS, TAKE_ROOMS, files_in
from stacks.constructs.wheels import Wheel

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bundles"
RECIPE = 1
"""Counts what is done with packages here: another number makes them anew."""

PYTHON = "3.14"
"""Version of Python of functions on AWS: the newest that it runs."""
SPARK_PYTHON = "3.11"
"""Version of Python that releases of EMR with Spark 3.5 and 4.0 have, as `python3.11`."""
GLIBC_MINORS = range(34, 16, -1)
"""Minor versions of the C library that wheels may ask for: Amazon Linux 2023 has 2.34."""

UNUSED_SECONDS = 7 * 86_400
"""Seconds after which an unused bundle, or what bundles are made of, is removed when another is
made: each change of our code makes one of up to 250 MB."""

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
BUNDLE_BYTES_MAX = 250 << 20
"""Most bytes of what Lambda runs, unpacked. Source: "Lambda quotas", AWS Lambda Developer Guide."""
SERVICES = (
    *("cloudformation", "dynamodb", "ec2", "ecs", "emr", "emr-serverless", "events", "s3"),
    *("sqs", "ssm", "sts"),
)
"""Services that our functions call; descriptions of the other 400 services stay out."""

NEVER_LOADED = (
    "_azurefs",
    "_flight",
    "_gcsfs",
    "_orc",
    "_s3fs",
    "libarrow_flight",
    "libarrow_python.so.2600.",
    "libarrow_python_flight",
    "libarrow_s3",
    "libarrow_python_parquet_encryption",
)
"""Parts of Arrow that are never loaded: clients of stores and servers, and other formats. Our
objects are read by obstore."""

LEFT_OUT = (
    "bin/*",
    "*/tests/*",
    "*.pyi",
    "*.pxd",
    "*.pyx",
    "*.pxi",
    "*.a",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "boto3/examples/*",
    "zstandard/_cffi*",
    "pyarrow/include/*",
    "pyarrow/src/*",
    *(f"pyarrow/{part}*" for part in NEVER_LOADED),
)


class Target(msgspec.Struct, frozen=True):
    """The platform that functions run on.

    architecture: as AWS calls it.
    here: on this machine.
    """

    architecture: str
    python: str
    here: bool = False

    @property
    def is_compiled(self) -> bool:
        """Return whether bytecode goes along: this is the Python that will read it."""
        return self.python == THIS_PYTHON

    @property
    def platforms(self) -> list[str]:
        """Return the tags of wheels that run there, the newest first."""
        machine = MACHINES[self.architecture]
        tags = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS]
        return [*tags, f"manylinux2014_{machine}"]

    def options(self) -> list[str]:
        """Return what pip is told to take wheels for."""
        if self.here:
            return []
        platforms = [word for tag in self.platforms for word in ("--platform", tag)]
        return [*platforms, "--python-version", self.python, "--implementation", "cp"]


def target_of(architecture: Architecture, *, python: str = PYTHON) -> Target:
    """Return where functions of an instance run. python: the version of functions on AWS."""
    if architecture != "machine":
        return Target(architecture, python)
    machine = platform.machine().lower()
    known = "arm64" if machine in ("arm64", "aarch64") else "x86_64"
    return Target(known, THIS_PYTHON, here=True)


class Bundle(msgspec.Struct, frozen=True):
    """Packages for some functions, those of a file in `requirements`, with hashes; and rooms of our
    code.

    has_steps: whether what it runs calls steps of users: their packages go into it, too.
    """

    name: str
    rooms: tuple[str, ...]
    has_steps: bool = False

    @property
    def requirements(self) -> Path:
        """Return the path of its file of pinned requirements."""
        return ROOT / "requirements" / f"bundle-{self.name}.txt"


STATE = Bundle("state", STATE_ROOMS)
"""The bundle of functions that move no rows: they start without Arrow."""

PLANNING = Bundle("state", STATE_ROOMS, has_steps=True)
"""The bundle of the function that plans compactions: the same, and users' strategies."""

ROWS = Bundle("rows", ROWS_ROOMS, has_steps=True)
"""The bundle of functions that read rows."""

FEEDS = Bundle("feeds", TAKE_ROOMS, has_steps=True)
"""The bundle of the function that takes records of feeds."""

SPARK = Bundle("rows", SPARK_ROOMS, has_steps=True)
"""The bundle of drivers and tasks of Spark, which bring Spark's own packages."""


class PythonBundle:
    """A folder with our code, a bundle's packages and, where they are called, those of users.
    digest: of all that is in it.

    Raises:
        InvalidError: users' packages have a file that is there already, or there is more than
            Lambda takes.
    """

    def __init__(self, bundle: Bundle, target: Target, of_users: Sequence[Wheel] = ()) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{bundle.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            packages = [_packages(bundle, target)]
            if bundle.has_steps:
                packages += [_unpacked(wheel, target) for wheel in of_users]
            sources = [*packages, *files_in(ROOT, bundle.rooms)]
            self.digest = digest_of(sources, root=ROOT)
            kind = f"py{THIS_PYTHON}" if target.is_compiled else "sources"
            self.folder = CACHE / f"{bundle.name}-{self.digest[:16]}-{kind}"
            if not self.folder.exists():
                _forget_unused(CACHE, time.time())
                _put_together(packages, bundle, self.folder, target)
            for used in (self.folder, *packages):
                os.utime(used)

    def code(self) -> lambda_.Code:
        """Return it as what a function runs."""
        return lambda_.Code.from_asset(str(self.folder), asset_hash=self.digest)


@cache
def bundle_of(bundle: Bundle, target: Target, of_users: tuple[Wheel, ...] = ()) -> PythonBundle:
    """Return a bundle with our code, put together once in a process."""
    return PythonBundle(bundle, target, of_users)


def _forget_unused(cache_folder: Path, now: float) -> None:
    """Remove folders that were not used for long, those of a process that was killed among them."""
    for folder in cache_folder.iterdir():
        with suppress(FileNotFoundError):  # another process removes the same
            if folder.is_dir() and folder.stat().st_mtime < now - UNUSED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _unpacked(wheel: Wheel, target: Target) -> Path:
    """Return a folder with what a wheel installs, bytecode included where it is read."""
    kind = f"py{THIS_PYTHON}" if target.is_compiled else "sources"
    folder = CACHE / f"wheel-{wheel.sha256[:16]}-{kind}"
    if not folder.exists():
        with TemporaryDirectory(dir=CACHE) as scratch:
            made = Path(scratch) / "wheel"
            wheel.unpack(made)
            if target.is_compiled:
                _compile(made)
            with suppress(OSError):  # another bundle was first, with the same
                made.rename(folder)
    return folder


def _packages(bundle: Bundle, target: Target) -> Path:
    """Return a folder with a bundle's packages; pip fills it if it is not there yet."""
    recipe = msgspec.json.encode([RECIPE, target, target.is_compiled, SERVICES, LEFT_OUT])
    key = hashlib.sha256(recipe + bundle.requirements.read_bytes()).hexdigest()
    folder = CACHE / f"packages-{bundle.name}-{key[:16]}"
    if folder.exists():
        return folder
    with TemporaryDirectory(dir=CACHE) as scratch:
        installed = Path(scratch) / "packages"
        _install(bundle, target, installed)
        _leave_out(installed)
        if target.is_compiled:
            _compile(installed)
        installed.rename(folder)
    return folder


def _install(bundle: Bundle, target: Target, folder: Path) -> None:
    message = f"fetching packages of functions ({bundle.name}, {target.architecture})"
    print(message, file=sys.stderr)  # noqa: T201 - it takes a minute, once
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    wheels = ["--require-hashes", "--only-binary=:all:", *target.options()]
    paths = ["--target", str(folder), "--requirement", str(bundle.requirements)]
    done = subprocess.run(  # noqa: S603 - pip, with arguments that are written here
        [sys.executable, "-m", "pip", "install", *how, *wheels, *paths],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        hint = "is the package registry reachable? what pip said: " + done.stdout[-500:].strip()
        raise InvalidError(
            "packages of functions cannot be downloaded", bundle=bundle.name, hint=hint
        )


def _leave_out(folder: Path) -> None:
    """Remove what is never loaded, and what tells of the machine."""
    services = folder / "botocore" / "data"
    for service in services.iterdir():
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if any(fnmatch(name, pattern) for pattern in LEFT_OUT):
            path.unlink()


def _compile(folder: Path, *rooms: str) -> None:
    """Put bytecode beside sources, whose dates are not compared. rooms: only of these."""
    for room in rooms or ("",):
        compileall.compile_dir(
            folder / room,
            quiet=1,
            stripdir=str(folder),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def _put_together(packages: Sequence[Path], bundle: Bundle, folder: Path, target: Target) -> None:
    ours = [(file, ROOT) for file in files_in(ROOT, bundle.rooms)]
    with TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "bundle"
        for source, root in (*((one, one) for one in packages), *ours):
            for path in _files(source):
                to = made / path.relative_to(root)
                if to.exists() and path.suffix != ".pyc":
                    hint = "rename what your package holds: two would be one"
                    raise InvalidError(
                        "a package has a file that another has",
                        path=path.relative_to(root),
                        bundle=bundle.name,
                        hint=hint,
                    )
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
                to.chmod(0o644)
        if target.is_compiled:
            _compile(made, *{room.partition("/")[0] for room in bundle.rooms})
        _check_size(made, bundle)
        made.rename(folder)


def _check_size(folder: Path, bundle: Bundle) -> None:
    size = sum(path.stat().st_size for path in _files(folder))
    if size > BUNDLE_BYTES_MAX:
        hint = "give smaller packages: what is only there for tests can be left out of wheels"
        raise InvalidError(
            "a bundle is larger than Lambda takes",
            bundle=bundle.name,
            mib=-(-size >> 20),
            mib_max=BUNDLE_BYTES_MAX >> 20,
            hint=hint,
        )


def digest_of(sources: Sequence[Path], *, root: Path = ROOT) -> str:
    """Return a digest of names and bytes. sources: folders, and files of the checkout."""
    digest = hashlib.sha256()
    for source in sources:
        above = source if source.is_dir() else root
        for path in _files(source):
            if path.suffix == ".pyc":
                continue
            name = path.relative_to(above).as_posix().encode()
            content = path.read_bytes()
            digest.update(b"%d %s %d\n" % (len(name), name, len(content)))
            digest.update(content)
    return digest.hexdigest()


def _files(source: Path) -> Iterator[Path]:
    """Yield a file, or the files in a folder, by name."""
    if source.is_file():
        yield source
        return
    yield from sorted(path for path in source.rglob("*") if path.is_file())
