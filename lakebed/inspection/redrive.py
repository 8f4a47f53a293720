"""Dead letters are sent again, unless what they ask for could then be done twice.

What asks for rows to be written is done once under its id, as long as the table remembers ids: what
is older stays where it is. A commit below the write floor would be refused anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakebed.config.job_queues import KEPT_DAYS
from lakebed.errors import LakebedError
from lakebed.inspection.dead_letters import DeadLetters, Said, looked_at, said_by
from lakebed.model.jobs import COMPACTION_QUEUE, QUERY_QUEUE, TICK_KINDS
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TableName
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueue, JobQueues, Message, Received
from lakebed.statestore.head import TableHead

HARMLESS = {COMPACTION_QUEUE, QUERY_QUEUE, *TICK_KINDS}
"""What may be asked for twice at any age: a job that lost its claim is refused, others change
nothing, or what is to be changed anyway."""
MOVED_MICROS = KEPT_DAYS * 86_400 * MICROS_PER_SECOND
"""By how much a message may be older than its death."""


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """What became of dead letters. sent: again. refused: why each of the others stays."""

    sent: int = 0
    refused: tuple[str, ...] = ()


class Redrive:
    """Sends letters again. Safe to kill anywhere, and to run beside another: a letter is sent, then
    deleted, and one that was only sent is a double, which asks for nothing new."""

    def __init__(
        self,
        letters: DeadLetters,
        *,
        queues: JobQueues,
        heads: Callable[[TableId], TableHead],
        clock: Clock,
    ) -> None:
        self._letters = letters
        self._queues = queues
        self._heads = heads
        self._clock = clock

    def run(self, kinds: Sequence[str], table: str | None, *, letters_max: int) -> Redriven:
        """Look at so many letters of each queue at the most, oldest first. kinds: of queues; none:
        all. table: of which they are; None: any.

        Raises:
            InvalidError: there is no such queue. UnavailableError, UnknownOutcomeError: letters are
                left; run it again.
        """
        names, sent, refused = self._letters.names(), 0, list[str]()
        for kind in self._letters.known(kinds):
            queue = self._queues.open(kind)
            with looked_at(queue, letters_max) as letters:
                for letter in letters:
                    reason = self._tried(queue, kind, letter, names, table)
                    sent += reason == ""
                    refused += [f"{kind}: {reason}"] if reason else []
        return Redriven(sent=sent, refused=tuple(refused))

    def _tried(
        self,
        queue: JobQueue,
        kind: str,
        letter: Received,
        names: dict[TableId, TableName],
        table: str | None,
    ) -> str | None:
        """Send a letter again. Returns "", or why it stays; None: it is another table's."""
        try:
            said = said_by(kind, letter, names)
        except LakebedError as error:
            return f"{error.code()}: {error.message}" if table is None else None
        if table is not None and said.called != table:
            return None
        earliest = Micros(letter.sent_at - MOVED_MICROS) if letter.moved else letter.sent_at
        reason = "" if kind in HARMLESS else self._reason_against(letter, said, earliest)
        if reason:
            return f"{reason} (table {said.called}, {', '.join(said.jobs)})"
        queue.send([Message(letter.body, letter.group, sent_at=earliest)])
        queue.delete(letter.receipt)
        return ""

    def _reason_against(self, letter: Received, said: Said, earliest: Micros) -> str:
        """Return why a letter that asks for rows to be written must stay; "": nothing is against
        it. earliest: when it was sent at the earliest."""
        if said.table is None:
            return "there is no such table"
        if letter.moved and not said.named:
            return "it has no id, so it could be done twice: send it anew, with an id"
        try:
            with self._heads(said.table).reading() as state:
                kept = state.settings().job_id_seconds_min
        except LakebedError as error:
            return f"{error.code()}: {error.message}"
        age = (self._clock.now() - earliest) // MICROS_PER_SECOND
        if age >= kept:
            return f"too old: sent {age} s ago, ids are remembered for {kept} s"
        return ""
