"""Checks what a user's new table must be, beyond what its log allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.config.settings import check_batching, check_compaction, table_settings
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.tables.check_steps import check_iterator, check_strategy


def check_new_table(
    schema: Schema,
    settings: Mapping[str, Any],
    processing: Processing | None,
    steps: InstalledSteps,
) -> None:
    """Refuse a table that would not work as it is meant. steps: that will work on it.

    Raises:
        InvalidError: its iterator or its strategy is not among the steps; its settings are not
            allowed, or compaction would merge nothing with them.
    """
    check_iterator(processing, schema, steps)
    check_compaction(settings, table_settings(settings))
    check_batching(settings, table_settings(settings))
    check_strategy(settings, steps)
