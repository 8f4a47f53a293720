"""Reads the measures from which the costs of work follow: rates of one core, sizes, requests."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import msgspec

MEASURED = "measured.toml"
"""Made by `make docs` of the figures that `make bench` keeps."""


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measures of rows of the shape `sleeper`: a key and a value of ten letters, a time, one value
    more. The rates are rows a second of one core.

    row_bytes: of a row in a file.
    lookup_requests: reads of S3 for one key.
    lookup_seconds: of a warm function.
    """

    row_bytes: float
    ingest_rows_per_core_second: float
    merge_rows_per_core_second: float
    bulk_import_rows_per_core_second: float
    lookup_requests: float
    lookup_seconds: float


def packaged_measures() -> Measured:
    """Return what comes with Lakebed."""
    text = files("lakebed.costs").joinpath(MEASURED).read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Measured)
