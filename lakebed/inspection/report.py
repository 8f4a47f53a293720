"""A report: figures of a lake in rows and columns, for people, programs and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import pyarrow as pa

Value = str | int | float | bool | None
Kind = Literal["text", "count", "real", "flag", "time"]
ARROW_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "count": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "time": pa.timestamp("us", "UTC"),
}
"""Times are microseconds since 1970."""


class ReportColumn(NamedTuple):
    """A column of a report.

    heading: of the column for people; "": they are not shown it.
    """

    name: str
    kind: Kind
    heading: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a lake at one time.

    rows: a value for each column.
    failed: what could not be told, and why; the rest is there all the same.
    """

    name: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[tuple[Value, ...]]
    failed: tuple[str, ...] = ()

    def values(self) -> list[dict[str, Value]]:
        """Return the rows as objects."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def table(self) -> pa.Table:
        """Return the rows as a table of Arrow."""
        return pa.table(
            {
                column.name: pa.array([row[n] for row in self.rows], ARROW_TYPES[column.kind])
                for n, column in enumerate(self.columns)
            }
        )
