"""Reads from the log of a landing table what was landed, and reads on as the log grows."""

from __future__ import annotations

from collections import defaultdict

from lakebed.errors import LogTruncatedError
from lakebed.landing.verify_landing import TakenRange, ranges_taken_by
from lakebed.model.names import ConnectionId, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog


class LandedRanges:
    """Ranges of positions that entries took of each source split, as far back as the log went when
    it was read first; those of before a clear, too.

    landed_by: the connection that fills the table.
    """

    def __init__(self, log: TransactionLog, landed_by: ConnectionId) -> None:
        self._log = log
        self._landed_by = landed_by
        self._number = TransactionNumber(0)
        self._ranges: defaultdict[str, list[TakenRange]] = defaultdict(list)

    def touching(self, split: str, begin: int, end: int) -> list[TakenRange]:
        """Return those that have positions of a range, by where they begin.

        Raises:
            CorruptError, NewerFormatError: an entry cannot be read.
            UnavailableError: the log cannot be read now.
        """
        self._follow()
        found = [one for one in self._ranges[split] if one.begin < end and begin < one.end]
        return sorted(found, key=lambda one: one.begin)

    def _follow(self) -> None:
        try:
            self._read_on()
        except LogTruncatedError as error:
            self._number = TransactionNumber(max(self._number, error.oldest - 1))
            self._read_on()

    def _read_on(self) -> None:
        for number, body in self._log.read_after(self._number):
            for one in ranges_taken_by(body, number, self._landed_by):
                self._ranges[one.source_split].append(one)
            self._number = number
