"""Counters of usage that are shown as one sum."""

from __future__ import annotations

from typing import Final

REQUESTS: Final = (
    "s3_get",
    "s3_put",
    "s3_list",
    "s3_delete",
    "dynamodb_requests",
    "sqs_requests",
    "sqs_polls",
    "local_get",
    "local_put",
    "local_list",
    "local_delete",
    "local_reads",
    "local_writes",
)
WRITTEN: Final = ("s3_put_bytes", "local_put_bytes")
READ: Final = ("s3_get_bytes", "local_get_bytes")
