"""The tree of an expression of Arrow, which Python cannot look into otherwise.

Arrow pickles an expression as an IPC file: the metadata of its schema lists the tree in order
(`call`, `field_ref`, `literal`, `options`, `end`), with keys that come several times, which a dict
would lose. So they are read through Arrow's C data interface. Arrow does not promise this form:
what cannot be read here is no tree, and its readers do without.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

NODES_MAX = 20_000
_NAME = b"arrow_schema"


class FieldRef(msgspec.Struct, frozen=True):
    """A column, by its name."""

    name: str


class LiteralValue(msgspec.Struct, frozen=True):
    """A literal: an array of one value."""

    array: Any


class Call(msgspec.Struct, frozen=True):
    """A function of others.

    options: arrays of one value, by name.
    """

    function: str
    arguments: tuple[Node, ...]
    options: dict[str, Any] = {}


class Unknown(msgspec.Struct, frozen=True):
    """An expression that is not understood, such as a member of a struct."""


Node = FieldRef | LiteralValue | Call | Unknown


def tree_of(expression: pc.Expression) -> Node:
    """Return the tree of an expression; Unknown where it cannot be read."""
    try:
        stored = expression.__reduce__()[1][0]
        with pa.ipc.open_file(stored) as file:
            batch = file.get_batch(0) if file.num_record_batches else None
            reader = _Reader(_listed_metadata(file.schema), batch)
        return reader.whole()
    except (pa.ArrowException, AttributeError, LookupError, TypeError, ValueError):
        return Unknown()


class _Reader:
    """items: kinds and texts of nodes. batch: one row, the literals and options by their index."""

    def __init__(self, items: Sequence[tuple[str, str]], batch: pa.RecordBatch) -> None:
        self._items = items
        self._batch = batch
        self._at = 0

    def whole(self) -> Node:
        """Return the tree. Raises: LookupError, ValueError for what is none."""
        top = _Open("")
        open_calls = [top]
        while self._at < len(self._items):
            kind, text = self._next()
            here = open_calls[-1]
            match kind:
                case "field_ref":
                    here.arguments.append(FieldRef(text))
                case "literal":
                    here.arguments.append(LiteralValue(self._batch.column(int(text))))
                case "nested_field_ref":
                    self._at += int(text)
                    here.arguments.append(Unknown())
                case "call":
                    open_calls.append(_Open(text))
                case "options":
                    column = self._batch.column(int(text))
                    here.options = {f.name: column.field(i) for i, f in enumerate(column.type)}
                case "end" if here.function == text != "":
                    open_calls.pop()
                    open_calls[-1].arguments.append(here.closed())
                case _:
                    raise ValueError(kind)
        if open_calls != [top] or len(top.arguments) != 1:
            raise ValueError("not one tree")
        return top.arguments[0]

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._items[self._at - 1]


class _Open:
    """A call whose end was not read yet."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.arguments: list[Node] = []
        self.options: dict[str, Any] = {}

    def closed(self) -> Call:
        return Call(self.function, tuple(self.arguments), self.options)


class _ArrowSchema(ctypes.Structure):
    """The beginning of `ArrowSchema` of Arrow's C data interface."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _listed_metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return all keys and values of a schema's metadata, in order."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = _ArrowSchema.from_address(pointer(capsule, _NAME)).metadata
    if not at:
        return []
    texts: list[str] = []
    count, at = _integer(at), at + 4
    if count > NODES_MAX:
        raise ValueError("an expression is too large")
    for _ in range(2 * count):
        size = _integer(at)
        texts.append(ctypes.string_at(at + 4, size).decode())
        at += 4 + size
    return list(zip(texts[::2], texts[1::2], strict=True))


def _integer(at: int) -> int:
    return ctypes.c_int32.from_address(at).value
