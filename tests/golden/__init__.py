"""Stored bytes and the deployment as they are today, and files that older programs wrote.

`make golden` rewrites the former; review the difference. The latter stand in `kept.txt`, each with
its digest, and are never rewritten (H14). `error_codes.txt` only grows, by hand.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent
KEPT = "kept.txt"
"""Lists files as `sha256sum` does, with paths from here."""

STORED = "a stored format changed: see `make golden`"
OLD = "what was written before is read otherwise now: mend what reads it, the file stays as it is"


def check_golden(name: str, got: str, *, advice: str = STORED) -> None:
    """Compare text with the golden file of that name; or rewrite the file, when told to.

    A file that is kept is compared, whatever one is told.

    advice: what a failure says before it lists the lines that changed; of a kept file it says why
    that one stays.
    """
    file = FOLDER / name
    if name in kept_files():
        advice = OLD
    elif os.environ.get("LAKEBED_GOLDEN") == "rewrite":
        file.write_text(got, encoding="utf-8")
    assert file.exists(), f"{file.name} is missing: run `make golden`"
    before = file.read_text(encoding="utf-8")
    changes = difflib.unified_diff(before.splitlines(), got.splitlines(), name, name, "", "", 0, "")
    assert got == before, "\n".join([advice, *changes])


def kept_files() -> dict[str, str]:
    """Return the digest of each file that is never rewritten, by its path in this folder."""
    lines = (FOLDER / KEPT).read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def hex_lines(body: bytes) -> str:
    """Return bytes as lines of hexadecimal digits, 32 bytes each."""
    return "".join(body[at : at + 32].hex() + "\n" for at in range(0, len(body), 32))


def from_hex_lines(text: str) -> bytes:
    """Return the bytes of `hex_lines`."""
    return bytes.fromhex(text.replace("\n", ""))
