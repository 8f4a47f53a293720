"""Steps that are installed beside this process."""

from __future__ import annotations

from collections.abc import Collection


class StepsBesideUs:
    """What Python finds among its packages. Asked anew each time: a package may come."""

    where = "installed"
    cure = "install its package, here and where workers run"

    def names(self, entry_group: str) -> Collection[str]:
        """Return the names in a group of entry points."""
        from importlib.metadata import entry_points  # noqa: PLC0415 - 30 ms, of no use to most

        return {point.name for point in entry_points(group=entry_group)}
