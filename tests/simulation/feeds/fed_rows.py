"""Rows that a feed makes in the simulation: some records are bad, and some only now and then."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.model.feeds.replays import origin_of, replay_of
from lakebed.model.feeds.windows import WindowRules
from lakebed.model.names import ConnectionId
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.record_source import Records

FED_SCHEMA = schema_of(
    row_keys={"key": "int64"},
    values={"split": "string", "position": "int64", "id": "int64"},
)
QUARANTINE_SCHEMA = schema_of(
    row_keys={"connection": "string", "source_split": "string", "position": "int64"},
    values={"id": "int64"},
)


class TimeMishap(StrEnum):
    """What event time does in a world."""

    SEALED = "the watermark seals windows"
    LATE = "a row is late, and diverted"


BAD_EVERY = 7
FLAKY_CHANCE = 0.15
FILTERED_EVERY = 11
STILL_BAD_CHANCE = 0.4
"""Of a record that is replayed: definitions were mended meanwhile, for most."""


def is_filtered(position: int) -> bool:
    """Whether the connection leaves a record out."""
    return position % FILTERED_EVERY == 0


def is_sampled_out(position: int, keep: float) -> bool:
    """Whether a policy that keeps such a share leaves a record out."""
    return position * 7_919 % 100 >= keep * 100


class ModelRows:
    """Makes rows. What is bad is decided anew each time, for some records: a decoder that depends
    on memory, time or a dictionary."""

    def __init__(self, connection: ConnectionId, rng: random.Random, *, width: int) -> None:
        self._connection = connection
        self._rng = rng
        self._width = width

    @property
    def schema(self) -> Schema:
        """That of the table."""
        return FED_SCHEMA

    @property
    def windows(self) -> WindowRules | None:
        """Event time says nothing here."""
        return None

    def concat(self, batches: Sequence[list[Any]]) -> list[Any]:
        """Return several batches as one."""
        return [record for batch in batches for record in batch]

    def first(self, batch: list[Any], count: int) -> tuple[list[Any], int, int]:
        """Return the first records of a batch of more."""
        return batch[:count], batch[count][0], count

    def row(self, rows: list[Any], index: int) -> list[Any]:
        """Return one of some rows."""
        return rows[index : index + 1]

    def __call__(
        self,
        split: str,
        records: Records[list[Any]],
        known: KnownBefore[list[Any]],
    ) -> MadeRows[list[Any]]:
        """Return what became of some records."""
        origin = origin_of(split)
        there = {row[2] for batch in known.in_quarantine for row in batch}
        rows, bad, filtered, quarantined = [], [], 0, 0
        sampled_out = discarded = 0
        for index, (position, id_) in enumerate(records.batch):
            if position in there:
                quarantined += 1
            elif is_sampled_out(position, known.keep) and not is_filtered(position):
                sampled_out += 1
            elif records.count - index <= known.discard_last and not is_filtered(position):
                discarded += 1
            elif self._is_bad(split, position, id_):
                quarantined += 1
                bad.append((self._connection, split, position, id_))
            elif is_filtered(position):
                filtered += 1
            else:
                key = (position * 7919 + len(origin)) % self._width
                rows.append((key, origin, position, id_))
        return MadeRows(
            rows=rows or None,
            rows_count=len(rows),
            read=records.count,
            size=records.size,
            filtered=filtered,
            quarantined=quarantined,
            quarantine=bad or None,
            sampled_out=sampled_out,
            discarded=discarded,
        )

    def _is_bad(self, split: str, position: int, id_: int) -> bool:
        if replay_of(split) is not None:
            return self._rng.random() < STILL_BAD_CHANCE
        return position % BAD_EVERY == 0 or self._rng.random() < FLAKY_CHANCE
