"""Rows of a query as tables of other libraries, where these are installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import InvalidError

if TYPE_CHECKING:
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


def _missing(library: str) -> InvalidError:
    hint = f"install it: pip install {library}; to_arrow() does without"
    return InvalidError(f"{library} is not installed", hint=hint)
