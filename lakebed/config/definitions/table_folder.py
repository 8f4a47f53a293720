"""The setting of an instance that brings files of tables."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

TableFolder = Annotated[
    str,
    Meta(
        max_length=4_000,
        description="A folder with a file of TOML for each table, as the machine names it that"
        " synthesizes. Each deployment with other files makes the tables so, takes offline what no"
        " file declares any more, and fails with the reason where that cannot be. None: `lakebed"
        " apply` does it, by hand.",
    ),
]
