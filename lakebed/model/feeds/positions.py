"""Positions of sources: how far one has been taken, as a table's log and state keep it.

A position has a revision, which rises by one with each commit, also when an operator moves the
position back. So no two commits begin at the same bytes, and a batch that was refused because the
source was taken on stays refused (protocol R2).
"""

from __future__ import annotations

import re

import msgspec

from lakebed.errors import CorruptError, InvalidError, NewerFormatError
from lakebed.model.names import ConnectionId

FORM = 1
PENDING_FORM = 2
"""Form of positions that are pending: an older release must not take them for ordinary ones."""
LAST_FORM = 3
"""Form of positions that know the record before them."""
NAME_BYTES_MAX = 500
"""Most bytes of a connection's name with the name of a source split in it."""

_CONNECTION = re.compile(r"[a-z0-9]{1,64}")


class Position(msgspec.Struct, frozen=True):
    """The next record of a source split.

    revision: 1 for the first position; each commit adds one.
    next: the number of the record where the source counts them, else what the source calls it.
    incarnation: of the source split: one that was made anew under the same name has another.
    resume: what the adaptor needs beside, such as a cursor.
    is_pending: the quarantine may hold records at this position or behind it, which no commit of
        the table has counted yet (protocol R13).
    last: a digest of the record before, where a connection leaves out records that are equal to the
        one before; empty: it is not known.
    """

    revision: int
    next: int | bytes
    incarnation: str = ""
    resume: bytes = b""
    is_pending: bool = False
    last: bytes = b""


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    form: int
    revision: int
    next: int | bytes
    incarnation: str
    resume: bytes


class _StoredWithLast(msgspec.Struct, frozen=True, array_like=True):
    form: int
    revision: int
    next: int | bytes
    incarnation: str
    resume: bytes
    is_pending: bool
    last: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode
_decode_with_last = msgspec.msgpack.Decoder(_StoredWithLast).decode


def encode_position(position: Position) -> bytes:
    """Return the bytes of a position, the same for the same position."""
    p = position
    if p.last:
        return _encode(
            _StoredWithLast(
                LAST_FORM, p.revision, p.next, p.incarnation, p.resume, p.is_pending, p.last
            )
        )
    form = PENDING_FORM if p.is_pending else FORM
    return _encode(_Stored(form, p.revision, p.next, p.incarnation, p.resume))


def decode_position(value: bytes) -> Position:
    """Return the position that some bytes are.

    Raises:
        NewerFormatError: a newer Lakebed wrote them.
        CorruptError: they are none.
    """
    try:
        stored = msgspec.msgpack.decode(value)
        if (
            isinstance(stored, list)
            and stored
            and isinstance(stored[0], int)
            and stored[0] > LAST_FORM
        ):
            raise NewerFormatError("a newer position", form=stored[0])
        if isinstance(stored, list) and stored and stored[0] == LAST_FORM:
            return _with_last(_decode_with_last(value))
        found = _decode(value)
    except msgspec.DecodeError as error:
        raise CorruptError("not a position", reason=error) from None
    if found.form not in {FORM, PENDING_FORM} or found.revision < 1:
        raise CorruptError("not a position", form=found.form, revision=found.revision)
    is_pending = found.form == PENDING_FORM
    return Position(found.revision, found.next, found.incarnation, found.resume, is_pending)


def _with_last(found: _StoredWithLast) -> Position:
    if found.revision < 1 or not found.last:
        raise CorruptError("not a position", form=found.form, revision=found.revision)
    return Position(
        found.revision, found.next, found.incarnation, found.resume, found.is_pending, found.last
    )


def connection_id(id_: str) -> ConnectionId:
    """Return `id_` as the id of a connection.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not _CONNECTION.fullmatch(id_):
        hint = "use 1 to 64 of a-z and 0-9"
        raise InvalidError("not a connection's id", connection=ascii(id_)[:80], hint=hint)
    return ConnectionId(id_)


def position_name(connection: ConnectionId, source_split: str) -> str:
    """Return the name under which a table keeps the position of a connection's source split.

    Raises:
        InvalidError: it is empty or too long.
    """
    name = f"{connection}/{source_split}"
    if not source_split or len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        hint = f"use 1 to {NAME_BYTES_MAX - 65} bytes"
        raise InvalidError("not a source split", source_split=ascii(name)[:80], hint=hint)
    return name
