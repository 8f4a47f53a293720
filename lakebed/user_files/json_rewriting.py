"""Rows of JSON that Arrow rejects, written again such that it parses them.

Arrow knows maps as lists of pairs only, takes no number that comes as a string, and no decimal that
comes as a number. Such rows are decoded one at a time, changed where their schema says so, and
encoded again; all else is left to Arrow, which refuses what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import msgspec

from lakebed.errors import UnreadableInputError
from lakebed.model.types import Decimal, ListOf, MapOf, Primitive, StructOf, Type

LINE_HINT = "each line is one JSON object: names of fields, and values of their types"
ENTRY_KEY, ENTRY_VALUE = "<key>", "<value>"
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_NOT_FINITE = re.compile(r"NaN|-?Infinity")
_NUMBERS_IN_TEXT = {"int64": _WHOLE, "float32": _NOT_FINITE, "float64": _NOT_FINITE}
"""Patterns of the numbers that may come as a string, by type."""
_SPACE = re.compile(r"[ \t\n\r]*")


class _Object(msgspec.Struct):
    """An object as it came, with names that come twice: a dict would keep one of them. Where the
    schema has something else it is encoded as an object, too, and Arrow refuses it."""

    pairs: list[tuple[str, object]]


Change = Callable[[object], object]
"""A function from a decoded value to one whose text Arrow parses. It leaves numbers the text that
they were."""


class Rewriting:
    """Rewrites rows. types: of their fields, by name."""

    def __init__(self, types: Mapping[str, Type]) -> None:
        self._change = _change_of_object(types)
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_Object,
            parse_float=msgspec.Raw,
            parse_int=msgspec.Raw,
            parse_constant=msgspec.Raw,
        )
        self._encoder = msgspec.json.Encoder()

    def rewritten(self, rows: bytes) -> bytes:
        """Return the rows as Arrow reads them, a line each. At any time one row is held as Python
        objects.

        Raises:
            UnreadableInputError: a row is not JSON, or a text not UTF-8.
        """
        text = rows.decode(errors="surrogateescape")
        lines = bytearray()
        end = _after_space(text, 0)
        while end < len(text):
            try:
                row, after = self._decoder.raw_decode(text, end)
                self._encoder.encode_into(self._change(row), lines, len(lines))
            except json.JSONDecodeError as error:
                problem = f"not JSON: {error.msg}, at character {error.colno}"
                raise UnreadableInputError(
                    "a line cannot be read", problem=problem, hint=LINE_HINT
                ) from None
            except RecursionError:
                raise UnreadableInputError(
                    "a line cannot be read", problem="it is nested too deep", hint=LINE_HINT
                ) from None
            except UnicodeEncodeError:
                hint = "make the field binary, or mend the text"
                raise UnreadableInputError("a text is not UTF-8", hint=hint) from None
            lines += b"\n"
            end = _after_space(text, after)
        return bytes(lines)


def _after_space(text: str, begin: int) -> int:
    found = _SPACE.match(text, begin)
    return found.end() if found else begin


def _change_of(type_: Type) -> Change:
    match type_:
        case Decimal():
            return lambda value: _text_of(value) if isinstance(value, msgspec.Raw) else value
        case ListOf(element):
            change = _change_of(element)
            if change is _as_it_is:
                return change
            return lambda value: [change(v) for v in value] if isinstance(value, list) else value
        case MapOf(key, value):
            return _change_of_map(key, value)
        case StructOf(members):
            return _change_of_object({member.name: member.type for member in members})
        case Primitive(name) if name in _NUMBERS_IN_TEXT:
            return _change_of_text(_NUMBERS_IN_TEXT[name])
        case _:
            return _as_it_is


def _as_it_is(value: object) -> object:
    return value


def _change_of_text(number: re.Pattern[str]) -> Change:
    def changed(value: object) -> object:
        return msgspec.Raw(value) if isinstance(value, str) and number.fullmatch(value) else value

    return changed


def _change_of_map(key: Primitive, value: Type) -> Change:
    """Return the change by which an object becomes a list of its pairs, in their order."""
    change_key = _as_it_is if key.name == "string" else _change_of_text(_WHOLE)
    change = _change_of(value)

    def changed(found: object) -> object:
        if not isinstance(found, _Object):
            return found
        return [{ENTRY_KEY: change_key(k), ENTRY_VALUE: change(v)} for k, v in found.pairs]

    return changed


def _change_of_object(types: Mapping[str, Type]) -> Change:
    """Return the change of an object's members. What the schema does not know becomes null: Arrow
    drops or refuses it by its name."""
    changes = {name: _change_of(type_) for name, type_ in types.items()}

    def changed(found: object) -> object:
        if not isinstance(found, _Object):
            return found
        pairs = [(n, changes[n](v) if n in changes else None) for n, v in found.pairs]
        members = dict(pairs)
        return members if len(members) == len(pairs) else _with_all_names(pairs)

    return changed


def _with_all_names(pairs: list[tuple[str, object]]) -> msgspec.Raw:
    """Return the text of an object some of whose names come twice."""
    encode = msgspec.json.encode
    texts = [encode(name) + b":" + encode(value) for name, value in pairs]
    return msgspec.Raw(b"{" + b",".join(texts) + b"}")


def _text_of(number: msgspec.Raw) -> str:
    return bytes(number).decode()
