"""What a user's new table must be, beyond what its log allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.config.settings import check_compaction, table_settings
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.processing.iterators import load_iterator
from lakebed.sorted_files.format.arrow_schema import arrow_schema


def check_new_table(
    schema: Schema, settings: Mapping[str, Any], processing: Processing | None
) -> None:
    """Refuse a table that would not work as it is meant.

    Raises:
        InvalidError: its iterator is not installed; its settings are not allowed, or compaction
            would merge nothing with them.
    """
    if processing is not None and processing.iterator is not None:
        load_iterator(processing.iterator, arrow_schema(schema))
    check_compaction(settings, table_settings(settings))
