"""A program that offers a table columns which end a process that trusts them. It writes a JSON line
for each: what was refused, and the rows that are there in the end."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import lakebed
from lakebed.errors import InvalidError

LIST: object = {"list": "int64"}
NESTED: object = {"list": {"struct": [{"name": "m", "type": {"list": "string"}}]}}
NESTED_ROWS = [[{"m": ["x"]}, None], None, [{"m": None}]]
VALUES, TEXTS = pa.array([1, 2, 3]), pa.array(["a", "b", "c"])
ENDS, LARGE_ENDS = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int64)
VIEWS = np.array([20, 0, 0, 0] * 3, np.int32)
"""Three times: length, first letters, number of a buffer, offset in it."""


def broken(make: Callable[[pa.Buffer], pa.Array], numbers: npt.NDArray[np.integer]) -> pa.Array:
    """Return an array that was whole when it was made, and whose second value leads outside."""
    memory = numbers.copy()
    array = make(pa.py_buffer(memory))
    memory[memory.size // 2] = 10**9
    return array


def of(type_: pa.DataType, *buffers: pa.Buffer | None, child: pa.Array | None = None) -> pa.Array:
    children = None if child is None else [child]
    return pa.Array.from_buffers(type_, 3, [None, *buffers], children=children)


def ends(buffer: pa.Buffer, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), count, [None, buffer])


BROKEN: dict[str, tuple[object, Callable[[], pa.Array]]] = {
    "list": (LIST, lambda: broken(lambda b: of(pa.list_(pa.int64()), b, child=VALUES), ENDS)),
    "large list": (
        LIST,
        lambda: broken(lambda b: of(pa.large_list(pa.int64()), b, child=VALUES), LARGE_ENDS),
    ),
    "large list view": (
        LIST,
        lambda: broken(
            lambda b: of(
                pa.large_list_view(pa.int64()),
                b,
                pa.py_buffer(np.ones(3, np.int64)),
                child=VALUES,
            ),
            LARGE_ENDS[:3],
        ),
    ),
    "map": (
        {"map": ["string", "int64"]},
        lambda: broken(lambda b: pa.MapArray.from_arrays(ends(b, 4), TEXTS, VALUES), ENDS),
    ),
    "text": ("string", lambda: broken(lambda b: of(pa.string(), b, pa.py_buffer(b"abc")), ENDS)),
    "large text": (
        "string",
        lambda: broken(lambda b: of(pa.large_string(), b, pa.py_buffer(b"abc")), LARGE_ENDS),
    ),
    "text view": (
        "string",
        lambda: broken(lambda b: of(pa.string_view(), b, pa.py_buffer(bytes(40))), VIEWS),
    ),
    "binary view": (
        "binary",
        lambda: broken(lambda b: of(pa.binary_view(), b, pa.py_buffer(bytes(40))), VIEWS),
    ),
    "dictionary": (
        "string",
        lambda: broken(lambda b: pa.DictionaryArray.from_arrays(ends(b, 3), TEXTS), ENDS[:3]),
    ),
    "text that is not UTF-8": (
        "string",
        lambda: pa.array([b"\xff"] * 3).view(pa.string()),
    ),
}


def nested(depth: int) -> pa.Array:
    type_ = pa.int64()
    for _ in range(depth):
        type_ = pa.list_(type_)
    return pa.nulls(3, type_)


OTHER: dict[str, tuple[object, Callable[[], pa.Array]]] = {
    "run ends": (
        LIST,
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([[1]])),
    ),
    "dictionary of lists": (
        LIST,
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 0, 0]), pa.array([[1]])),
    ),
    "nested 70 deep": (LIST, lambda: nested(70)),
    "nested 500 deep": (LIST, lambda: nested(500)),
}
WHOLE: dict[str, tuple[object, Callable[[], pa.Array]]] = {
    "whole list view": (LIST, lambda: pa.array([[1, 2], None, []], pa.list_view(pa.int64()))),
    "whole large list view": (
        LIST,
        lambda: pa.array([[1, 2], None, []], pa.large_list_view(pa.int64())),
    ),
    "fixed size list": (LIST, lambda: pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))),
    "list of dictionaries": (
        {"list": "string"},
        lambda: pa.array(
            [["a"], ["b", "a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))
        ),
    ),
    "whole text view": ("string", lambda: pa.array(["a", None, "b" * 40], pa.string_view())),
    "whole binary view": ("binary", lambda: pa.array([b"a", None, b"b" * 40], pa.binary_view())),
    "views of structs of views": (
        NESTED,
        lambda: pa.array(
            NESTED_ROWS,
            pa.large_list_view(pa.struct({"m": pa.list_view(pa.string_view())})),
        ),
    ),
}


def offered(lake: lakebed.Lake, table: str, type_: object, column: pa.Array) -> dict[str, object]:
    fields = {
        "row_keys": [{"name": "k", "type": "int32"}],
        "values": [{"name": "v", "type": type_, "nullable": True}],
    }
    made = lake.create_table(table, lakebed.schema_from_json(fields))
    rows = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "v": column})
    slices = rows.slice(1, 1).to_batches()
    refused = []
    for given in (rows, rows.slice(1), pa.RecordBatchReader.from_batches(rows.schema, slices)):
        try:
            made.ingest(given)
        except InvalidError as error:
            refused.append(str(error))
    made.compact()
    there = [str(value) for value in made.query().read_all().column("v").to_pylist()]
    return {"refused": refused, "rows": there}


if __name__ == "__main__":
    with lakebed.connect(Path(sys.argv[1])) as opened:
        for place, (name, (kind, make)) in enumerate((BROKEN | OTHER | WHOLE).items()):
            sys.stderr.write(f"{name}\n")  # the last one, when it crashes
            told = offered(opened, f"t{place}", kind, make())
            sys.stdout.write(json.dumps({"name": name} | told) + "\n")
