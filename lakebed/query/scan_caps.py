"""Caps of what one query reads: refused before it reads where its plan says how much that is, else
stopped on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from lakebed.errors import InvalidError, QueryTooLargeError
from lakebed.model.files import FilePart
from lakebed.model.keys import key_value_text, prefix_values
from lakebed.model.ranges import KeyRange, span_of, union
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection

NUMBER_MAX = 1 << 53
READ_BYTES = 8 << 20
"""Of one request for a part of a file that is read whole."""

RequestPrice = Callable[[], float]
"""Gives the dollars of one request that reads, where the store of files takes money for them."""


class WholeFiles(msgspec.Struct, frozen=True):
    """What files cost that a query reads to their ends.

    below: the key from which on that is more than it may read.
    """

    files: int
    size: int
    requests: int
    below: bytes

    def facts(self, price: RequestPrice | None) -> dict[str, str | int]:
        """Return it in words: what is read, and what that costs."""
        found: dict[str, str | int] = {"files": self.files, "bytes": self.size}
        if price is not None:
            found |= {"requests": self.requests, "dollars": f"{self.requests * price():.2g}"}
        return found


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
    price: RequestPrice | None = None,
) -> None:
    """Refuse a query of all columns that would read whole files of more bytes than it may. price:
    None where requests cost nothing.

    Files of which it wants some keys are not counted here, nor is any where it wants some columns:
    how much of them is read, only reading tells.

    Raises:
        QueryTooLargeError: with how much it would read and what that costs, which part of the keys
            fits, and keys below which it would.
    """
    if not bytes_max or (condition is not None and condition.columns is not None):
        return
    found = _whole_files(schema, leaves, condition, bytes_max)
    if found.size <= bytes_max:
        return
    share = -(-found.size // bytes_max)
    hint = f"ask for keys or a range of row keys, of about 1/{share} of them"
    raise QueryTooLargeError(
        "a query would read more bytes than it may",
        table=table,
        scan_bytes_max=bytes_max,
        hint=f"{hint}{_example(schema, found.below)}, for some columns, or raise scan_bytes_max",
        **found.facts(price),
    )


def _whole_files(
    schema: Schema,
    leaves: Sequence[Sequence[FilePart]],
    condition: Selection | None,
    bytes_max: int,
) -> WholeFiles:
    """Return what it takes to read the files of leaves of which every key is wanted."""
    files = size = requests = 0
    below = b""
    for least, sizes in _sizes(schema, leaves, condition):
        if size <= bytes_max < size + sum(sizes):
            below = least
        files, size = files + len(sizes), size + sum(sizes)
        requests += sum(1 + -(-one // READ_BYTES) for one in sizes)  # the tail, too
    return WholeFiles(files, size, requests, below)


def _sizes(
    schema: Schema, leaves: Sequence[Sequence[FilePart]], condition: Selection | None
) -> Iterator[tuple[bytes, list[int]]]:
    """Yield where leaves begin of which every key is wanted, and the bytes of each file that they
    add to those of the leaves before."""
    spans = [KeyRange()]
    if condition is not None:
        spans = list(union([span_of(schema.row_keys, box)[0] for box in condition.reached]))
    seen: set[str] = set()
    for parts in leaves:
        fresh = (part for part in parts if part.path not in seen)
        whole = [p for p in fresh if any(s.meets(p.key_range) == p.key_range for s in spans)]
        seen.update(part.path for part in whole)
        yield parts[0].key_range.min, [part.file.size for part in whole]


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
