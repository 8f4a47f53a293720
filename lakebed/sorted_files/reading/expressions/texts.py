"""Nodes of expressions of Arrow as text for people."""

from __future__ import annotations

import pyarrow as pa

from lakebed.sorted_files.reading.expressions.trees import Call, FieldRef, LiteralValue, Node

VALUES_SHOWN_MAX = 5
_INFIX = {
    "and_kleene": "and",
    "or_kleene": "or",
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def text_of(node: Node) -> str:
    """Return what a node says, much as SQL would; what is not understood is "..."."""
    match node:
        case FieldRef(name):
            return name
        case LiteralValue(array):
            return _value(array[0])
        case Call(function, (one, other)) if function in _INFIX:
            return f"({text_of(one)} {_INFIX[function]} {text_of(other)})"
        case Call("cast", (inner,)):
            return text_of(inner)
        case Call("invert", (inner,)):
            return f"not {text_of(inner)}"
        case Call("is_in", (column,), {"value_set": values}):
            return f"{text_of(column)} in ({_listed(values.flatten())})"
        case Call("if_else", (Call("is_valid"), then, LiteralValue(array))) if _is_null(array):
            return text_of(then)  # an engine's way to say what is null of null
        case Call(function, arguments):
            return f"{function}({', '.join(map(text_of, arguments))})"
        case _:
            return "..."


def _is_null(array: pa.Array) -> bool:
    return bool(array.null_count)


def _listed(values: pa.Array) -> str:
    shown = [_value(value) for value in values[:VALUES_SHOWN_MAX]]
    return ", ".join(shown + ["..."] * (len(values) > VALUES_SHOWN_MAX))


def _value(value: pa.Scalar) -> str:
    found = value.as_py()  # bounded: one value
    if found is None:
        return "null"
    return repr(found) if isinstance(found, (bytes, str)) else str(found)
