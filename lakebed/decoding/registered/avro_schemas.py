"""Schemas of Avro as fastavro is given them: rebuilt from what is known of each type, with what
they refer to in them, and only those by which a small payload stays small.

A schema may come with a hostile record. So none is handed on as it is: fastavro takes one that says
that it was parsed already at its word, follows types that hold themselves until the process dies,
and makes billions of records out of no bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

from lakebed.ports.schema_registry import SCHEMA_BYTES_MAX, RegisteredSchema

DEPTH_MAX: Final = 100
"""Greatest depth of types within types, also by name: fastavro descends without a look at the
stack. Deeper schemas are not read."""
OBJECTS_OF_BYTE_MAX: Final = 8
"""Most objects for each byte of a list's or map's item: a hundred nulls in one are too many."""
OBJECTS_MAX: Final = 10_000
"""Most objects that a record becomes beyond those of its bytes."""
PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string", "null")
_KEPT: Final = ("aliases", "default")
_DECIMAL: Final = "lakebed-decimal"
_BITS_MAX, _SCALE_MAX = 256, 1_000
_EXACT: Final = Context(prec=80)
_TOO_LARGE: Final = Decimal("1E+100000")
_BROKEN: Final = (
    SchemaParseException,
    UnknownType,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
Form = Any
"""A decoded JSON value."""


def parsed_schema(schema: RegisteredSchema) -> Any:  # noqa: ANN401 - what fastavro parses
    """Return a schema as fastavro reads by it; None: it is none, or not one to read by."""
    if schema.kind != "avro" or len(schema.text) > SCHEMA_BYTES_MAX:
        return None
    try:
        types = _Types()
        for text in schema.references:
            types.form_of(json.loads(text))
        form = types.form_of(json.loads(schema.text))
        if types.depth(form) > DEPTH_MAX or types.score(form) > OBJECTS_MAX:
            return None
        return fastavro.parse_schema(types.whole(form))
    except _BROKEN:
        return None


def _decimal(data: bytes, writer: Mapping[str, Any], _reader: object = None) -> Decimal:
    """Return a decimal as it stands there. fastavro would round it to the schema's precision, and
    is busy for hours with one of some megabytes."""
    unscaled = int.from_bytes(data, "big", signed=True)
    if unscaled.bit_length() > _BITS_MAX:
        return _TOO_LARGE
    return _EXACT.scaleb(Decimal(unscaled), -writer.get("scale", 0))


LOGICAL_READERS[f"bytes-{_DECIMAL}"] = LOGICAL_READERS[f"fixed-{_DECIMAL}"] = _decimal


class _Types:
    """Types with a name, of one schema and those that it refers to. A form has them by name."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str, Form]] = {}
        self._scores: dict[str, int | None] = {}
        self._depths: dict[str, int | None] = {}
        self._written: set[str] = set()

    def form_of(self, form: Form, space: str = "", depth: int = 0) -> Form:
        """Return a type of JSON with full names, and nothing in it that is not known.

        space: the namespace that it stands in. Raises: ValueError and the like: it is no type.
        """
        if depth > DEPTH_MAX:
            raise ValueError
        match form:
            case str():
                return form if form in PRIMITIVES else self._known(form, space)
            case list():
                return [self.form_of(part, space, depth + 1) for part in form]
            case {"type": "record" | "error"}:
                return self._record(form, space, depth)
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.form_of(items, space, depth + 1)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.form_of(values, space, depth + 1)}
            case {"type": "enum", "symbols": list(symbols)}:
                return self._define(form, space, {"symbols": symbols})
            case {"type": "fixed", "size": int(size)} if size >= 0 and size is not True:
                return self._define(form, space, {"size": size, **_logical(form, "fixed")})
            case {"type": str(name)} if name in PRIMITIVES:
                logical = _logical(form, name)
                return {"type": name, **logical} if logical else name
            case {"type": dict() | list() | str() as inner}:
                return self.form_of(inner, space, depth + 1)
        raise ValueError

    def depth(self, form: Form) -> int:
        """Return how deep values of a type are at most. Raises: ValueError: it holds itself."""
        match form:
            case str() if form not in PRIMITIVES:
                return self._depth_of_named(form)
            case list():
                return 1 + max(map(self.depth, form), default=0)
            case {"items": inner} | {"values": inner}:
                return 1 + self.depth(inner)
            case _:
                return 1

    def score(self, form: Form) -> int:
        """Return how many objects a value of a type is at most beyond those that its bytes pay for.
        What is repeated must pay for itself. Raises: ValueError: it does not, or holds itself."""
        match form:
            case "null":
                return 1
            case str() if form in PRIMITIVES:
                return 1 - OBJECTS_OF_BYTE_MAX
            case str():
                return self._score_of_named(form)
            case list():
                return max(map(self.score, form), default=0) - OBJECTS_OF_BYTE_MAX
            case {"type": "array", "items": repeated}:
                paid = 0
            case {"type": "map", "values": repeated}:
                paid = OBJECTS_OF_BYTE_MAX  # by the length of its name
            case _:
                return self.score(form["type"])
        if self.score(repeated) > paid:
            raise ValueError
        return 1 - OBJECTS_OF_BYTE_MAX

    def whole(self, form: Form) -> Form:
        """Return a type that has the definition of each name where it comes first."""
        match form:
            case str():
                if form in PRIMITIVES or form in self._written:
                    return form
                self._written.add(form)
                definition = self._named[form]
                fields = definition.get("fields")
                if fields is None:
                    return definition
                return definition | {
                    "fields": [field | {"type": self.whole(field["type"])} for field in fields]
                }
            case list():
                return [self.whole(part) for part in form]
            case {"items": items}:
                return form | {"items": self.whole(items)}
            case {"values": values}:
                return form | {"values": self.whole(values)}
            case _:
                return form

    def _known(self, name: str, space: str) -> str:
        full = _full_name(name, space)
        if full not in self._named:  # a type without a namespace may be named in one
            full = _full_name(name, "")
        if full not in self._named:
            raise LookupError
        return full

    def _record(self, form: Mapping[str, Form], space: str, depth: int) -> str:
        full = self._define(form, space, {"fields": []})
        inner = full.rpartition(".")[0]
        fields: Sequence[Mapping[str, Form]] = form["fields"]
        for field in fields:
            kept = {name: field[name] for name in _KEPT if name in field}
            type_ = self.form_of(field["type"], inner, depth + 1)
            self._named[full]["fields"].append({"name": field["name"], "type": type_, **kept})
        return full

    def _define(self, form: Mapping[str, Form], space: str, more: Mapping[str, Form]) -> str:
        name: str = form["name"]
        full = _full_name(name, form.get("namespace", space))
        if full in self._named:
            raise ValueError
        kept = {name: form[name] for name in _KEPT if name in form}
        self._named[full] = {"type": form["type"], "name": full, **kept, **more}
        return full

    def _depth_of_named(self, full: str) -> int:
        if full not in self._depths:
            self._depths[full] = None
            fields = self._named[full].get("fields", ())
            inner = (self.depth(field["type"]) for field in fields)
            self._depths[full] = 1 + max(inner, default=0)
        found = self._depths[full]
        if found is None:  # it is in hand: it holds itself
            raise ValueError
        return found

    def _score_of_named(self, full: str) -> int:
        if full not in self._scores:
            self._scores[full] = None
            definition = self._named[full]
            if "fields" in definition:
                score = 1 + sum(self.score(field["type"]) for field in definition["fields"])
            elif "size" in definition:
                score = 1 - OBJECTS_OF_BYTE_MAX * definition["size"]
            else:
                score = 1 - OBJECTS_OF_BYTE_MAX
            self._scores[full] = score
        found = self._scores[full]
        if found is None:  # as above
            raise ValueError
        return found


def _full_name(name: str, space: str) -> str:
    """Return a name with its namespace; of one without it is `_`, as fastavro would look for it in
    the namespace around it."""
    if "." in name:
        return name
    return f"{space or '_'}.{name}"


def _logical(form: Mapping[str, Form], of: str) -> dict[str, Form]:
    match form.get("logicalType"):
        case "decimal" if of in {"bytes", "fixed"}:
            scale = form.get("scale", 0)
            if type(scale) is not int or not 0 <= scale <= _SCALE_MAX:
                return {}
            return {"logicalType": _DECIMAL, "scale": scale}
        case str() as logical if f"{of}-{logical}" in LOGICAL_READERS and "lakebed" not in logical:
            return {"logicalType": logical}
    return {}
