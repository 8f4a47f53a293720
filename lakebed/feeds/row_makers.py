"""How records become rows: as they came, for a landing table, or decoded, for a table of its own.

The only module of this room that looks inside a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Decoded, Decoder
from lakebed.feed_errors import RecordRefusedError
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.landing.landing_table import LANDING_SCHEMA, landed_rows
from lakebed.landing.quarantine_table import quarantined_rows
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.predicates.language import Predicate
from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records
from lakebed.processing.predicate_masks import kept

Mask = npt.NDArray[np.bool_]


class LandRecords:
    """Makes rows of a landing table: each record becomes one."""

    @property
    def schema(self) -> Schema:
        """That of landing tables."""
        return LANDING_SCHEMA

    def __call__(
        self,
        split: str,
        records: Records[pa.RecordBatch],
        known: KnownBefore[pa.RecordBatch],
    ) -> MadeRows[pa.RecordBatch]:
        """Return a row for each record."""
        batch, there = records.batch, _in_table(records.count, known)
        if there.any():
            batch = batch.filter(pa.array(~there))
        rows = landed_rows(split, batch)
        return MadeRows(
            rows=rows if rows.num_rows else None,
            rows_count=rows.num_rows,
            read=records.count,
            size=records.size,
            deduplicated=int(there.sum()),
        )


class RecordRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of records.

    on_error: of a record that is no row: `quarantine` keeps it, `skip` only counts it, `fail` stops
        the connection.
    errors_in_row_max: the next record in a row that is no row stops the connection, too.
    where: which rows are kept; None: all.
    """

    on_error: Literal["quarantine", "skip", "fail"] = "quarantine"
    errors_in_row_max: int = 100
    where: Predicate | None = None


class DecodeRecords:
    """Makes rows by a decoder. What is no row is quarantined, skipped, or stops the connection.

    schema: of the table, which the decoder was made for.
    """

    def __init__(
        self,
        connection: FeedConnection,
        schema: Schema,
        decoder: Decoder,
        rules: RecordRules,
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._decoder = decoder
        self._rules = rules

    @property
    def schema(self) -> Schema:
        """That of the table."""
        return self._schema

    def __call__(
        self,
        split: str,
        records: Records[pa.RecordBatch],
        known: KnownBefore[pa.RecordBatch],
    ) -> MadeRows[pa.RecordBatch]:
        """Return the rows of records, those of the quarantine that are not there yet, and counts.

        Raises:
            UnavailableError: there is not enough memory, or a registry of schemas does not answer.
        """
        decoded = self._decoder.decode(records.batch, source_split=split)
        there = _in_table(records.count, known)
        held = _held(records.batch, known.in_quarantine) & ~there
        ignored = (decoded.verdicts == Verdict.IGNORED) & ~held & ~there
        bad = ((decoded.verdicts != Verdict.ROW) & ~ignored & ~there) | held
        in_row = _errors_in_row(bad, known.errors_in_row)
        limit = 0 if self._rules.on_error == "fail" else self._rules.errors_in_row_max
        refused = np.flatnonzero(in_row > limit)
        count = int(refused[0]) if len(refused) else records.count
        is_taken = np.arange(records.count) < count
        rows, filtered = self._rows(decoded, is_taken & ~held & ~there)
        fresh = bad & ~held & is_taken
        keeps = self._rules.on_error == "quarantine" and bool(fresh.any())
        made = MadeRows(
            rows=rows if rows.num_rows else None,
            rows_count=rows.num_rows,
            read=count,
            size=records.size if count == records.count else records.batch[:count].nbytes,
            filtered=filtered + int((ignored & is_taken).sum()),
            deduplicated=int((there & is_taken).sum()),
            quarantined=int((bad & is_taken).sum()),
            quarantine=self._quarantined(split, records.batch, decoded, fresh) if keeps else None,
            errors_in_row=int(in_row[count - 1]) if count else known.errors_in_row,
        )
        if count == records.count:
            return made
        refusal = _refusal(split, records.batch, decoded, count)
        position = int(records.batch["position"].to_numpy()[count])
        return msgspec.structs.replace(made, refusal=refusal, refused_at=position)

    def _rows(self, decoded: Decoded, may_be_rows: Mask) -> tuple[pa.RecordBatch, int]:
        """Return the rows that the connection keeps, and how many it filters out."""
        rows = decoded.rows
        if not may_be_rows.all():
            rows = rows.filter(pa.array(may_be_rows[decoded.record.to_numpy()]))
        before = rows.num_rows
        if self._rules.where is not None:
            rows = kept(rows, self._rules.where)
        return rows, before - rows.num_rows

    def _quarantined(
        self, split: str, batch: pa.RecordBatch, decoded: Decoded, bad: Mask
    ) -> pa.RecordBatch:
        indices = np.flatnonzero(bad)
        details = {
            index: decoded.details[record]
            for index, record in enumerate(indices.tolist())  # bounded: bad ones
            if record in decoded.details
        }
        return quarantined_rows(
            batch.take(pa.array(indices)),
            decoded.verdicts[indices],
            details,
            connection=self._connection.id,
            source_split=split,
            version=self._connection.version,
        )


def _in_table(count: int, known: KnownBefore[pa.RecordBatch]) -> Mask:
    """Return which records are in the table already."""
    there = np.zeros(count, np.bool_)
    for first, end in known.in_table:
        there[first:end] = True
    return there


def _held(batch: pa.RecordBatch, in_quarantine: Sequence[pa.RecordBatch]) -> Mask:
    """Return which records are in the quarantine."""
    positions = batch["position"].to_numpy()
    if not in_quarantine:
        return np.zeros(len(positions), np.bool_)
    there = np.concatenate([rows["position"].to_numpy() for rows in in_quarantine])
    return np.isin(positions, there)


def _errors_in_row(bad: Mask, before: int) -> npt.NDArray[np.int64]:
    """Return of each record how many bad ones in a row end with it. before: of those before."""
    indices = np.arange(len(bad))
    last_good = np.maximum.accumulate(np.where(bad, -1, indices))
    return np.where(bad, indices - last_good + np.where(last_good < 0, before, 0), 0)


def _refusal(
    split: str, batch: pa.RecordBatch, decoded: Decoded, record: int
) -> RecordRefusedError:
    verdict = Verdict(int(decoded.verdicts[record]))
    return RecordRefusedError(
        "a record is no row",
        source_split=split,
        position=int(batch["position"].to_numpy()[record]),
        verdict=verdict.code,
        detail=decoded.details.get(record, ""),
    )
