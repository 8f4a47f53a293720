"""Small answers of a source, made one: rows of many batches cost more than those of one.

A source split that trickles is read many times before a round is due, and each read gives a few
records. What a decoder does for each batch takes as long as a hundred records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lakebed.ports.record_source import Records

BatchT = TypeVar("BatchT")

JOINED_BYTES = 1 << 20
"""Bytes of records that are put together. They are in memory twice then, for as long as rows are
made of them."""


def small_together(records: Sequence[Records[BatchT]]) -> list[Sequence[Records[BatchT]]]:
    """Return records of a source split, in order: those that are to be one, and others alone."""
    found: list[list[Records[BatchT]]] = []
    size = 0
    for one in records:
        size += one.size
        if found and size <= JOINED_BYTES:
            found[-1].append(one)
        else:
            found.append([one])
            size = one.size
    return list(found)


def joined(
    records: Sequence[Records[BatchT]], concat: Callable[[Sequence[BatchT]], BatchT]
) -> Records[BatchT]:
    """Return records that follow one another as one answer. concat: puts batches together."""
    if len(records) == 1:
        return records[0]
    has_counts = any(one.item_counts for one in records)
    return Records(
        begin=records[0].begin,
        end=records[-1].end,
        count=sum(one.count for one in records),
        size=sum(one.size for one in records),
        batch=concat([one.batch for one in records]),
        resume=records[-1].resume,
        items=tuple(item for one in records for item in one.items),
        item_counts=tuple(
            count for one in records for count in one.item_counts or (1,) * len(one.items)
        )
        if has_counts
        else (),
    )
