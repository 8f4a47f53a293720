"""Packages of users that an instance is deployed with: the setting, and what is recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

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
