"""Steps that users write: entry points of packages, of which this tells the names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class InstalledSteps(Protocol):
    """The steps of users that programs find when they work on the tables of a lake."""

    @property
    def where(self) -> str:
        """Return where they look, for messages: behind "no such strategy is"."""
        ...

    @property
    def cure(self) -> str:
        """Return what to do when one is missing."""
        ...

    def names(self, entry_group: str) -> Collection[str]:
        """Return the names in a group of entry points."""
        ...
