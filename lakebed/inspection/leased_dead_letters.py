"""Leases dead letters for a while: as many as are asked for, a few at a time.

Reading a letter of SQS hides it from all other readers; it is put back when the look ends.
Of one group no other letter can be seen meanwhile, so of many letters of a group that stay only the
first ten are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import LETTER_HIDDEN_SECONDS, JobQueue, Received

IN_HAND_SECONDS = LETTER_HIDDEN_SECONDS / 2
"""Seconds after which nothing is begun with a letter, so that what was begun has as long to end."""
STAYS_HIDDEN_SECONDS = 900.0
"""Seconds that a letter which stays is hidden, lest it be looked at twice. Longer than a look,
which puts it back."""
IN_SIGHT = 0.0


class LeasedDeadLetters:
    """Letters of one queue that one look has taken."""

    def __init__(self, queue: JobQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._held: set[str] = set()
        self._taken = 0.0

    def letters(self, letters_max: int) -> Iterator[Received]:
        """Yield so many at most, oldest first. Each can be deleted for at least IN_HAND_SECONDS.

        Raises:
            UnavailableError.
        """
        seen = 0
        while seen < letters_max:
            taken = self._clock.monotonic()
            some = self._queue.dead_letters(messages_max=letters_max - seen)
            new = [letter for letter in some if letter.receipt not in self._held]
            if not new:
                return
            self._held.update(letter.receipt for letter in new)
            for index, letter in enumerate(new):
                if self._clock.monotonic() - taken >= IN_HAND_SECONDS and index:
                    self._put_back(*(late.receipt for late in new[index:]))
                    break
                seen += 1
                yield letter

    def each_once(self, letters_max: int) -> Iterator[Received]:
        """Yield the same, but no more than are found before the first may be in sight again, when
        they would come twice. Raises: as `letters`."""
        end = self._clock.monotonic() + IN_HAND_SECONDS
        for letter in self.letters(letters_max):
            yield letter
            if self._clock.monotonic() >= end:
                break

    def keep(self, letter: Received) -> None:
        """Leave a letter that stays out of sight until the look ends. Raises: UnavailableError."""
        self._queue.extend(letter.receipt, hidden_seconds=STAYS_HIDDEN_SECONDS)

    def delete(self, letter: Received) -> None:
        """Remove a letter for good. Raises: UnavailableError: it may be left."""
        self._queue.delete(letter.receipt)
        self._held.discard(letter.receipt)

    def put_back(self) -> None:
        """End the look. Raises: UnavailableError: some are in sight again only later."""
        self._put_back(*sorted(self._held))

    def _put_back(self, *receipts: str) -> None:
        for receipt in receipts:
            self._queue.extend(receipt, hidden_seconds=IN_SIGHT)
            self._held.discard(receipt)


@contextmanager
def leased_dead_letters(queue: JobQueue, clock: Clock) -> Iterator[LeasedDeadLetters]:
    """Look at dead letters of a queue; those that are left are in sight again when it ends."""
    letters = LeasedDeadLetters(queue, clock)
    try:
        yield letters
    finally:
        letters.put_back()
