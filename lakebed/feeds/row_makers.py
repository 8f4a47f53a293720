"""How records become rows: as they came, for a landing table, or decoded, for a table of its own.

The only module of this room that looks inside a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Decoded, Decoder
from lakebed.feed_errors import RecordRefusedError
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.made_rows import MadeRows
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
        in_quarantine: Sequence[pa.RecordBatch],
    ) -> MadeRows[pa.RecordBatch]:
        """Return a row for each record."""
        rows = landed_rows(split, records.batch)
        return MadeRows(rows=rows, rows_count=rows.num_rows)


class RecordRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of records.

    on_error: of a record that is no row: `quarantine` keeps it, `skip` only counts it, `fail` stops
        the connection.
    where: which rows are kept; None: all.
    """

    on_error: str = "quarantine"
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
        in_quarantine: Sequence[pa.RecordBatch],
    ) -> MadeRows[pa.RecordBatch]:
        """Return the rows of records, those of the quarantine that are not there yet, and counts.

        Raises:
            RecordRefusedError: a record is no row, and the policy says `fail`.
            UnavailableError: there is not enough memory, or a registry of schemas does not answer.
        """
        batch = records.batch
        decoded = self._decoder.decode(batch, source_split=split)
        held = _held(batch, in_quarantine)
        ignored = (decoded.verdicts == Verdict.IGNORED) & ~held
        bad = (decoded.verdicts != Verdict.ROW) & ~ignored & ~held
        if self._rules.on_error == "fail" and bad.any():
            raise _refused(split, batch, decoded, int(np.flatnonzero(bad)[0]))
        rows, filtered = self._rows(decoded, held)
        keeps = self._rules.on_error == "quarantine" and bool(bad.any())
        return MadeRows(
            rows=rows if rows.num_rows else None,
            rows_count=rows.num_rows,
            filtered=filtered + int(ignored.sum()),
            quarantined=int(bad.sum() + held.sum()),
            quarantine=self._quarantined(split, batch, decoded, bad) if keeps else None,
        )

    def _rows(self, decoded: Decoded, held: Mask) -> tuple[pa.RecordBatch, int]:
        """Return the rows that the connection keeps, and how many it filters out."""
        rows = decoded.rows
        if held.any():  # what lies in the quarantine is no row, whatever it looks like now
            rows = rows.filter(pa.array(~held[decoded.record.to_numpy()]))
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


def _held(batch: pa.RecordBatch, in_quarantine: Sequence[pa.RecordBatch]) -> Mask:
    """Return which records are in the quarantine."""
    positions = batch["position"].to_numpy()
    if not in_quarantine:
        return np.zeros(len(positions), np.bool_)
    there = np.concatenate([rows["position"].to_numpy() for rows in in_quarantine])
    return np.isin(positions, there)


def _refused(
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
