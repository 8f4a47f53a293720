"""Caps what one query reads: refuses it before it reads where its plan says how much that is, else
stops it on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from lakebed.errors import InvalidError, QueryTooLargeError
from lakebed.model.files import FilePart
from lakebed.model.keys import key_value_text, prefix_values
from lakebed.model.ranges import KeyRange, span_of, union
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection

NUMBER_MAX = 1 << 53
READ_BYTES = 8 << 20
"""Bytes of one request for a part of a file that is read whole."""

RequestPrice = Callable[[], float]
"""Gives the dollars of one request that reads, where the store of files takes money for them."""


ShareOf = Callable[[Sequence[FilePart]], float]
"""Gives which share of the bytes of files a query of some columns reads, about."""


class Planned(Protocol):
    """The plan of a query before it reads. It says which files the query reaches, leaf by leaf, and
    how many bytes it may read; 0: any number."""

    @property
    def schema(self) -> Schema: ...
    @property
    def leaves(self) -> Sequence[Sequence[FilePart]]: ...
    @property
    def condition(self) -> Selection | None: ...
    @property
    def scan_bytes_max(self) -> int: ...


class WholeFiles(msgspec.Struct, frozen=True):
    """The cost of files that a query reads to their ends.

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
    table: str, plan: Planned, *, share_of: ShareOf, price: RequestPrice | None = None
) -> None:
    """Refuse a query that would read more bytes of whole files than it may. price: None where
    requests cost nothing.

    Of a query of some columns it is an estimate, which takes the share of these columns to be alike
    in all files. Files of which it wants some keys are not counted here: how much of them is read,
    only reading tells.

    Raises:
        QueryTooLargeError: with how much it would read and what that costs, which part of the keys
            fits, and keys below which it would.
    """
    bytes_max = plan.scan_bytes_max
    if not bytes_max:
        return
    whole = list(_whole_files(plan))
    share = 1.0
    is_part = plan.condition is not None and plan.condition.columns is not None
    if is_part and _read(whole, share, bytes_max).size > bytes_max:
        share = share_of([part for _, parts in whole for part in parts])
    found = _read(whole, share, bytes_max)
    if found.size <= bytes_max:
        return
    estimate = {"estimate": "by the share of its columns"} if is_part else {}
    fewer = "fewer" if is_part else "some"
    hint = f"{_narrower(found.size, bytes_max)}{_example(plan.schema, found.below)}"
    raise QueryTooLargeError(
        "a query would read more bytes than it may",
        table=table,
        scan_bytes_max=bytes_max,
        hint=f"{hint}, for {fewer} columns, or raise scan_bytes_max",
        **found.facts(price),
        **estimate,
    )


def stopped_scan(error: QueryTooLargeError, table: str, plan: Planned) -> QueryTooLargeError:
    """Return the error of a query that was stopped while it read, with how much it would read at
    the most: all files that it reaches, whole."""
    files = {part.path: part.file.size for parts in plan.leaves for part in parts}
    size = sum(files.values())
    hint = f"{_narrower(size, plan.scan_bytes_max)}, for fewer columns, or raise scan_bytes_max"
    facts = {"table": table, **error.facts, "files": len(files), "bytes_at_most": size}
    return QueryTooLargeError(error.message, hint=hint, **facts)


def _narrower(size: int, bytes_max: int) -> str:
    share = -(-size // max(1, bytes_max))
    return f"ask for keys or a range of row keys, of about 1/{share} of them"


def _read(
    whole: Sequence[tuple[bytes, list[FilePart]]], share: float, bytes_max: int
) -> WholeFiles:
    """Return what it takes to read a share of whole files. whole: where leaves begin, with files
    that they add."""
    files = size = requests = 0
    below = b""
    for least, parts in whole:
        sizes = [math.ceil(part.file.size * share) for part in parts]
        if size <= bytes_max < size + sum(sizes):
            below = least
        files, size = files + len(sizes), size + sum(sizes)
        requests += sum(1 + -(-one // READ_BYTES) for one in sizes)  # the tail, too
    return WholeFiles(files, size, requests, below)


def _whole_files(plan: Planned) -> Iterator[tuple[bytes, list[FilePart]]]:
    """Yield where leaves begin, and the files of which every key is wanted that they add to those
    of the leaves before."""
    schema, condition = plan.schema, plan.condition
    spans = [KeyRange()]
    if condition is not None:
        spans = list(union([span_of(schema.row_keys, box)[0] for box in condition.reached]))
    seen: set[str] = set()
    for parts in plan.leaves:
        fresh = (part for part in parts if part.path not in seen)
        whole = [p for p in fresh if any(s.meets(p.key_range) == p.key_range for s in spans)]
        seen.update(part.path for part in whole)
        yield parts[0].key_range.min, whole


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
