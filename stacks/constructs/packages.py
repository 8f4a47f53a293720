"""Packages of users that go into bundles, images and Spark's archive: which wheels, and whether
they can work there. All are looked at before anything is made of one."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from lakebed.config.instance import Architecture, Deployment
from lakebed.config.packages import STEPS, STRATEGIES, DeployedPackage
from lakebed.config.settings import OUR_STRATEGIES
from lakebed.errors import InvalidError
from stacks.constructs.image_context import requirements_of_images
from stacks.constructs.python_bundle import (
    FEEDS,
    MACHINES,
    ROWS,
    SPARK_PYTHON,
    STATE,
    Target,
    target_of,
)
from stacks.constructs.wheels import Wheel, normalised, read_wheel

SUMS = "SHA256SUMS"
RECORDS_BYTES_MAX = 1_800
"""Most bytes of the packages' records, out of 4,096 that a parameter holds."""
OUR_TOPS = ("containers", "lakebed", "lambdas", "spark_jobs")
"""Folders of our code in bundles and images."""


def packages_for(deployment: Deployment, target: Target) -> tuple[Wheel, ...]:
    """Return the wheels of an instance for those that run there, by name.

    Raises:
        InvalidError: a wheel that cannot work, or that works against another.
    """
    settings = deployment.settings
    return _checked(settings.packages, settings.architecture)[target]


def recorded_packages(deployment: Deployment) -> tuple[DeployedPackage, ...]:
    """Return what the instance's parameter says of its packages. Raises: as `packages_for`."""
    settings = deployment.settings
    chosen = _checked(settings.packages, settings.architecture)
    records = []
    for wheels in zip(*chosen.values(), strict=True):
        steps = {
            entry_group: names
            for entry_group, names in wheels[0].steps.items()
            if entry_group in STEPS
        }
        sums = tuple(dict.fromkeys(wheel.sha256 for wheel in wheels))
        records.append(DeployedPackage(wheels[0].name, wheels[0].version, sums, steps))
    size = len(msgspec.json.encode(records))
    if size > RECORDS_BYTES_MAX:
        hint = "put several steps into one package"
        raise InvalidError(
            "there are more packages than a parameter holds",
            bytes=size,
            bytes_max=RECORDS_BYTES_MAX,
            hint=hint,
        )
    return tuple(records)


@cache
def _checked(setting: str, architecture: Architecture) -> dict[Target, tuple[Wheel, ...]]:
    """Return the wheels for functions and tasks, and those for Spark."""
    targets = (target_of(architecture), target_of(architecture, python=SPARK_PYTHON))
    wheels = [read_wheel(path) for path in _paths(setting)] if setting else []
    if wheels and not any(
        wheel.steps.get(entry_group) for wheel in wheels for entry_group in STEPS
    ):
        hint = f"a package names them in pyproject.toml, under one of {', '.join(STEPS)}"
        raise InvalidError("no package has a step", packages=setting, hint=hint)
    names = sorted({wheel.name for wheel in wheels})
    for name in names:
        _check_versions([wheel for wheel in wheels if wheel.name == name])
    chosen = {t: tuple(_chosen(wheels, name, t) for name in names) for t in targets}
    for some in chosen.values():
        _check_names(some)
        _check_needs(some)
        _check_steps(some)
    return chosen


def _paths(setting: str) -> list[Path]:
    """Return the files of wheels that a setting names, each as it is pinned."""
    named = [Path(one.strip()) for one in setting.split(",")]
    paths = sorted(named[0].glob("*.whl")) if len(named) == 1 and named[0].is_dir() else named
    if not paths:
        hint = "put wheels there: `pip wheel --no-deps --wheel-dir FOLDER .`"
        raise InvalidError("a folder without wheels", packages=setting, hint=hint)
    for path in paths:
        _check_pinned(path)
    return paths


