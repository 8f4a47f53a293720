"""Lakebed: tables of rows sorted by key, kept in object storage by jobs instead of servers.

import lakebed

lake = lakebed.connect("./lake")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebed.model.predicates.language import field, predicate_from_json
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.processing import (
    AgeOff,
    IteratorUse,
    Latest,
    Processing,
    processing_from_json,
    processing_json,
)
from lakebed.model.ranges import Range
from lakebed.model.schema import Schema, schema_from_json, schema_json, schema_of

if TYPE_CHECKING:
    from lakebed import aio
    from lakebed.bootstrap.feeds.receivers import FeedReceiver
    from lakebed.feed import FeedDefinitions, Feeds
    from lakebed.ingest.split_points import split_points_from
    from lakebed.lake import Lake, connect
    from lakebed.sorted_files.format.arrow_schema import schema_from_arrow
    from lakebed.table import Table

__all__ = [
    "AgeOff",
    "FeedDefinitions",
    "FeedReceiver",
    "Feeds",
    "IteratorUse",
    "Lake",
    "Latest",
    "Processing",
    "Range",
    "Schema",
    "Table",
    "aio",
    "connect",
    "field",
    "predicate_from_json",
    "predicate_from_text",
    "processing_from_json",
    "processing_json",
    "schema_from_arrow",
    "schema_from_json",
    "schema_json",
    "schema_of",
    "split_points_from",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds
    """Import what needs pyarrow when it is first asked for: much of Lakebed runs without."""
    import importlib

    if name == "aio":
        return importlib.import_module("lakebed.aio")
    if name in ("Lake", "connect"):
        return getattr(importlib.import_module("lakebed.lake"), name)
    if name == "FeedReceiver":
        return importlib.import_module("lakebed.bootstrap.feeds.receivers").FeedReceiver
    if name in ("Feeds", "FeedDefinitions"):
        return getattr(importlib.import_module("lakebed.feed"), name)
    if name == "Table":
        return importlib.import_module("lakebed.table").Table
    if name == "schema_from_arrow":
        return importlib.import_module("lakebed.sorted_files.format.arrow_schema").schema_from_arrow
    if name == "split_points_from":
        return importlib.import_module("lakebed.ingest.split_points").split_points_from
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
