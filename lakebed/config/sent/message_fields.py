"""Describes the fields of users' messages in words, for their pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def fields_of_message(model: type[BaseModel]) -> list[tuple[str, str, bool, str]]:
    """Return name, what is allowed, whether it must be there, and meaning of each field."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        (
            name,
            _form(_whole(field, schema)),
            name in required,
            str(field.get("description") or _described(field)),
        )
        for name, field in schema["properties"].items()
    ]


def _described(field: Mapping[str, Any]) -> str:
    descriptions = [one["description"] for one in field.get("anyOf", []) if "description" in one]
    return str(descriptions[0])


def _whole(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part of a schema, in place of a reference to it."""
    if "$ref" not in field:
        return field
    found: Mapping[str, Any] = schema["$defs"][field["$ref"].rpartition("/")[2]]
    return found


def _form(field: Mapping[str, Any]) -> str:
    """Return what a part of a schema allows, in words."""
    if "anyOf" in field:
        return " or ".join(_form(one) for one in field["anyOf"] if one.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("type")
    if kind == "array":
        return f"{field.get('minItems', 0)} to {field['maxItems']:,} in a list" + _of(field)
    if kind == "integer":
        return f"{field['minimum']} to {field['maximum']}" if "minimum" in field else "integer"
    if kind == "object":
        most = field.get("maxProperties")
        return f"object of up to {most}" if most else "object"
    return {"string": "text"}.get(str(kind), str(kind))


def _of(field: Mapping[str, Any]) -> str:
    inner = field["items"]
    longest = inner.get("maxLength")
    return f", each of up to {longest:,} characters" if longest else ""
