"""Positions that an operator moves or removes: the log says who did it, and why. What feeds do
themselves is `PositionChange`.
"""

from __future__ import annotations

import msgspec

from lakebed.errors import CorruptError, InvalidError
from lakebed.feed_errors import PositionMovedError
from lakebed.model.feeds.positions import decode_position, position_name
from lakebed.model.names import ConnectionId
from lakebed.statestore.log_entries.feed_changes import known_connection
from lakebed.statestore.table_state.feed_records import connection_of, put_errors_in_row
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.window_records import forget_split

WHO_BYTES_MAX, WHY_BYTES_MAX = 200, 1_000


class ResetPosition(msgspec.Struct, frozen=True, array_like=True, tag="reset_position"):
    """An operator lets a source split be read from another record on (R2).

    expected: the position that the operator saw; None: there was none. Any other is refused.
    value: the new one. Its revision is the next, so batches under way are refused for good.
    """

    connection: ConnectionId
    source_split: str
    expected: bytes | None
    value: bytes
    who: str
    why: str

    def check(self, state: TableState) -> None:
        _check_operator(self.who, self.why)
        _check_expected(state, self.connection, self.source_split, self.expected)
        before = 0 if self.expected is None else sent_revision(self.expected)
        if sent_revision(self.value) != before + 1:
            raise InvalidError(
                "a position is reset without the next revision",
                revision=before,
                hint=f"give it revision {before + 1}",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        name = position_name(self.connection, self.source_split)
        _, owner = state.position(name) or (None, 0)
        state.write("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (name, self.value, owner))
        known = connection_of(state, self.connection)
        if known is not None:
            put_errors_in_row(state, known, self.source_split, 0)


class DropPosition(msgspec.Struct, frozen=True, array_like=True, tag="drop_position"):
    """An operator lets a source split be forgotten: if the source has it, it is read from its
    beginning. The watermark waits for it no more.

    expected: the position that the operator saw. Any other is refused.
    """

    connection: ConnectionId
    source_split: str
    expected: bytes
    who: str
    why: str

    def check(self, state: TableState) -> None:
        _check_operator(self.who, self.why)
        _check_expected(state, self.connection, self.source_split, self.expected)

    def apply(self, state: TableState, moment: Moment) -> None:
        name = position_name(self.connection, self.source_split)
        state.write("DELETE FROM positions WHERE name = ?", (name,))
        known = connection_of(state, self.connection)
        if known is not None:
            put_errors_in_row(state, known, self.source_split, 0)
            forget_split(state, known, self.source_split)


def sent_revision(value: bytes) -> int:
    """Return the revision of a position that came with a request. Raises: InvalidError: it is
    none."""
    try:
        return decode_position(value).revision
    except CorruptError as error:
        raise InvalidError(
            "the value is not a position",
            value=value[:40].hex(),
            hint="send the bytes of a position as the table gives them",
        ) from error


def _check_operator(who: str, why: str) -> None:
    for name, text, most in (("who", who, WHO_BYTES_MAX), ("why", why, WHY_BYTES_MAX)):
        if not text.strip() or len(text.encode("utf-8", "replace")) > most:
            hint = f"write 1 to {most:,} bytes, for those who read the log"
            raise InvalidError(f"the log keeps {name} it was", hint=hint)


def _check_expected(
    state: TableState, connection: ConnectionId, source_split: str, expected: bytes | None
) -> None:
    known_connection(state, connection)
    name = position_name(connection, source_split)
    found, _ = state.position(name) or (None, 0)
    if found != expected:
        raise PositionMovedError(
            "the position is not the one that was expected",
            position=name,
            hint="list positions, and decide again",
        )
