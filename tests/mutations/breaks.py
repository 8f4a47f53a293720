"""The list of small breaks: what is changed, and which tests must see it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

FeedRow = Annotated[str, msgspec.Meta(pattern=r"^F[1-9]\d*$")]
LIST = Path(__file__).with_name("breaks.toml")


class Break(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of one place that takes a feature or a rule away. rows: of docs/map.md, 30 or F39.
    rules: of docs/protocol.md. old: stands once in the file. tests: names by file; every one of
    them must fail."""

    rows: list[int | FeedRow] = []
    rules: list[str] = []
    says: str
    file: str
    old: str
    new: str
    tests: dict[str, list[str]]

    @property
    def names(self) -> list[str]:
        """Rows and rules, as one asks for them: `30`, `F39`, `H7`."""
        return [*map(str, self.rows), *self.rules]

    @property
    def test_ids(self) -> list[str]:
        """The tests as pytest names them."""
        return [f"{file}::{name}" for file, names in self.tests.items() for name in names]

    def applied(self, text: str) -> str:
        """Return the file's text with the break. Raises: ValueError: it does not fit."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(
                f"{self.file}: the old text of {self.says!r} stands there {found} times"
            )
        return text.replace(self.old, self.new)


def breaks() -> list[Break]:
    """Return the list."""
    listed = tomllib.loads(LIST.read_text("utf-8"))
    return msgspec.convert(listed["break"], list[Break])
