"""Records that are made anew each time: objects of JSON, and containers of Avro of any schema."""

from __future__ import annotations

import json
import random
from typing import Any

_NAMES = ("id", "id", "name", "size", "flag", "other", "", "\u00e4", "\x01")
_SCALARS = (
    "0",
    "-7",
    "7.0",
    "1e2",
    "-0.0",
    "1E-400",
    "1e400",
    "9223372036854775808",
    "123456789012345678901234567890.5",
    "NaN",
    "-Infinity",
    "01",
    "null",
    "true",
    "false",
    '""',
    '"5"',
    '"\\u00e4\\n"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"\u20ac"',
    "{}",
    "[]",
)


def json_object(rng: random.Random) -> bytes:
    """Return an object, mostly of our names, mostly well formed."""
    return _object(rng, 0).encode("utf-8", "surrogatepass")


def _object(rng: random.Random, depth: int) -> str:
    space = rng.choice(["", "", "", " ", "\n", "\t\r"])
    members = [
        f"{json.dumps(rng.choice(_NAMES))}{space}:{space}{_value(rng, depth + 1)}"
        for _ in range(rng.choice([0, 1, 2, 3, 4, 6]))
    ]
    if depth == 0 and rng.random() < 0.6:
        members.append(f'"id":{rng.randint(-9, 9)}')
    return f"{{{space}{f'{space},'.join(members)}{space}}}"


def _value(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if kind < 0.85 or depth > 4:
        return rng.choice(_SCALARS)
    if kind < 0.93:
        return _object(rng, depth)
    return f"[{','.join(_value(rng, depth + 1) for _ in range(rng.randint(0, 3)))}]"


def container_of_any_schema(rng: random.Random) -> bytes:
    """Return a container with one record, of which the schema may be anything."""
    defined: list[str] = []
    fields = [_field(rng, defined, n) for n in range(rng.randint(0, 4))]
    if rng.random() < 0.7:
        fields.insert(0, {"name": "id", "type": rng.choice(["long", "int", ["null", "long"]])})
    schema: dict[str, Any] = {"type": "record", "name": "R", "fields": fields}
    if rng.random() < 0.1:
        schema["__fastavro_parsed"] = True
    if rng.random() < 0.2:
        schema["namespace"] = rng.choice(["a", "a.b", "", 5])
    text = json.dumps(schema).encode()
    data = b"".join(
        rng.choice([b"\x00", b"\x02", b"\x02a", b"\x01", b"\xfe\xff\xff\xff\x0f", rng.randbytes(8)])
        for _ in range(rng.choice([0, 1, 2, 5, 20]))
    )
    header = b"\x02\x16avro.schema" + zigzag(len(text)) + text + b"\x00"
    sync = b"s" * 16
    return b"Obj\x01" + header + sync + b"\x02" + zigzag(len(data)) + data + sync


def zigzag(number: int) -> bytes:
    """Return a long as Avro writes it."""
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(rng: random.Random, defined: list[str], number: int) -> dict[str, Any]:
    name = rng.choice(["name", "size", "flag", f"f{number}"])
    field: dict[str, Any] = {"name": name, "type": _type(rng, defined, 0)}
    if rng.random() < 0.1:
        field["default"] = rng.choice([None, 5, "x", {}, []])
    return field


def _type(rng: random.Random, defined: list[str], depth: int) -> object:
    if depth > 4 or rng.random() < 0.4:
        names = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        return rng.choice([*names, *defined, "R", "unknown"][: rng.choice([8, 8, 99])])
    match rng.randrange(8):
        case 0:
            return [_type(rng, defined, depth + 1) for _ in range(rng.randint(0, 3))]
        case 1:
            return {"type": "array", "items": _type(rng, defined, depth + 1)}
        case 2:
            return {"type": "map", "values": _type(rng, defined, depth + 1)}
        case 3:
            return _named(rng, defined) | {
                "type": "enum",
                "symbols": ["A", "B"][: rng.randint(0, 2)],
            }
        case 4:
            size = rng.choice([0, 1, 8, 16, -1, 1 << 40, True, "2"])
            return _named(rng, defined) | _logical(rng) | {"type": "fixed", "size": size}
        case 5:
            of = rng.choice(["bytes", "string", "int", "long", {"type": "bytes"}])
            return _logical(rng) | {"type": of}
        case _:
            made = _named(rng, defined)
            fields = [
                {"name": f"g{n}", "type": _type(rng, defined, depth + 1)}
                for n in range(rng.choice([0, 1, 2, 12]))
            ]
            return made | {"type": "record", "fields": fields}


def _named(rng: random.Random, defined: list[str]) -> dict[str, object]:
    name = rng.choice([f"T{len(defined)}", f"T{len(defined)}", f"n.T{len(defined)}", "R", "T0"])
    defined.append(name)
    return {"name": name}


def _logical(rng: random.Random) -> dict[str, object]:
    kinds = [
        "decimal",
        "uuid",
        "date",
        "timestamp-micros",
        "time-millis",
        "lakebed-decimal",
        "x",
        5,
    ]
    return {
        "logicalType": rng.choice(kinds),
        "precision": rng.choice([4, 0, -1, 10**9, "4"]),
        "scale": rng.choice([0, 2, -1, 10**9, None]),
    }
