"""Steps that are installed beside this process."""

from __future__ import annotations

from collections.abc import Collection

from lakebed.config.packages import installed_steps


class StepsBesideUs:
    """The steps of users among Python's packages. Asked anew each time: a package may come."""

    where = "installed"
    cure = "install its package, here and where workers run"

    def names(self, entry_group: str) -> Collection[str]:
        """Return the names in a group of entry points."""
        return installed_steps(entry_group).keys()
