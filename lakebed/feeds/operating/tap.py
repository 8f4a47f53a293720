"""A look at the records that a source gives now, and at what would become of them. Nothing is
committed, claimed or acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from lakebed.decoding.raw_records import RAW_RECORDS
from lakebed.feeds.committed import count_of
from lakebed.feeds.decode_records import DecodeRecords
from lakebed.feeds.operating.position_admin import newest_state
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.names import ConnectionId
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import RecordSource, SourceSplit, SplitReader
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import positions_of

READ_BYTES = 1 << 20
"""Bytes of one read: so source splits take turns."""
PAUSE_SECONDS = 0.1

FILTERED = "filtered"
"""The fate of a row that the connection's `where` does not keep."""

_CODES = pa.array([verdict.code for verdict in Verdict])
_PAYLOAD = [field for field in RAW_RECORDS if field.name != "position"]

Look = Callable[[str, pa.RecordBatch], pa.RecordBatch]
"""Says of the records of a source split what would become of each."""


def committed_positions(table: OpenTable, id_: ConnectionId) -> dict[str, Position]:
    """Return how far a connection has taken each source split."""
    with newest_state(table) as state:
        return {name: position for name, position, _ in positions_of(state, id_)}


def looked_at(split: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as they came: each would be a row of a landing table."""
    rows = pa.StructArray.from_arrays(
        [records[field.name].cast(field.type) for field in _PAYLOAD], fields=_PAYLOAD
    )
    count = records.num_rows
    verdicts = pa.repeat(pa.scalar(Verdict.ROW.code), count)
    return _looked(split, records, verdicts, pa.nulls(count, pa.string()), rows)


def decoded_look(maker: DecodeRecords) -> Look:
    """Return what says of records what a connection makes of them."""

    def look(split: str, records: pa.RecordBatch) -> pa.RecordBatch:
        decoded, is_kept = maker.look(split, records)
        index = np.full(records.num_rows, -1)
        of_rows = decoded.record.to_numpy(zero_copy_only=False)
        index[of_rows] = np.arange(len(of_rows))
        rows = pa.StructArray.from_arrays(decoded.rows.columns, fields=list(decoded.rows.schema))
        verdicts = _CODES.take(pa.array(decoded.verdicts)).to_numpy(zero_copy_only=False).copy()
        verdicts[of_rows[~is_kept]] = FILTERED
        details = [decoded.details.get(n) for n in range(records.num_rows)]
        return _looked(
            split,
            records,
            pa.array(verdicts, pa.string()),
            pa.array(details, pa.string()),
            rows.take(pa.array(index, mask=index < 0)),
        )

    return look


class Tap:
    """Looks at a source. begins: where it has been taken to; other source splits from where a feed
    begins."""

    def __init__(
        self,
        source: RecordSource[pa.RecordBatch],
        look: Look,
        begins: Mapping[str, Position],
        clock: Clock,
    ) -> None:
        self._source = source
        self._look = look
        self._begins = begins
        self._clock = clock

    def records(self, *, limit: int, wait_seconds: float) -> Iterator[pa.RecordBatch]:
        """Yield what would become of records, at most so many: `source_split`, `position`,
        `verdict`, `detail`, `row`. It ends when there was none for so long.

        Raises:
            As sources do.
        """
        readers: dict[str, SplitReader[pa.RecordBatch]] = {}
        try:
            for split in self._source.splits():
                readers[split.name] = self._opened(split)
            left, since = limit, self._clock.monotonic()
            while left:
                before = left
                for name, reader in readers.items():
                    found = reader.read(bytes_max=READ_BYTES) if left else None
                    if found is not None:
                        batch = found.batch.slice(0, left)
                        left -= batch.num_rows
                        yield self._look(name, batch)
                now = self._clock.monotonic()
                if left < before:
                    since = now
                elif now - since >= wait_seconds:
                    break
                else:
                    self._clock.sleep(PAUSE_SECONDS)
        finally:
            for reader in readers.values():
                reader.close()
            self._source.close()

    def _opened(self, split: SourceSplit) -> SplitReader[pa.RecordBatch]:
        at = self._begins.get(split.name) or Position(0, self._source.start(split))
        return self._source.open(split, count_of(at), resume=at.resume)


def _looked(
    split: str, records: pa.RecordBatch, verdicts: pa.Array, details: pa.Array, rows: pa.Array
) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "source_split": pa.repeat(pa.scalar(split, pa.string()), records.num_rows),
            "position": records["position"],
            "verdict": verdicts,
            "detail": details,
            "row": rows,
        }
    )
