"""Packages of users that an instance is deployed with: the setting, and what is recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ITERATORS = "lakebed.iterators"
STRATEGIES = "lakebed.compaction_strategies"
ADAPTORS = "lakebed.sources"
STEPS = (ITERATORS, STRATEGIES, ADAPTORS)
"""Groups of entry points."""

Packages = Annotated[
    str,
    Meta(
        max_length=4_000,
        description="Wheels with steps of yours: a folder that holds them, or their files with"
        " commas between, as the machine names them that synthesizes. They go to all that reads,"
        " merges or takes in rows, and to what plans compactions. `SHA256SUMS` beside them pins"
        " them. None: tables have our strategies, and no iterators.",
    ),
]


def installed_steps(entry_group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group that are installed beside this process, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 30 ms, of no use to most

    return {point.name: point for point in entry_points(group=entry_group)}


class DeployedPackage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A package that an instance was deployed with.

    sha256: of its wheels, the one of functions and tasks first.
    steps: names of its entry points, by group.
    """

    name: str
    version: str
    sha256: tuple[str, ...]
    steps: Mapping[str, tuple[str, ...]] = {}


class DeployedSteps:
    """Steps that an instance was deployed with."""

    cure = "deploy the instance with its package: `-c packages=FOLDER`"

    def __init__(self, instance: str, packages: Sequence[DeployedPackage]) -> None:
        self.where = f"in the instance {instance}"
        self._packages = packages

    def names(self, entry_group: str) -> Collection[str]:
        """Return the names in a group of entry points."""
        return {name for package in self._packages for name in package.steps.get(entry_group, ())}
