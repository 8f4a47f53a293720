"""Rows of any reader in one form that can be compared."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain(table: pa.Table) -> list[str]:
    """Return the rows in their order, each as text: readers name types differently, not values."""
    columns = {
        name: [_plain(v) for v in _values(table.column(name))] for name in table.column_names
    }
    names = sorted(columns)
    return [repr([(n, columns[n][row]) for n in names]) for row in range(table.num_rows)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        zone = "UTC" if column.type.tz else None
        column = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any type
    match value:
        case dict():
            if set(value) == {"key", "value"}:  # an entry of a map, in readers without maps
                return (_plain(value["key"]), _plain(value["value"]))
            return sorted((name, _plain(one)) for name, one in value.items())
        case list() | tuple():
            return [_plain(one) if not isinstance(one, tuple) else _entry(one) for one in value]
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case Decimal():
            return str(value.normalize())
        case float() if value == 0:
            return f"{value:+}"
        case _:
            return value


def _entry(entry: tuple[Any, Any]) -> tuple[Any, Any]:
    return (_plain(entry[0]), _plain(entry[1]))
