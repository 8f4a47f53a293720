"""Payloads of JSON without values that do not fit, where their records are rows without them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from lakebed.decoding.json_judging import DECODER, Number, Pairs, reason_of
from lakebed.decoding.values import DROPPED
from lakebed.decoding.wanted import Value, tree_of

Mended = tuple[bytes, tuple[int, ...]]
"""A payload, and the indices of values that were left out."""


class Mender:
    """Writes payloads anew, with nulls for wanted values that do not fit.

    values: that are wanted.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self._values = values
        self._tree = tree_of(tuple(values))

    def mended(self, payload: bytes) -> Mended | None:
        """Return a payload without what does not fit. None: that is nothing, or it is no object."""
        dropped: list[int] = []
        try:
            found = DECODER.decode(payload.decode())
            if not isinstance(found, Pairs):
                return None
            fitting = self._fitting(found, self._tree, dropped)
            return (_text(fitting).encode(), tuple(dropped)) if dropped else None
        except (ValueError, RecursionError):  # what cannot be read is judged as it came
            return None

    def _fitting(self, found: Pairs, tree: Mapping[str, object], dropped: list[int]) -> Pairs:
        """Return an object without what does not fit; the indices of that go to `dropped`."""
        fitting = Pairs()
        for name, value in found:
            inner, kept = tree.get(name), value
            if isinstance(inner, int):
                kept = None if self._drops(value, inner) else value
            elif isinstance(inner, dict) and isinstance(value, Pairs):
                fitting.append((name, self._fitting(value, inner, dropped)))
                continue
            elif isinstance(inner, dict) and all(self._values[i].drops for i in _leaves(inner)):
                kept = None
            if kept is None and value is not None:
                dropped += [inner] if isinstance(inner, int) else _leaves(inner)
            fitting.append((name, kept))
        return fitting

    def _drops(self, value: object, index: int) -> bool:
        wanted = self._values[index]
        reason = reason_of(value, wanted.raw, "") if wanted.drops else None
        return reason is not None and reason[0] in DROPPED


def _leaves(tree: object) -> Iterator[int]:
    """Yield the indices of all values of a tree."""
    if isinstance(tree, int):
        yield tree
    elif isinstance(tree, dict):
        for inner in tree.values():
            yield from _leaves(inner)


def _text(value: object) -> str:
    """Return a value as JSON; a number as it was written."""
    match value:
        case Number():
            return str(value)
        case Pairs():
            members = (f"{json.dumps(name)}:{_text(inner)}" for name, inner in value)
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            return json.dumps(value)
