"""MessagePack payloads, each of which is exactly one map, opened by msgspec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakebed.decoding.python_values import BadRecordError
from lakebed.decoding.wanted import Raw, Value, tree_of
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, StructOf

_ANY = msgspec.msgpack.Decoder()
_FIELDS = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.msgpack.Decoder(list[msgspec.Raw])
_FIXMAP, _FIXMAP_END, _MAP16, _MAP32 = 0x80, 0x8F, 0xDE, 0xDF
_SIZES = {_MAP16: 2, _MAP32: 4}
_FIXARRAY, _FIXARRAY_END, _ARRAY16, _ARRAY32 = 0x90, 0x9F, 0xDC, 0xDD


class OpenMsgpack:
    """Opens payloads. Of each only the wanted values are decoded; all others stay bytes.

    Maps are opened one level after another: so a name that comes twice is seen, of which a dict
    would keep the last.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self._values = values
        self._tree = tree_of(tuple(values))

    def __call__(self, payload: bytes) -> Mapping[str, Any]:
        """Return a payload's fields. Raises: BadRecordError."""
        try:
            return self._fields(payload, self._tree, "")
        except UnicodeDecodeError:
            raise BadRecordError(Verdict.NOT_UTF8, "a text") from None
        except RecursionError:
            raise BadRecordError(Verdict.UNPARSABLE, "it is nested too deep") from None
        except msgspec.DecodeError as error:
            raise _reason(payload, error) from None

    def _fields(self, raw: bytes, tree: Mapping[str, object], at: str) -> dict[str, Any]:
        fields: dict[str, Any] = dict(_unique(raw, at))
        for name, inner in tree.items():
            if name not in fields:
                continue
            value, path = bytes(fields[name]), f"{at}.{name}" if at else name
            if isinstance(inner, int):
                fields[name] = _decoded(value, self._values[inner].raw, path)
            elif isinstance(inner, Mapping) and _is_map(value):
                fields[name] = self._fields(value, inner, path)
            else:
                fields[name] = _ANY.decode(value)
        return fields


def _decoded(raw: bytes, type_: Raw, at: str) -> object:
    """Return a value; a name that comes twice in it is refused, too."""
    match type_:
        case StructOf(members) if _is_map(raw):
            types = {member.name: member.type for member in members}
            return {
                name: _decoded(bytes(value), types[name], f"{at}.{name}")
                for name, value in _unique(raw, at).items()
                if name in types
            }
        case MapOf(key, item) if _is_map(raw) and key.name == "string":
            return {n: _decoded(bytes(v), item, at) for n, v in _unique(raw, at).items()}
        case ListOf(element) if isinstance(element, StructOf | MapOf | ListOf) and _is_list(raw):
            return [_decoded(bytes(item), element, f"{at}[]") for item in _ITEMS.decode(raw)]
        case _:
            value = _ANY.decode(raw)
            if isinstance(value, dict) and len(value) != _entries(raw):
                raise BadRecordError(Verdict.DUPLICATE_FIELD, at)
            return value


def _unique(raw: bytes, at: str) -> dict[str, msgspec.Raw]:
    fields: dict[str, msgspec.Raw] = _FIELDS.decode(raw)
    if len(fields) != _entries(raw):
        raise BadRecordError(Verdict.DUPLICATE_FIELD, at or "a name at the top")
    return fields


def _is_map(raw: bytes) -> bool:
    return _FIXMAP <= raw[0] <= _FIXMAP_END or raw[0] in _SIZES


def _is_list(raw: bytes) -> bool:
    return _FIXARRAY <= raw[0] <= _FIXARRAY_END or raw[0] in (_ARRAY16, _ARRAY32)


def _entries(raw: bytes) -> int:
    """Return how many entries a map says that it has."""
    if raw[0] in _SIZES:
        return int.from_bytes(raw[1 : 1 + _SIZES[raw[0]]], "big")
    return raw[0] - _FIXMAP


def _reason(payload: bytes, error: msgspec.DecodeError) -> BadRecordError:
    if not _is_map(payload):
        return BadRecordError(Verdict.NOT_ONE_OBJECT, "not a map")
    if "trailing" in str(error):
        return BadRecordError(Verdict.NOT_ONE_OBJECT, "more after the map")
    if isinstance(error, msgspec.ValidationError):
        return BadRecordError(Verdict.TYPE_MISMATCH, "a name is not a text, or a list is none")
    return BadRecordError(Verdict.UNPARSABLE, "not MessagePack, or cut off")
