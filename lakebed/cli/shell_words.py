"""Hints of the library, which are Python's, in the words of the shell."""

from __future__ import annotations

import re

_WORDS = (
    (r"\bsay extra_columns='drop'", "add --extra-columns drop"),
    (r"\bzone='([^']+)'", r"--zone \1"),
    (r"\bformat=(\w+)", r"--format \1"),
    (
        r"connect\('([^']+)', objects='([^']+)'\)",
        r"lakebed table create --lake \1 --objects \2 ...",
    ),
    (r"`lake\.run(\(\))?`", "`lakebed run`"),
    (r"`Table\.(ingest|submit)`", r"`lakebed \1`"),
)


def in_shell_words(hint: str) -> str:
    """Return a hint with each argument of Python as the option that it is in the shell."""
    for python, shell in _WORDS:
        hint = re.sub(python, shell, hint)
    return hint
