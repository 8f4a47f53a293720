"""Guesses whether a payload can be read: msgspec parses it in a microsecond. The guess is no
verdict: it sorts the payloads of a block that Arrow rejected."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from lakebed.decoding.wanted import Raw, Value, tree_of
from lakebed.model.types import Decimal, ListOf, MapOf, Primitive, StructOf

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NUMERIC = int | float | Annotated[str, msgspec.Meta(pattern=_NUMBER)]

_NOT_OF_MSGSPEC = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec takes in no name: a field with one in its name is not looked at."""


def guess_of(values: Sequence[Value]) -> Callable[[bytes], bool]:
    """Return what guesses whether values can be read."""
    decode = msgspec.json.Decoder(_form(tree_of(tuple(values)), values)).decode

    def guess(payload: bytes) -> bool:
        try:
            decode(payload)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    return guess


def _form(tree: dict[str, object], values: Sequence[Value]) -> Any:  # noqa: ANN401 - a type
    fields: list[tuple[str, Any]] = []
    for name, node in tree.items():
        if isinstance(node, int):
            fields.append((name, _type(values[node].raw)))
        else:
            assert isinstance(node, dict), "a tree holds indices and trees"
            fields.append((name, _form(node, values)))
    return _struct(fields)


def _struct(fields: Sequence[tuple[str, Any]]) -> Any:  # noqa: ANN401 - a type
    return msgspec.defstruct(
        "Guessed",
        [
            (f"f{index}", type_ | None, msgspec.field(name=name, default=None))
            for index, (name, type_) in enumerate(fields)
            if not _NOT_OF_MSGSPEC.search(name)
        ],
    )


def _type(raw: Raw) -> Any:  # noqa: ANN401 - a type
    match raw:
        case "number" | Decimal():
            return _NUMERIC
        case ListOf(element):
            inner = _type(element)
            return GenericAlias(list, (inner | None,))
        case MapOf(_, value):
            inner = _type(value)
            return GenericAlias(dict, (str, inner | None))
        case StructOf(members):
            return _struct([(member.name, _type(member.type)) for member in members])
        case Primitive(name) if "int" in name:
            return _NUMERIC
        case Primitive(name) if name.startswith("float"):
            return float
        case Primitive("bool"):
            return bool
        case _:
            return str
