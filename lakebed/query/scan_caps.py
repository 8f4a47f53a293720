"""Caps of what one query reads: refused before it reads where its plan says how much that is, else
stopped on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakebed.errors import InvalidError, QueryTooLargeError
from lakebed.model.files import FilePart
from lakebed.model.keys import key_value_text, prefix_values
from lakebed.model.ranges import KeyRange, span_of, union
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection

NUMBER_MAX = 1 << 53


def scan_cap(of_table: int, asked: object) -> int:
    """Return how many bytes a query may read: the smaller of what its table allows and of what it
    asks itself; 0: any number.

    Raises:
        InvalidError: what it asks is no number of bytes.
    """
    if asked is None:
        return of_table
    if type(asked) is not int or not 0 <= asked <= NUMBER_MAX:
        hint = "give a number of bytes, or 0 for no cap but the table's"
        raise InvalidError("not a cap", scan_bytes_max=ascii(asked)[:80], hint=hint)
    caps = [cap for cap in (of_table, asked) if cap]
    return min(caps, default=0)


def check_scan(
    table: str,
    schema: Schema,
    leaves: Sequence[Sequence[FilePart]],
    condition: Selection | None,
    *,
    bytes_max: int,
) -> None:
    """Refuse a query of all columns that would read whole files of more bytes than it may.

    Files of which it wants some keys are not counted here, nor is any where it wants some columns:
    how much of them is read, only reading tells.

    Raises:
        QueryTooLargeError: with how much it would read, and keys below which it would not.
    """
    if not bytes_max or (condition is not None and condition.columns is not None):
        return
    total, below = 0, b""
    for least, size in _sizes(schema, leaves, condition):
        if total <= bytes_max < total + size:
            below = least
        total += size
    if total <= bytes_max:
        return
    hint = "ask for keys or a range of row keys" + _example(schema, below)
    raise QueryTooLargeError(
        "a query would read more bytes than it may",
        table=table,
        bytes=total,
        scan_bytes_max=bytes_max,
        hint=f"{hint}, for some columns, or raise scan_bytes_max",
    )


def _sizes(
    schema: Schema, leaves: Sequence[Sequence[FilePart]], condition: Selection | None
) -> Iterator[tuple[bytes, int]]:
    """Yield where leaves begin of which every key is wanted, and what their files add to those of
    the leaves before."""
    spans = [KeyRange()]
    if condition is not None:
        spans = list(union([span_of(schema.row_keys, box)[0] for box in condition.reached]))
    seen: set[str] = set()
    for parts in leaves:
        fresh = (part for part in parts if part.path not in seen)
        whole = [p for p in fresh if any(s.meets(p.key_range) == p.key_range for s in spans)]
        seen.update(part.path for part in whole)
        yield parts[0].key_range.min, sum(part.file.size for part in whole)


def _example(schema: Schema, below: bytes) -> str:
    try:
        values = prefix_values(schema.row_keys, below)
    except ValueError:
        values = ()
    if not values:
        return ""
    field = schema.row_keys[0]
    text = key_value_text(field, values[0])
    shown = text if str(field.type) in ("int32", "int64") else "'" + text.replace("'", "''") + "'"
    return f" (where {field.name} < {shown} it may)"
