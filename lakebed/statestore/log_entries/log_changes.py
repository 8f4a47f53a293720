"""Defines what the log says of itself: that it goes on after a part of it was lost.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

import msgspec

from lakebed.model.names import TransactionNumber
from lakebed.statestore.log_entries.file_changes import ReleaseClaim
from lakebed.statestore.table_state.state import Moment, TableState

LOG_FORMAT = 4
"""Format of log entries that change the log itself."""


class ResumeLog(msgspec.Struct, frozen=True, array_like=True, tag="resume"):
    """A repair: the log goes on from here, from a snapshot at the number before.

    after: entry whose state the snapshot holds.
    The horizon rises to it: what is lost may say that files of older versions were deleted (H38).

    is_loss: entries that came later are given up: a new generation begins and all claims end, so
        that work planned on them is refused (H16).
    """

    after: TransactionNumber
    is_loss: bool

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("UPDATE horizon SET number = max(number, ?)", (moment.number - 1,))
        if self.is_loss:
            state.write("UPDATE head SET generation = generation + 1")
            for job in state.jobs():
                ReleaseClaim(job.id).apply(state, moment)
