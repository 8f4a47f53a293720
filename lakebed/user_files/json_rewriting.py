"""Text of JSON lines made such that Arrow parses it: maps as lists of pairs, numbers as numbers.

A name in quotes before a colon is a name: in a text, its quotes would be escaped. So names can be
found without parsing. Where a schema uses one name for several types, nothing is rewritten: then a
line is refused, and never read as something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from lakebed.model.schema import Schema
from lakebed.model.types import Decimal, ListOf, MapOf, Primitive, Type, members_within

ENTRY_KEY, ENTRY_VALUE = "<key>", "<value>"
_STRING = rb'"(?:[^"\\\n]|\\.)*"'
_PAIR = re.compile(rb'"((?:[^"\\\n]|\\.)*)"[ \t]*:[ \t]*(' + _STRING + rb'|[^,"\s]+)')
_WHOLE_PAIR = re.compile(rb'"(-?\d+)"[ \t]*:[ \t]*(' + _STRING + rb'|[^,"\s]+)')
_KEY, _VALUE = (json.dumps(name).encode() for name in (ENTRY_KEY, ENTRY_VALUE))
_SCALARS = {
    "int64": rb"-?\d+",
    "float32": rb"NaN|-?Infinity",
    "float64": rb"NaN|-?Infinity",
}
"""What may come as a string."""

Rewrite = Callable[[bytes], bytes]


class Rewriting:
    """What to do with the lines of a table."""

    def __init__(self, schema: Schema) -> None:
        self._maps: list[Rewrite] = []
        self._numbers: list[Rewrite] = []
        for name, type_ in _named_types(schema):
            begin = rb"(?<!\\)(" + re.escape(_quoted(name)) + rb"[ \t]*:[ \t]*)"
            if isinstance(type_, MapOf):
                self._maps.append(_map_rewrite(begin, type_))
            elif isinstance(type_, ListOf):
                self._numbers += _list_rewrites(begin, type_)
            else:
                self._numbers += _scalar_rewrites(begin, type_)

    def maps(self, block: bytes) -> bytes:
        """Return the lines with maps as lists of pairs."""
        for rewrite in self._maps:
            block = rewrite(block)
        return block

    def numbers(self, block: bytes) -> bytes:
        """Return the lines with numbers that came as strings as numbers, decimals as strings."""
        for rewrite in self._numbers:
            block = rewrite(block)
        return block


def _named_types(schema: Schema) -> Iterator[tuple[str, Type]]:
    """Yield each name that stands for one type wherever it stands."""
    found: dict[str, list[Type]] = {}
    for field in schema.fields:
        found.setdefault(field.name, []).append(field.type)
        for member in members_within(field.type):
            found.setdefault(member.name, []).append(member.type)
    for name, types in found.items():
        if all(type_ == types[0] for type_ in types):
            yield name, types[0]


def _quoted(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode()


def _scalar_rewrites(begin: bytes, type_: Type) -> list[Rewrite]:
    if isinstance(type_, Decimal):
        return [_substitution(begin + rb"(-?\d[\d.eE+-]*)", rb'\1"\2"')]
    text = _SCALARS.get(type_.name) if isinstance(type_, Primitive) else None
    return [] if text is None else [_substitution(begin + rb'"(' + text + rb')"', rb"\1\2")]


def _list_rewrites(begin: bytes, type_: ListOf) -> list[Rewrite]:
    """The quotes of a list's numbers go, if nothing else is in it."""
    element = type_.element
    text = _SCALARS.get(element.name) if isinstance(element, Primitive) else None
    if text is None:
        return []
    one = rb'(?:"(?:' + text + rb')"|[^"\[\],\s]+)'
    whole = re.compile(begin + rb"(\[[ \t]*" + one + rb"(?:[ \t]*,[ \t]*" + one + rb")*[ \t]*\])")
    return [lambda block: whole.sub(lambda m: m[1] + m[2].replace(b'"', b""), block)]


def _map_rewrite(begin: bytes, type_: MapOf) -> Rewrite:
    """An object of flat values becomes a list of pairs."""
    whole = re.compile(begin + rb'\{((?:[^{}\[\]"\n]|' + _STRING + rb")*)\}")
    is_text = type_.key.name == "string"
    pair, key = (_PAIR, rb'"\1"') if is_text else (_WHOLE_PAIR, rb"\1")
    entry = rb"{" + _KEY + rb":" + key + rb"," + _VALUE + rb":\2}"
    values = _scalar_rewrites(rb"(" + _VALUE + rb":)", type_.value)

    def rewritten(match: re.Match[bytes]) -> bytes:
        entries = pair.sub(entry, match[2])
        for rewrite in values:
            entries = rewrite(entries)
        return match[1] + b"[" + entries + b"]"

    return lambda block: whole.sub(rewritten, block)


def _substitution(pattern: bytes, by: bytes) -> Rewrite:
    compiled = re.compile(pattern)
    return lambda block: compiled.sub(by, block)
