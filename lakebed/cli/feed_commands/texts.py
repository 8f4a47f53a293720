"""Files of feeds that a command line names."""

from __future__ import annotations

from pathlib import Path

from lakebed.cli.row_commands.key_text import text_in
from lakebed.errors import UnreadableInputError


def feed_text(file: Path) -> str:
    """Return the text of a file of feeds. Raises: UnreadableInputError, InvalidError: it has
    none."""
    try:
        return text_in(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInputError("not a file of feeds", file=file, problem=error) from None
