"""A landing table: a feed's records as they came, by source split and position.

It is a table like any other: ranges of positions, replay, retention, compaction and `fsck` are
those of tables.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.model.schema import schema_from_json
from lakebed.sorted_files.format.arrow_schema import arrow_schema

LANDING_SCHEMA = schema_from_json(
    {
        "row_keys": [
            {"name": "source_split", "type": "string"},
            {"name": "position", "type": "int64"},
        ],
        "values": [
            {"name": "value", "type": "binary", "nullable": True},
            {"name": "key", "type": "binary", "nullable": True},
            {"name": "headers", "type": {"map": ["string", "binary"]}, "nullable": True},
            {"name": "time", "type": "timestamp[us, UTC]", "nullable": True},
        ],
    }
)
_COLUMNS = arrow_schema(LANDING_SCHEMA)


def landed_rows(source_split: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a source split's records (`RAW_RECORDS`): every byte as it came."""
    names = pa.repeat(pa.scalar(source_split, pa.string()), records.num_rows)
    columns = [
        names if field.name == "source_split" else records[field.name].cast(field.type)
        for field in _COLUMNS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_COLUMNS)
