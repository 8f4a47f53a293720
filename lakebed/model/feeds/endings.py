"""Decides which connections are to be forgotten by the tables that know them, as a registry keeps
it. Pure, and every backend shares it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from lakebed.errors import UnavailableError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.model.feeds.definitions import NUMBER_MAX, DefinitionKind
from lakebed.model.names import ConnectionId, TableId

ENDED_VERSION = NUMBER_MAX + 1
"""Version of a dropped connection's definition in the logs of its tables: greater than that of any
worker, so none commits for it any more (protocol R17)."""
ENDINGS_BYTES_MAX = 300 << 10
"""As JSON: an item of DynamoDB has 400 KB."""


class KnownIn(msgspec.Struct, frozen=True, array_like=True):
    """A connection, and a table that may know it."""

    connection: ConnectionId
    table: TableId


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A definition that is about to be dropped, or was: what it led into tables is to be forgotten.

    id: of the definition; it is not given again in a table that has forgotten it.
    known_in: where its connections may be known; of one with a route, several.
    """

    id: str
    kind: DefinitionKind
    name: str
    known_in: tuple[KnownIn, ...]


class Endings(msgspec.Struct, frozen=True):
    """The list of what is to be forgotten, each once its definition is dropped.

    number: how often this was changed.
    waiting: one for each definition.
    """

    number: int = 0
    waiting: tuple[Ending, ...] = ()

    def after(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> Endings:
        """Return them with some more, and without those that have ended. ended: ids.

        Raises:
            DefinitionChangedError: they have another number: another process changed them.
            UnavailableError: too many wait.
        """
        if expected_number != self.number:
            raise endings_changed(self.number)
        by_id = {one.id: one for one in (*self.waiting, *announced) if one.id not in ended}
        found = Endings(self.number + 1, tuple(by_id.values()))
        if announced and len(msgspec.json.encode(found)) > ENDINGS_BYTES_MAX:
            hint = (
                "drop fewer at once; if that does not help, see why tables cannot be committed to"
            )
            raise UnavailableError(
                "too many dropped definitions wait to be forgotten by their tables",
                waiting=len(self.waiting),
                hint=hint,
            )
        return found


def endings_changed(number: int) -> DefinitionChangedError:
    """Return the error of a change that another came before. number: of the other."""
    return DefinitionChangedError("other definitions were dropped meanwhile", number=number)
