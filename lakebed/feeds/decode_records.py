"""Decoded records become rows of a table. What is no row is quarantined, skipped, or stops the
connection; what is late is stored, kept apart or dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Decoded, Decoder
from lakebed.feed_errors import RecordRefusedError
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.event_rows import JudgedTimes, judged_times
from lakebed.feeds.event_windows import newest_time, window_counts
from lakebed.feeds.land_records import first_records, records_in_table
from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.feeds.pacing.left_out import last_of, left_out
from lakebed.feeds.pacing.once_values import first_of_values
from lakebed.landing.quarantine_table import quarantined_rows
from lakebed.model.feeds.replays import origin_of
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.feeds.windows import WindowRules
from lakebed.model.predicates.language import Predicate
from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records
from lakebed.processing.predicate_masks import kept, mask_of

Mask = npt.NDArray[np.bool_]
_TIME = "\0time"
"""Name of a column beside those of the table, which have no such name."""


class RecordRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a policy for records.

    on_error: of a record that is no row: `quarantine` keeps it, `skip` only counts it, `fail` stops
        the connection.
    errors_in_row_max: the next record in a row that is no row stops the connection, too.
    refused: verdicts that stop the connection at once.
    left_out: verdicts of records that are left out and counted, and are no errors.
    where: which rows are kept; None: all.
    windows: how rows are counted by event time; None: they are not.
    drops_equal: whether records are left out that are equal to the one before.
    once_column: whose values are let in once; "": none is.
    """

    on_error: Literal["quarantine", "skip", "fail"] = "quarantine"
    errors_in_row_max: int = 100
    refused: frozenset[Verdict] = frozenset()
    left_out: frozenset[Verdict] = frozenset()
    where: Predicate | None = None
    windows: WindowRules | None = None
    drops_equal: bool = False
    once_column: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fates:
    """The fate of each record of a batch. Masks, by record.

    count: how many are taken; the next one, if there is one, is refused.
    in_table: known already.
    ignored: without a value, and the connection ignores such.
    left_out: of a verdict that the policy leaves out.
    bad: no row can be made of it, or it is in the quarantine.
    kept_apart: rows of the quarantine that are not there yet.
    may_be_row: all that is nothing of these.
    errors_in_row: at the end of those that are taken.
    """

    count: int
    in_table: Mask
    ignored: Mask
    left_out: Mask
    bad: Mask
    kept_apart: Mask
    may_be_row: Mask
    errors_in_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows that are stored, with their event times.

    filtered: how many the filter left out.
    known: how many had a value that is let in once, and was there.
    """

    rows: pa.RecordBatch
    times: pa.Array
    filtered: int
    known: int


class DecodeRecords:
    """Makes rows by a decoder.

    schema: of the table, which the decoder was made for.
    """

    def __init__(
        self, connection: FeedConnection, schema: Schema, decoder: Decoder, rules: RecordRules
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._decoder = decoder
        self._rules = rules

    @property
    def schema(self) -> Schema:
        """That of the table."""
        return self._schema

    @property
    def windows(self) -> WindowRules | None:
        """Those of the connection."""
        return self._rules.windows

    def concat(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the records of several batches as one."""
        return pa.concat_batches(batches)

    def first(self, batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, int, int]:
        """Return the first records of a batch of more, the position behind them, and their size."""
        return first_records(batch, count)

    def row(self, rows: pa.RecordBatch, index: int) -> pa.RecordBatch:
        """Return one of some rows."""
        return rows.slice(index, 1)

    def look(self, split: str, records: pa.RecordBatch) -> tuple[Decoded, Mask]:
        """Return what the decoder says of records, and which of its rows the filter keeps."""
        decoded = self._decoder.decode(records, source_split=split)
        if self._rules.where is None:
            return decoded, np.ones(decoded.rows.num_rows, np.bool_)
        mask = mask_of(decoded.rows, self._rules.where)
        return decoded, mask.to_numpy(zero_copy_only=False).astype(np.bool_)

    def __call__(
        self, split: str, records: Records[pa.RecordBatch], known: KnownBefore[pa.RecordBatch]
    ) -> MadeRows[pa.RecordBatch]:
        """Return the rows of records, those of the quarantine that are not there yet, and counts.

        Raises:
            UnavailableError: there is not enough memory, or a registry of schemas does not answer.
        """
        held = _held(records.batch, known.in_quarantine)
        drops_equal = self._rules.drops_equal
        left = left_out(split, records.batch, known, held, drops_equal=drops_equal)
        if left is None:
            return self._made(split, records, known)
        rest = records.batch.filter(pa.array(~left.any))
        made = MadeRows[pa.RecordBatch](
            rows=None, rows_count=0, read=0, size=0, errors_in_row=known.errors_in_row
        )
        if rest.num_rows:
            some = msgspec.structs.replace(
                records, batch=rest, count=rest.num_rows, size=rest.nbytes
            )
            made = self._made(split, some, known)
        count = records.count
        if made.refusal is not None:
            count = int(np.searchsorted(records.batch["position"].to_numpy(), made.refused_at))
        sampled, discarded, equal = (
            _count(mask[:count]) for mask in (left.sampled, left.discarded, left.equal)
        )
        return msgspec.structs.replace(
            made,
            read=made.read + sampled + discarded + equal,
            size=records.size if count == records.count else records.batch[:count].nbytes,
            sampled_out=sampled,
            discarded=made.discarded + discarded,
            deduplicated=made.deduplicated + equal,
            last=last_of(records.batch, left, count, known.last) if drops_equal else b"",
        )

    def _made(
        self, split: str, records: Records[pa.RecordBatch], known: KnownBefore[pa.RecordBatch]
    ) -> MadeRows[pa.RecordBatch]:
        """Return what becomes of records of which none is left out."""
        decoded = self._decoder.decode(records.batch, source_split=origin_of(split))
        judged = judged_times(
            decoded, self._rules.windows, log_time=known.log_time, sealed=known.sealed
        )
        if known.refused:
            decoded, judged = _refused(decoded, judged, known.refused)
        fates = self._fates(records, judged, known)
        rows = self._rows(decoded, fates.may_be_row, known)
        dropped = judged.dropped & ~fates.in_table & ~fates.bad
        dropped[fates.count :] = False
        made = MadeRows(
            rows=rows.rows if rows.rows.num_rows else None,
            rows_count=rows.rows.num_rows,
            read=fates.count,
            size=records.size
            if fates.count == records.count
            else records.batch[: fates.count].nbytes,
            filtered=rows.filtered + _count(fates.ignored),
            deduplicated=_count(fates.in_table) + rows.known,
            discarded=_count(dropped) + _count(fates.left_out),
            quarantined=_count(fates.bad),
            quarantine=self._quarantined(split, records.batch, decoded, judged, fates.kept_apart),
            errors_in_row=fates.errors_in_row,
            dropped=decoded.dropped,
        )
        if self._rules.windows is not None:
            late = decoded.time.filter(
                pa.array(
                    (dropped | (judged.diverted & fates.kept_apart))[decoded.record.to_numpy()]
                )
            )
            made = msgspec.structs.replace(
                made,
                newest=newest_time(pa.concat_arrays([rows.times, late])),
                windows=window_counts(rows.times, self._rules.windows, left_out=late),
            )
        if fates.count == records.count:
            return made
        refusal = _refusal(split, records.batch, decoded, judged, fates.count)
        position = int(records.batch["position"].to_numpy()[fates.count])
        return msgspec.structs.replace(made, refusal=refusal, refused_at=position)

    def _fates(
        self,
        records: Records[pa.RecordBatch],
        judged: JudgedTimes,
        known: KnownBefore[pa.RecordBatch],
    ) -> _Fates:
        in_table = records_in_table(records.count, known)
        held = _held(records.batch, known.in_quarantine) & ~in_table
        ignored = (judged.verdicts == Verdict.IGNORED) & ~held & ~in_table
        left_out = np.isin(judged.verdicts, list(self._rules.left_out)) & ~held & ~in_table
        bad = ((judged.verdicts != Verdict.ROW) & ~ignored & ~left_out & ~in_table) | held
        in_row = _errors_in_row(bad & ~judged.diverted, known.errors_in_row)
        is_strict = self._rules.on_error == "fail"
        too_many = in_row > (0 if is_strict else self._rules.errors_in_row_max)
        at_once = np.isin(judged.verdicts, list(self._rules.refused)) & ~held & ~in_table
        refused = np.flatnonzero(too_many | at_once)
        count = int(refused[0]) if len(refused) else records.count
        is_taken = np.arange(records.count) < count
        keeps = self._rules.on_error == "quarantine"
        return _Fates(
            count=count,
            in_table=in_table & is_taken,
            ignored=ignored & is_taken,
            left_out=left_out & is_taken,
            bad=bad & is_taken,
            kept_apart=(bad if keeps else judged.diverted) & ~held & ~in_table & is_taken,
            may_be_row=is_taken & ~held & ~in_table & ~bad & ~left_out & ~judged.dropped,
            errors_in_row=int(in_row[count - 1]) if count else known.errors_in_row,
        )

    def _rows(
        self, decoded: Decoded, may_be_row: Mask, known: KnownBefore[pa.RecordBatch]
    ) -> _Rows:
        """Return the rows that the connection keeps."""
        rows = decoded.rows.append_column(_TIME, decoded.time)
        if not may_be_row.all():
            rows = rows.filter(pa.array(may_be_row[decoded.record.to_numpy()]))
        before = rows.num_rows
        if self._rules.where is not None:
            rows = kept(rows, self._rules.where)
        filtered = before - rows.num_rows
        if self._rules.once_column and known.are_new is not None:
            first = first_of_values(rows.column(self._rules.once_column), known.are_new)
            rows = rows if first.all() else rows.filter(pa.array(first))
        return _Rows(
            rows=rows.select(decoded.rows.schema.names).cast(decoded.rows.schema),
            times=rows.column(_TIME),
            filtered=filtered,
            known=before - filtered - rows.num_rows,
        )

    def _quarantined(
        self,
        split: str,
        batch: pa.RecordBatch,
        decoded: Decoded,
        judged: JudgedTimes,
        kept_apart: Mask,
    ) -> pa.RecordBatch | None:
        indices = np.flatnonzero(kept_apart)
        if not len(indices):
            return None
        details = {
            index: decoded.details[record]
            for index, record in enumerate(indices.tolist())  # bounded: bad ones
            if record in decoded.details
        }
        return quarantined_rows(
            batch.take(pa.array(indices)),
            judged.verdicts[indices],
            details,
            connection=self._connection.id,
            source_split=split,
            version=self._connection.version,
        )


def _refused(decoded: Decoded, judged: JudgedTimes, why: str) -> tuple[Decoded, JudgedTimes]:
    """Return records without those rows that the table refuses."""
    rows = np.flatnonzero(judged.verdicts == Verdict.ROW)
    verdicts = judged.verdicts.copy()
    verdicts[rows] = Verdict.REFUSED_BY_TABLE
    details = {**decoded.details, **dict.fromkeys(rows.tolist(), why)}
    return replace(decoded, details=details), replace(judged, verdicts=verdicts)


def _count(mask: Mask) -> int:
    return int(mask.sum())


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
    split: str, batch: pa.RecordBatch, decoded: Decoded, judged: JudgedTimes, record: int
) -> RecordRefusedError:
    verdict = Verdict(int(judged.verdicts[record]))
    return RecordRefusedError(
        "a record is no row",
        source_split=split,
        position=int(batch["position"].to_numpy()[record]),
        verdict=verdict.code,
        detail=decoded.details.get(record, ""),
    )
