"""Send queued commits again that were given up, unless they are too old to be known by their ids.

A commit below the write floor would be refused. A user's may be older than its id is remembered:
then it could be done twice, so it stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lakebed.errors import LakebedError
from lakebed.model.names import MICROS_PER_SECOND, TableId
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueue, Message, Received
from lakebed.statestore.head import TableHead
from lakebed.statestore.queued_commits import decode_commits


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """What became of dead letters. sent: again. refused: why each of the others stays."""

    sent: int = 0
    refused: tuple[str, ...] = ()


class RedriveCommits:
    """Sends commits again. Safe to kill anywhere: one that is sent and not deleted is a double."""

    def __init__(
        self, *, queue: JobQueue, heads: Callable[[TableId], TableHead], clock: Clock
    ) -> None:
        self._queue = queue
        self._heads = heads
        self._clock = clock

    def run(self, *, letters_max: int) -> Redriven:
        """Look at so many dead letters at most, oldest first."""
        sent, refused = 0, list[str]()
        for letter in self._queue.dead_letters(messages_max=letters_max):
            reason = self._reason_against(letter)
            if reason is not None:
                refused.append(reason)
                continue
            self._queue.send([Message(letter.body, letter.group, sent_at=letter.sent_at)])
            self._queue.delete(letter.receipt)
            sent += 1
        return Redriven(sent=sent, refused=tuple(refused))

    def _reason_against(self, letter: Received) -> str | None:
        try:
            table = decode_commits(letter.body).table
            with self._heads(table).reading() as state:
                kept = state.settings().job_id_seconds_min
        except LakebedError as error:
            return f"{error.code()}: {error.message}"
        age = (self._clock.now() - letter.sent_at) // MICROS_PER_SECOND
        if age >= kept:
            return f"too old: sent {age} s ago, ids are remembered for {kept} s"
        return None
