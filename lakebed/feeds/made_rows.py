"""What becomes of records before they are staged: rows, and records of which no row could be made.

Services of feeds pass batches on and never look inside them; who makes rows does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records

BatchT = TypeVar("BatchT")


class MadeRows(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """What became of the records of one batch. Each record is counted once.

    rows: of the table; None: no record became one.
    rows_count: how many.
    filtered: records that the connection's filter left out.
    quarantined: records of which no row could be made, those that are in the quarantine already
        among them.
    quarantine: rows of the quarantine table for those that are not there yet; None: there are none.
    """

    rows: BatchT | None
    rows_count: int
    filtered: int = 0
    quarantined: int = 0
    quarantine: BatchT | None = None


class MakeRows(Protocol[BatchT]):
    """Makes rows of records, always the same ones of the same definition, or almost: what the
    quarantine holds stays there (protocol R13)."""

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        ...

    def __call__(
        self, split: str, records: Records[BatchT], in_quarantine: Sequence[BatchT]
    ) -> MadeRows[BatchT]:
        """Return what became of records of a source split.

        in_quarantine: rows of the quarantine table, of this source split, that may be of these
            records: no rows are made of those, whatever they look like now.

        Raises:
            InvalidError: the policy stops the feed at one of the records.
        """
        ...
