"""Stored bytes and the deployment as they are today.

`make golden` rewrites them; review the difference.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent


STORED = "a stored format changed: see `make golden`"


def check_golden(name: str, got: str, *, advice: str = STORED) -> None:
    """Compare text with the golden file of that name; or rewrite the file, when told to.

    advice: what a failure says before it lists the lines that changed.
    """
    file = FOLDER / name
    if os.environ.get("LAKEBED_GOLDEN") == "rewrite":
        file.write_text(got, encoding="utf-8")
    assert file.exists(), f"{file.name} is missing: run `make golden`"
    before = file.read_text(encoding="utf-8")
    changes = difflib.unified_diff(before.splitlines(), got.splitlines(), name, name, "", "", 0, "")
    assert got == before, "\n".join([advice, *changes])


def hex_lines(body: bytes) -> str:
    """Return bytes as lines of hexadecimal digits, 32 bytes each."""
    return "".join(body[at : at + 32].hex() + "\n" for at in range(0, len(body), 32))


def from_hex_lines(text: str) -> bytes:
    """Return the bytes of `hex_lines`."""
    return bytes.fromhex(text.replace("\n", ""))
