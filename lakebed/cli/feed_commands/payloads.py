"""Shows what records hold, so that no terminal obeys it."""

from __future__ import annotations

import base64

SHOWN_MAX = 200
"""Characters of a value in a line for people."""


def payload_json(name: str, payload: bytes | None) -> dict[str, str | None]:
    """Return what JSON says of some bytes: text by the name, what is no text as NAME_base64."""
    try:
        return {name: None if payload is None else payload.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(payload or b"").decode()}


def payload_text(payload: bytes | None) -> str:
    """Return the beginning of some bytes in one line."""
    if payload is None:
        return "none"
    ((name, text),) = payload_json("value", payload[: 4 * SHOWN_MAX]).items()
    text = escaped(text or "")[:SHOWN_MAX]
    return text if name == "value" else f"base64 {text}"


def escaped(text: str) -> str:
    """Return a text in one line, with all escaped that a terminal may obey."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
