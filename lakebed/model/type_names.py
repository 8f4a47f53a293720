"""Names that SQL, pandas and Arrow give to types: what each is here, or what to say instead."""

from __future__ import annotations

import re

SYNONYMS = {
    **dict.fromkeys(
        ("varchar", "char", "text", "str", "utf8", "large_string", "nvarchar"), "string"
    ),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary", "large_binary"), "binary"),
    **dict.fromkeys(("bigint", "long"), "int64"),
    "smallint": "int16",
    "tinyint": "int8",
    **dict.fromkeys(("double", "double precision", "float8"), "float64"),
    **dict.fromkeys(("real", "float4"), "float32"),
    "boolean": "bool",
    **dict.fromkeys(("date", "date32[day]"), "date32"),
    **dict.fromkeys(
        (
            "timestamptz",
            "timestamp with time zone",
            "timestamp[us,utc]",
            "timestamp[us, tz=utc]",
            "datetime64[us, utc]",
        ),
        "timestamp[us, UTC]",
    ),
    **dict.fromkeys(("timestamp without time zone", "datetime64[us]"), "timestamp[us]"),
    **dict.fromkeys(("time", "time without time zone"), "time64[us]"),
}
"""Synonyms of type names, in lower case: those that mean one thing only."""

_TIMES = "use 'timestamp[us, UTC]', or 'timestamp[us]' for times of no zone"
_UNIT = "use int64 with the unit in the field's name"
_INSTEAD = {
    **dict.fromkeys(("int", "integer"), "use int64 (int of Python), or int32 (INT of SQL)"),
    "float": "use float64 (float of Python), or float32 (float of Arrow)",
    "number": "use int64, float64 or 'decimal128(12,2)'",
    **dict.fromkeys(("uint64", "ubigint"), "use int64 or decimal128(20,0)"),
    **dict.fromkeys(("float16", "half", "halffloat"), "use float32"),
    **dict.fromkeys(("duration", "interval", "timedelta64", "timedelta"), _UNIT),
    "null": "give the field the type its values will have",
    **dict.fromkeys(("timestamp", "datetime", "datetime64"), _TIMES),
    **dict.fromkeys(("decimal", "numeric"), "use 'decimal128(12,2)' with your precision and scale"),
    "decimal256": "use decimal128 with a precision up to 38",
    "time32": "use 'time64[us]'",
    "date64": "use 'date32'",
    **dict.fromkeys(("object", "category", "enum", "dictionary"), "use 'string'"),
    **dict.fromkeys(("json", "jsonb", "uuid"), "use 'string'"),
    **dict.fromkeys(("list", "array"), 'use {"list": "string"}, with the type of its elements'),
    "map": 'use {"map": ["string", "int64"]}, with the types of keys and values',
    **dict.fromkeys(
        ("struct", "row", "record"), 'use {"struct": [{"name": "x", "type": "int64"}]}'
    ),
    **dict.fromkeys(("serial", "bigserial"), "use int64: numbers are not made here"),
}
_DECIMAL = re.compile(r"(?:decimal|numeric)(\(\s*\d+\s*,\s*\d+\s*\))")
_SIZED = re.compile(r"(?:n?varchar|char)\(\s*\d+\s*\)")


def meant(name: str) -> str:
    """Return the type that a name of another system means; a name that means none as it is."""
    lower = " ".join(name.lower().split())
    decimal = _DECIMAL.fullmatch(lower)
    return f"decimal128{decimal[1]}" if decimal else SYNONYMS.get(lower, name)


def instead_of(name: str) -> str | None:
    """Return what to say instead of a name that means no type, or several."""
    lower = name.lower()
    if _SIZED.fullmatch(lower):
        return "use 'string': it has no greatest length"
    known = re.match(r"[a-z0-9]+", lower)
    return _INSTEAD.get(known[0]) if known else None
