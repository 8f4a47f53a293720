"""Defines a decoder: bytes of records in, rows of a table out, and a verdict for each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.model.feeds.verdicts import Verdict

DETAIL_CHARACTERS_MAX = 200
"""Most characters of the text about a bad record. It names fields of the table and their types,
never values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The result of decoding a batch of records.

    rows: in the table's columns, in the records' order.
    record: of each row, the index of its record. Rising: no record becomes two rows.
    time: of each row's event, `timestamp[us, UTC]`; null where the decoder has no time.
    verdicts: of each record: 0 is a row, all else a code of `Verdict`.
    details: why a record is no row, by its index; for those with a reason to tell.
    unknown: how many records had a value that no column takes, by its name; at most 100 names.
    dropped: how many rows are without a value that their column cannot hold, by its path.
    """

    rows: pa.RecordBatch
    record: pa.Int64Array
    time: pa.Array
    verdicts: npt.NDArray[np.uint8]
    details: Mapping[int, str]
    unknown: Mapping[str, int]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Decoder(Protocol):
    """Makes rows of records. The same records always become the same rows and verdicts, whatever
    batch they come in."""

    def decode(self, records: pa.RecordBatch, *, source_split: str = "") -> Decoded:
        """Return the rows of a batch of RAW_RECORDS. No record makes it raise.

        source_split: where they are from, for the columns of lineage.

        Raises:
            UnavailableError: there is not enough memory, or a registry of schemas cannot be asked.
            DeniedError, InvalidError: a registry of schemas refuses us.
        """
        ...


@dataclass(slots=True)
class Verdicts:
    """Verdicts of some records, while they are found. The first of a record stays.

    codes: one for each record.
    details: by index of the record.
    """

    codes: npt.NDArray[np.uint8]
    details: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, records: int) -> Verdicts:
        """Return those of records that are all rows so far."""
        return cls(np.zeros(records, np.uint8))

    def mark(self, record: int, verdict: Verdict, detail: str = "") -> None:
        """Say that a record is no row, if nothing was said of it yet."""
        if not self.codes[record]:
            self.codes[record] = verdict
            if detail:
                self.details[record] = detail[:DETAIL_CHARACTERS_MAX]

    def mark_all(self, records: npt.NDArray[np.int64], verdict: Verdict, detail: str = "") -> None:
        """Say the same of several records."""
        for record in records.tolist():  # bounded: those that are no rows
            self.mark(record, verdict, detail)
