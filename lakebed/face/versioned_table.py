"""Keeps versions of a table, and gives them names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.face.past_of_table import PastOfTable

if TYPE_CHECKING:
    from lakebed.model.versions import AsOf
    from lakebed.tables.versions import TaggedVersion


class VersionedTable(PastOfTable):
    """A table whose older versions can be kept and read."""

    def tag(self, name: str, *, as_of: AsOf | None = None) -> TaggedVersion:
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
        from lakebed.tables.versions import put_tag

        number = None if as_of is None else self._app.past.number_of(self._opened, as_of)
        return put_tag(self._opened, name, number)

    def tags(self) -> list[TaggedVersion]:
        """Return all tags, by name."""
        from lakebed.tables.versions import tags

        return tags(self._opened)

    def drop_tag(self, name: str) -> None:
        """Drop a tag. What only its version needs is collected as garbage.

        Raises:
            InvalidError: there is no such tag; with the nearest name.
        """
        from lakebed.tables.versions import drop_tag

        drop_tag(self._opened, name)
