"""Texts that the state holds, and what they say: the same object for the same text."""

from __future__ import annotations

import functools
import json

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.model.processing import Processing, checked_processing, processing_from_json
from lakebed.model.schema import Schema, schema_from_json

PROCESSING = "_processing"
"""Key beside the settings: what the table does with its rows."""
RENAMED_SETTINGS = {"scrap_rows_max": "shared_file_rows_max"}
"""Names of settings in entries of before, and what each is called today."""


@functools.lru_cache(maxsize=256)
def schema_of_text(text: str) -> Schema:
    """Return a table's schema."""
    return schema_from_json(json.loads(text))


@functools.lru_cache(maxsize=256)
def settings_of(text: str) -> TableSettings:
    """Return a table's settings. A value under an old name holds until one is set under the new
    name."""
    values = json.loads(text)
    values.pop(PROCESSING, None)
    for old, name in RENAMED_SETTINGS.items():
        if old in values:
            values.setdefault(name, values.pop(old))
    return msgspec.convert(values, TableSettings)


@functools.lru_cache(maxsize=256)
def processing_of(text: str, schema: Schema) -> Processing | None:
    """Return what a table does with its rows, as it stands beside the settings."""
    value = json.loads(text).get(PROCESSING)
    return None if value is None else checked_processing(processing_from_json(value), schema)
