"""Refuses to work where a package is missing that Spark asks for before it passes Arrow batches."""

from __future__ import annotations

from importlib.util import find_spec

from lakebed.errors import InvalidError


def refuse_without_pandas() -> None:
    """Raise InvalidError where pandas is missing. Nothing of it is used."""
    if find_spec("pandas") is None:
        hint = "install it where the driver runs: pip install pandas"
        raise InvalidError("Spark passes Arrow batches only where pandas is installed", hint=hint)