def _check_pinned(path: Path) -> None:
    """Refuse a wheel that `SHA256SUMS` beside it does not name, or names with another sum."""
    sums = path.parent / SUMS
    if not sums.exists():
        return
    lines = sums.read_text("utf-8", errors="replace").splitlines()
    split = (line.partition(" ") for line in lines)
    pinned = {name.strip().lstrip("*"): digest.lower() for digest, _, name in split}
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if pinned.get(path.name) != found:
        hint = f"is it the right wheel? then write the sums anew: sha256sum *.whl > {SUMS}"
        raise InvalidError(
            "a wheel is not the one that is pinned",
            file=path,
            pinned=pinned.get(path.name, "none"),
            found=found,
            hint=hint,
        )


def _check_versions(wheels: Sequence[Wheel]) -> None:
    versions = sorted({wheel.version for wheel in wheels})
    if len(versions) > 1:
        hint = "remove all but one"
        raise InvalidError(
            "a package in several versions",
            package=wheels[0].name,
            versions=", ".join(versions),
            hint=hint,
        )


def _chosen(wheels: Sequence[Wheel], name: str, target: Target) -> Wheel:
    """Return the one wheel of a package that runs there."""
    own = [wheel for wheel in wheels if wheel.name == name]
    platforms = [*target.platforms]
    if target.here:
        platforms.append(f"linux_{MACHINES[target.architecture]}")
    fitting = [wheel for wheel in own if wheel.fits(target.python, platforms)]
    if len(fitting) == 1:
        return fitting[0]
    files = ", ".join(wheel.path.name for wheel in fitting or own)
    python = target.python.replace(".", "")
    hint = (
        "remove all but one of them"
        if fitting
        else f"taken are: py3-none-any; cp{python}-cp{python} and cp3N-abi3 of up to"
        f" {target.platforms[0]}"
    )
    raise InvalidError(
        "several wheels of a package fit" if fitting else "no wheel of a package fits",
        package=name,
        python=target.python,
        architecture=target.architecture,
        files=files,
        hint=hint,
    )


def _check_names(wheels: Sequence[Wheel]) -> None:
    """Refuse packages and modules that stand where those of Python, ours, or those that bundles and
    images bring would be found."""
    for wheel in wheels:
        if wheel.name in _brought():
            hint = "leave it out: bundles and images bring it, in the version that was tested"
            raise InvalidError("a package that Lakebed brings", file=wheel.path, hint=hint)
        modules = {top.partition(".")[0] for top in wheel.tops}
        taken = {*OUR_TOPS, *sys.stdlib_module_names}
        hidden = sorted(m for m in modules if m in taken or normalised(m) in _brought())
        if hidden:
            hint = "give the package's modules names of their own"
            raise InvalidError(
                "a package has a module of the name of another",
                file=wheel.path,
                modules=", ".join(hidden),
                hint=hint,
            )


def _check_needs(wheels: Sequence[Wheel]) -> None:
    """Refuse packages that need what neither lies beside them nor is in any bundle or image. It may
    be in some only: functions, for one, have no Kafka."""
    there = {wheel.name for wheel in wheels} | _brought()
    for wheel in wheels:
        missing = sorted(set(wheel.needs) - there)
        if missing:
            hint = "add its wheel: wheels are unpacked, nothing else is fetched for them"
            raise InvalidError(
                "a package needs one that is not there",
                file=wheel.path,
                needs=", ".join(missing),
                hint=hint,
            )


def _check_steps(wheels: Sequence[Wheel]) -> None:
    for entry_group in STEPS:
        taken = dict.fromkeys(OUR_STRATEGIES if entry_group == STRATEGIES else (), "Lakebed")
        for wheel in wheels:
            for name in wheel.steps.get(entry_group, ()):
                if name in taken:
                    hint = "give one of them another name"
                    raise InvalidError(
                        "two packages have a step of one name",
                        step=name,
                        entry_group=entry_group,
                        packages=f"{taken[name]}, {wheel.name}",
                        hint=hint,
                    )
                taken[name] = wheel.name


@cache
def _brought() -> frozenset[str]:
    """Return the names of packages that some bundle or image has, and ours."""
    bundles = {bundle.requirements for bundle in (STATE, ROWS, FEEDS)}
    files = bundles | requirements_of_images()
    return frozenset({"lakebed"}.union(*map(_required, files)))


def _required(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    return map(normalised, re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE))
