"""Defines what becomes of records before they are staged: rows, and records of which no row could
be made.

Services of feeds pass batches on and never look inside them; who makes rows does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.feed_errors import RecordRefusedError
from lakebed.model.feeds.windows import WindowCount, WindowRules
from lakebed.model.names import Micros
from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records

BatchT = TypeVar("BatchT")


class MadeRows(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """The outcome of making rows of the records of one batch. Each record is counted once.

    rows: of the table; None: no record became one.
    rows_count: how many.
    read: how many records; fewer than were given if one is refused.
    size: bytes of these records.
    filtered: records that the connection's filter left out.
    deduplicated: records that are in the table already, or equal to the one before them.
    discarded: records whose window is sealed, where late ones are dropped, and those that the
        policy leaves out as the newest.
    sampled_out: records that the policy leaves out by chance.
    quarantined: records of which no row could be made, those that are in the quarantine already
        among them.
    quarantine: rows of the quarantine table for those that are not there yet; None: there are none.
    errors_in_row: how many records at the end no row could be made of, with those before this batch
        if it has no other.
    refusal: why the connection stops before one of the records; None: it goes on.
    refused_at: the position of that record.
    newest: the greatest event time of the rows; None: they have none.
    windows: how many rows lie in each window of event time, where the connection has windows.
    last: a digest of the last of the records, where equal ones in a row are left out.
    dropped: how many records are without a value that its column cannot hold, by its path.
    """

    rows: BatchT | None
    rows_count: int
    read: int
    size: int
    filtered: int = 0
    deduplicated: int = 0
    discarded: int = 0
    sampled_out: int = 0
    quarantined: int = 0
    quarantine: BatchT | None = None
    errors_in_row: int = 0
    refusal: RecordRefusedError | None = None
    refused_at: int = 0
    newest: Micros | None = None
    windows: tuple[WindowCount, ...] = ()
    last: bytes = b""
    dropped: Mapping[str, int] = {}


class KnownBefore(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """The facts that are known of records before rows are made of them.

    in_quarantine: rows of the quarantine table, of this source split, that may be of these records:
        no rows are made of those, whatever they look like now.
    in_table: which records are in the table already, as ranges of their indices: first, and behind
        the last.
    errors_in_row: how many records in a row just before these no row could be made of.
    log_time: of the table.
    sealed: windows of event time that end there, or before, are sealed; None: none is.
    keep: the share of records that is kept, chosen by their positions.
    discard_last: how many of the last records are left out.
    last: a digest of the record before these; empty: it is not known.
    refused: why the table refused the row of the only record; empty: it has refused none.
    are_new: says which of some values, by their items, are not known yet, where each is let in
        once.
    """

    in_quarantine: Sequence[BatchT] = ()
    in_table: Sequence[tuple[int, int]] = ()
    errors_in_row: int = 0
    log_time: Micros = Micros(0)
    sealed: Micros | None = None
    keep: float = 1.0
    discard_last: int = 0
    last: bytes = b""
    refused: str = ""
    are_new: Callable[[Sequence[bytes]], Sequence[bool]] | None = None


class MakeRows(Protocol[BatchT]):
    """Makes rows of records, always the same ones of the same definition, or almost: what the
    quarantine holds stays there (protocol R13)."""

    @property
    def schema(self) -> Schema:
        """Return the schema of the rows."""
        ...

    @property
    def windows(self) -> WindowRules | None:
        """Return the rules by which event time is counted; None: it is not."""
        ...

    def concat(self, batches: Sequence[BatchT]) -> BatchT:
        """Return the records of several batches as one."""
        ...

    def first(self, batch: BatchT, count: int) -> tuple[BatchT, int, int]:
        """Return the first records of a batch of more, the position behind them, and their size in
        bytes."""
        ...

    def row(self, rows: BatchT, index: int) -> BatchT:
        """Return one of some rows, as rows."""
        ...

    def __call__(
        self, split: str, records: Records[BatchT], known: KnownBefore[BatchT]
    ) -> MadeRows[BatchT]:
        """Return what became of records of a source split.

        Raises:
            UnavailableError: there is not enough memory, or a registry of schemas does not answer.
        """
        ...
