"""As what Arrow parses values of JSON, and what is looked at in them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.decoding import json_ordinals
from lakebed.decoding.masks import wide_decimal
from lakebed.decoding.wanted import Raw, Value
from lakebed.model.types import Decimal, ListOf, MapOf, Primitive, StructMember, StructOf, Type
from lakebed.user_files.json_columns import json_type
from lakebed.user_files.json_rewriting import ENTRY_KEY, ENTRY_VALUE


def columns_of(tree: Mapping[str, object], values: Sequence[Value], *, wide: bool) -> pa.Schema:
    """Return as what Arrow parses the fields of a payload. wide: integers as decimals."""
    return pa.schema([(name, _node(node, values, wide=wide)) for name, node in tree.items()])


def _node(node: object, values: Sequence[Value], *, wide: bool) -> pa.DataType:
    if isinstance(node, int):
        return _read_as(values[node].raw, wide=wide)
    assert isinstance(node, dict), "a tree holds indices and trees"
    return pa.struct([(name, _node(inner, values, wide=wide)) for name, inner in node.items()])


def _read_as(raw: Raw, *, wide: bool) -> pa.DataType:
    """Return the type as which Arrow parses a value."""
    match raw:
        case "number":
            return wide_decimal(9) if wide else pa.int64()
        case Decimal(_, scale):
            return wide_decimal(scale)
        case ListOf(element):
            return pa.list_(_read_as(element, wide=wide))
        case MapOf(key, value):
            entry = [(ENTRY_KEY, json_type(key)), (ENTRY_VALUE, _read_as(value, wide=wide))]
            return pa.list_(pa.struct(entry))
        case StructOf(members):
            return pa.struct([(m.name, _read_as(m.type, wide=wide)) for m in members])
        case Primitive(name) if wide and "int" in name:
            return wide_decimal(0)
        case _:
            return json_type(raw)


def has_map(raw: Raw) -> bool:
    """Return whether a type is a map, or holds one."""
    return _holds(raw, lambda part: isinstance(part, MapOf))


def has_float(raw: Raw) -> bool:
    """Return whether a type is a float, or holds one."""
    return _holds(raw, lambda part: isinstance(part, Primitive) and part.name.startswith("float"))


def _holds(raw: Raw, test: Callable[[Raw], bool]) -> bool:
    """Return whether a type, or one inside of it, passes a test."""
    if test(raw):
        return True
    match raw:
        case ListOf(inner) | MapOf(_, inner):
            return _holds(inner, test)
        case StructOf(members):
            return any(_holds(member.type, test) for member in members)
        case _:
            return False


def finite(column: pa.Array) -> pa.Array:
    """Return a column, if no float in it is infinite: JSON has none, so it was too large."""
    for values in _floats_in(column):
        if pc.any(pc.is_inf(values)).as_py():  # bounded: one flag
            raise pa.ArrowInvalid("a number is too large")
    return column


def _floats_in(column: pa.Array) -> Iterator[pa.Array]:
    kinds = pa.types
    if kinds.is_floating(column.type):
        yield column
    elif kinds.is_struct(column.type):
        for part in column.flatten():
            yield from _floats_in(part)
    elif kinds.is_list(column.type):
        yield from _floats_in(column.flatten())


def types_of(tree: Mapping[str, object], values: Sequence[Value]) -> dict[str, Type]:
    """Return the types of all names at the top, for rewriting: those of ordinals, too."""
    ordinals: dict[str, Type] = {name: Primitive("int64") for name in json_ordinals.NAMES}
    return ordinals | {name: _type_of_node(node, values) for name, node in tree.items()}


def _type_of_node(node: object, values: Sequence[Value]) -> Type:
    if isinstance(node, int):
        raw = values[node].raw
        return Decimal(38, 9) if raw == "number" else raw
    assert isinstance(node, dict), "a tree holds indices and trees"
    members = [StructMember(name, _type_of_node(inner, values), 1) for name, inner in node.items()]
    return StructOf(tuple(members))
