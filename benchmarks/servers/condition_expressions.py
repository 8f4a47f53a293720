"""Condition expressions of DynamoDB, as far as Lakebed writes them, for the slow server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Item = dict[str, Any]


class ExpressionError(ValueError):
    """The text is no expression that is known here."""


class Expression:
    """A condition on an item, as DynamoDB writes them: OR, AND, NOT, parentheses, comparisons."""

    def __init__(self, text: str, item: Item, asked: Item) -> None:
        self._words = re.findall(r"\(|\)|,|<=|<>|<|=|[#:\w]+", text)
        self._item = item
        self._asked = asked

    def holds(self) -> bool:
        held = self._both()
        while self._words[:1] == ["OR"]:
            self._words.pop(0)
            held = self._both() or held
        return held

    def _both(self) -> bool:
        held = self._one()
        while self._words[:1] == ["AND"]:
            self._words.pop(0)
            held = self._one() and held
        return held

    def _one(self) -> bool:
        word = self._words.pop(0)
        if word == "NOT":
            return not self._one()
        if word == "(":
            held = self.holds()
            self._words.pop(0)
            return held
        if word in {"attribute_exists", "attribute_not_exists"}:
            _, name, _ = self._words[:3]
            del self._words[:3]
            return (named(self._asked, name) in self._item) is (word == "attribute_exists")
        return self._compared(named(self._asked, word), self._words.pop(0))

    def _compared(self, name: str, how: str) -> bool:
        if how == "IN":
            end = self._words.index(")")
            values = [word for word in self._words[:end] if word.startswith(":")]
            del self._words[: end + 1]
        elif how in {"<", "<=", "=", "<>"}:
            values = [self._words.pop(0)]
        else:
            raise ExpressionError(how)
        if (own := self._item.get(name)) is None:
            return how == "<>"
        left = plain(own)
        rights = [plain(self._asked["ExpressionAttributeValues"][value]) for value in values]
        match how:
            case "<":
                return bool(left < rights[0])
            case "<=":
                return bool(left <= rights[0])
            case "<>":
                return bool(left != rights[0])
        return left in rights


def named(asked: Item, name: str) -> str:
    return str(asked.get("ExpressionAttributeNames", {}).get(name, name))


def plain(value: Mapping[str, str]) -> Any:  # noqa: ANN401 - a number or text
    return int(value["N"]) if "N" in value else value.get("S", value.get("B"))
