"""A table's schema and processing as text, for tasks of a bulk import and plans of exports."""

from __future__ import annotations

import json

import msgspec

from lakebed.model.predicates.language import checked_predicate
from lakebed.model.processing import Processing, processing_from_json, processing_json
from lakebed.model.schema import Schema, schema_from_json, schema_json


class TableText(msgspec.Struct, frozen=True):
    """The definition of a table as text.

    columns: as JSON.
    processing: as JSON; None: there is none.
    """

    columns: str
    processing: str | None

    def schema(self) -> Schema:
        """Return the table's schema."""
        return schema_from_json(json.loads(self.columns))

    def row_processing(self) -> Processing | None:
        """Return what the table does with its rows. It was checked when the table was made."""
        if self.processing is None:
            return None
        found = processing_from_json(json.loads(self.processing))
        if found.filter is None:
            return found
        filter_ = checked_predicate(found.filter, self.schema())
        return msgspec.structs.replace(found, filter=filter_)


def table_text(schema: Schema, processing: Processing | None) -> TableText:
    """Return a schema and a checked processing as text."""
    done = None if processing is None else json.dumps(processing_json(processing, schema))
    return TableText(json.dumps(schema_json(schema)), done)
