"""Dead letters are sent again, unless what they ask for could then be done twice.

What asks for rows to be written is done once under its id, as long as the table remembers ids: what
is older stays where it is. A commit below the write floor would be refused anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from lakebed.config.job_queues import KEPT_DAYS
from lakebed.config.messages import (
    bulk_import_message,
    ingest_message,
    query_message,
    submission_message,
)
from lakebed.config.sent.arrived_files import arrived_file
from lakebed.errors import InvalidError, LakebedError
from lakebed.inspection.dead_letters import DeadLetters, Said, Tables, said_by
from lakebed.inspection.leased_dead_letters import leased_dead_letters
from lakebed.model.jobs import (
    BATCHING,
    BULK_IMPORT_QUEUE,
    COMPACTION_QUEUE,
    INGEST_QUEUE,
    QUERY_QUEUE,
    SUBMISSIONS_QUEUE,
    TICK_KINDS,
    batch_message_in,
)
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues, Message, Received
from lakebed.statestore.head import TableHead


def _ingest_job(body: bytes) -> object:
    return batch_message_in(body) or ingest_message(body)


def _bulk_import_job(body: bytes) -> object:
    return batch_message_in(body) or bulk_import_message(body)


def _submission(body: bytes) -> object:
    return arrived_file(body) or submission_message(body)


HARMLESS = {BATCHING, COMPACTION_QUEUE, QUERY_QUEUE, *TICK_KINDS}
"""Queues whose work may be asked for twice at any age: a job that lost its claim is refused, others
change nothing, or what is to be changed anyway."""
MESSAGES_OF_USERS: Mapping[str, Callable[[bytes], object]] = {
    BULK_IMPORT_QUEUE: _bulk_import_job,
    INGEST_QUEUE: _ingest_job,
    QUERY_QUEUE: query_message,
    SUBMISSIONS_QUEUE: _submission,
}
"""Functions that read the messages of users, by queue, and refuse what can never be done."""
MOVED_MICROS = KEPT_DAYS * 86_400 * MICROS_PER_SECOND
"""Most microseconds between the sending of a message and its death."""
NO_TABLE = "there is no such table"
SENT = ""
"""Empty reason: the letter has no reason to stay, and is sent."""


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of sending dead letters again.

    sent: again.
    refused: why each letter that was not sent stays.
    """

    sent: int = 0
    refused: tuple[str, ...] = ()


class Redrive:
    """Sends letters again, a few at a time: while they are in hand, they can be deleted.

    Safe to kill anywhere, and to run beside another: a letter is sent, then deleted, and one that
    was only sent is a double, which asks for nothing new. One that dies again meanwhile stays."""

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
        """Look at so many letters of each queue at the most, oldest first.

        kinds: of queues; none: all.
        table: of which they are; None: any.

        Raises:
            InvalidError: there is no such queue. UnavailableError, UnknownOutcomeError: letters are
                left; run it again.
        """
        tables, sent, refused = self._letters.tables(), 0, list[str]()
        for kind in self._letters.known(kinds):
            reasons = self._of_queue(kind, tables, table, letters_max)
            sent += reasons.count(SENT)
            refused += [f"{kind}: {reason}" for reason in reasons if reason != SENT]
        return Redriven(sent=sent, refused=tuple(refused))

    def _of_queue(
        self, kind: str, tables: Tables, table: str | None, letters_max: int
    ) -> list[str]:
        """Send letters of one queue again. Returns of each SENT, or why it stays; nothing of other
        tables'."""
        queue, reasons, again = self._queues.open(kind), list[str](), set[Message]()
        with leased_dead_letters(queue, self._clock) as hand:
            for letter in hand.letters(letters_max):
                earliest = Micros(letter.sent_at - MOVED_MICROS) if letter.moved else letter.sent_at
                message = Message(letter.body, letter.message_group, sent_at=earliest)
                reason = self._reason(kind, letter, tables, table, earliest)
                if reason == SENT and message in again:
                    reason = "it was sent a moment ago and is here again, or was here twice"
                if reason == SENT:
                    queue.send([message])
                    hand.delete(letter)
                    again.add(message)
                else:
                    hand.keep(letter)
                reasons += [] if reason is None else [reason]
        return reasons

    def _reason(
        self,
        kind: str,
        letter: Received,
        tables: Tables,
        table: str | None,
        earliest: Micros,
    ) -> str | None:
        """Return SENT for a letter to send again, or why it stays; None: it is another table's."""
        try:
            said = said_by(kind, letter, tables)
        except LakebedError as error:
            return f"{error.code()}: {error.message}" if table is None else None
        if table is not None and said.called != table:
            return None
        reason = _never_works(kind, letter, said, tables)
        if reason == SENT and kind not in HARMLESS:
            reason = self._reason_against(letter, said, earliest)
        return f"{reason} (table {said.called}, {', '.join(said.jobs)})" if reason else SENT

    def _reason_against(self, letter: Received, said: Said, earliest: Micros) -> str:
        """Return why a letter that asks for rows to be written must stay; "": nothing is against
        it. earliest: when it was sent at the earliest."""
        if said.table is None:
            return NO_TABLE
        if letter.moved and not said.named:
            return "it has no id, so it could be done twice: send it anew, with an id"
        try:
            with self._heads(said.table).reading() as state:
                kept, now = state.settings().job_id_seconds_min, state.head().at
        except LakebedError as error:
            return f"{error.code()}: {error.message}"
        age = (max(now, self._clock.now()) - earliest) // MICROS_PER_SECOND
        if age >= kept:
            return f"too old: sent {age} s ago, ids are remembered for {kept} s"
        return ""


def _never_works(kind: str, letter: Received, said: Said, tables: Tables) -> str:
    """Return why a letter can never work, whatever is mended: sent again, it would die again. SENT:
    it may."""
    decode = MESSAGES_OF_USERS.get(kind)
    if decode is None:
        return SENT
    if said.table not in tables:
        return NO_TABLE
    try:
        decode(letter.body)
    except InvalidError as error:
        return f"it can never work: {error}"
    return SENT
