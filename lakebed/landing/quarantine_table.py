"""A quarantine table: the records of which no row could be made, with the reason, as they came.

It is a table like any other; its keys say where a record is from, as those of landing tables do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import schema_from_json
from lakebed.sorted_files.format.arrow_schema import arrow_schema

QUARANTINE_SCHEMA = schema_from_json(
    {
        "row_keys": [
            {"name": "connection", "type": "string"},
            {"name": "source_split", "type": "string"},
            {"name": "position", "type": "int64"},
        ],
        "values": [
            {"name": "verdict", "type": "string"},
            {"name": "detail", "type": "string", "nullable": True},
            {"name": "version", "type": "int64"},
            {"name": "value", "type": "binary", "nullable": True},
            {"name": "key", "type": "binary", "nullable": True},
            {"name": "headers", "type": {"map": ["string", "binary"]}, "nullable": True},
            {"name": "time", "type": "timestamp[us, UTC]", "nullable": True},
        ],
    }
)
"""verdict: a code of `Verdict`. detail: what was wrong, without values. version: of the definition
of the connection. The others are the record."""

_COLUMNS = arrow_schema(QUARANTINE_SCHEMA)
_CODES = pa.array([verdict.code for verdict in Verdict])


def quarantined_rows(
    records: pa.RecordBatch,
    verdicts: npt.NDArray[np.uint8],
    details: Mapping[int, str],
    *,
    connection: str,
    source_split: str,
    version: int,
) -> pa.RecordBatch:
    """Return a row for each of some records (`RAW_RECORDS`), none of which could be a row.

    verdicts, details: of each, by its index.
    """
    count = records.num_rows
    said: Sequence[str | None] = [details.get(index) for index in range(count)]
    made = {
        "connection": pa.repeat(pa.scalar(connection, pa.string()), count),
        "source_split": pa.repeat(pa.scalar(source_split, pa.string()), count),
        "verdict": _CODES.take(pa.array(verdicts)),
        "detail": pa.array(said, pa.string()),
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
    }
    columns = [
        made[field.name] if field.name in made else records[field.name].cast(field.type)
        for field in _COLUMNS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_COLUMNS)
