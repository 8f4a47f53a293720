"""Refuses a stored or sent text that needs a newer reader.

A release may add fields to internal messages and to the parameter of an instance: readers ignore
fields that they do not know. A release that adds one which no reader may ignore writes a number
`needs` with it, one above the last; a reader that knows a lower number refuses the text. No field
has needed that yet.
"""

from __future__ import annotations

import msgspec

from lakebed.errors import NewerFormatError


class _Needs(msgspec.Struct, frozen=True):
    needs: int = 1


_decode = msgspec.json.Decoder(_Needs).decode


def refuse_newer(text: bytes | str, what: str, *, known: int = 1) -> None:
    """Raise NewerFormatError if a JSON object needs a newer reader.

    what: its name in the error.
    known: the highest number that the reader knows. What is no such object is left to the reader.
    """
    try:
        needs = _decode(text).needs
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    if needs > known:
        raise NewerFormatError(f"{what} needs a newer release", needs=needs, known=known)
