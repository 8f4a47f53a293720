"""The async twin of `lakebed.face.versioned_table`.

Made by `make docs` from `lakebed/face/versioned_table.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.past_of_table import PastOfTable
from lakebed.face.versioned_table import VersionedTable as SyncVersionedTable

if TYPE_CHECKING:
    from lakebed.model.versions import AsOf
    from lakebed.tables.versions import TaggedVersion


class VersionedTable(PastOfTable):
    """A table whose older versions can be kept and read."""

    _sync: SyncVersionedTable

    async def tag(self, name: str, *, as_of: AsOf | None = None) -> TaggedVersion:
        """Give a version a name, so that it can be read until the tag is dropped. Returns the tag
        with the number of its version.

        name: 1 to 100 of letters, digits, `.`, `_` and `-`; not a number or a time by itself.
        as_of: the version, as `query` takes it; None for the newest.

        Raises:
            TagExistsError: the name is taken.
            InvalidError: not a name, or the version lies ahead.
            VersionExpiredError: the version is not kept any more; the hint names the oldest one.
            FormatGateError: older releases may still work on this lake. Nothing was changed.
        """
        return await self._calls.run(lambda: self._sync.tag(name, as_of=as_of))

    async def tags(self) -> list[TaggedVersion]:
        """Return all tags, by name."""
        return await self._calls.run(self._sync.tags)

    async def drop_tag(self, name: str) -> None:
        """Drop a tag. What only its version needs is collected as garbage.

        Raises:
            InvalidError: there is no such tag; with the nearest name.
        """
        await self._calls.run(lambda: self._sync.drop_tag(name))
