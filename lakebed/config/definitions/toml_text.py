"""Files of TOML, as we write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return a file of parts, with an empty line between. Sections in sections get a heading each.
    What TOML does not have is a bug of the caller."""
    return "\n".join(_lines(part) for part in parts)


def _lines(part: Mapping[str, Any], *above: str) -> str:
    """Return lines of TOML; sections in sections get a heading each."""
    return "".join(_pieces(part, above))


def _pieces(part: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    plain = {k: v for k, v in part.items() if above or not isinstance(v, Mapping)}
    for name, value in plain.items():
        yield f"{_key(name)} = {_value(value)}\n"
    for name, value in part.items():
        if name not in plain:
            yield f"[{_key(name)}]\n" + _lines(value, name)


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case {}:
            inner = ", ".join(f"{_key(str(name))} = {_value(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case [*values] | (*values,):
            return f"[{', '.join(map(_value, values))}]"
        case _:
            raise AssertionError(f"TOML has no {type(value).__name__}")
