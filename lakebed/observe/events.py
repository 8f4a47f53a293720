"""Events: one line per unit of work, at its end. Counts, ids and sizes; never rows, keys or
payloads."""

from __future__ import annotations

import logging

INGEST_COMMITTED = "ingest_committed"
COMPACTION_JOBS_CREATED = "compaction_jobs_created"
COMPACTION_COMMITTED = "compaction_committed"
COMPACTION_LOST = "compaction_lost"
COMPACTION_GIVEN_UP = "compaction_given_up"
PARTITIONS_SPLIT = "partitions_split"
GARBAGE_COLLECTED = "garbage_collected"
OBJECTS_SWEPT = "objects_swept"
SNAPSHOT_WRITTEN = "snapshot_written"
TABLE_CREATED = "table_created"
TABLE_DROPPED = "table_dropped"
JOB_FAILED = "job_failed"

_LOGGER = logging.getLogger("lakebed")


def tell(event: str, **facts: object) -> None:
    """Write one line: the event, then its facts as `name=value`, also as fields for JSON logs."""
    if _LOGGER.isEnabledFor(logging.INFO):
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        _LOGGER.info("%s %s", event, text, extra={"event": event, "facts": facts})
