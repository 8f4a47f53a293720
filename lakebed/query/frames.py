"""Rows of a query as tables of other libraries, where these are installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import InvalidError

if TYPE_CHECKING:
    import duckdb
    import polars


def as_pandas(rows: pa.RecordBatchReader) -> Any:  # noqa: ANN401 - its DataFrame: it ships no types
    """Return all rows as a DataFrame of pandas. Raises: InvalidError where it is missing."""
    try:
        importlib.import_module("pandas")
    except ImportError:
        raise _missing("pandas") from None
    return rows.read_pandas()


def as_polars(rows: pa.RecordBatchReader) -> polars.DataFrame:
    """Return all rows as a DataFrame of Polars. Raises: InvalidError where it is missing."""
    try:
        import polars  # noqa: PLC0415  of no use to others
    except ImportError:
        raise _missing("polars") from None
    return polars.DataFrame(rows.read_all())


class RepeatedQuery:
    """A query that is asked each time when its rows are read, as Arrow's stream."""

    def __init__(self, ask: Callable[[], pa.RecordBatchReader]) -> None:
        self._ask = ask

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._ask().__arrow_c_stream__(requested_schema)


def as_duckdb(
    ask: Callable[[], pa.RecordBatchReader], connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """Return a relation of DuckDB that asks the query whenever it is read. connection: None: a new
    one, in memory.

    Raises:
        InvalidError: DuckDB is missing; the query says what there is not.
    """
    try:
        import duckdb  # noqa: PLC0415  of no use to others
    except ImportError:
        raise _missing("duckdb", "'lakebed[sql]'") from None
    ask()  # so that what is wrong with it is said here, not inside of DuckDB
    return (connection or duckdb.connect()).from_arrow(RepeatedQuery(ask))


def _missing(library: str, package: str | None = None) -> InvalidError:
    hint = f"install it: pip install {package or library}; to_arrow() does without"
    return InvalidError(f"{library} is not installed", hint=hint)
