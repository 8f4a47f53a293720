"""One table, and machines whose clocks may lie by months: for stories of log time."""

from collections.abc import Iterator
from typing import Any

from lakebed.backends.memory import MachineClock
from lakebed.model.names import (
    MICROS_PER_SECOND,
    Micros,
    TransactionNumber,
)
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from tests.dsl.table_story import TableStory

MINUTE = 60
DAY = 86_400
YEAR = 365 * DAY


def micros(seconds: float) -> Micros:
    return Micros(round(seconds * MICROS_PER_SECOND))


class OwnTime:
    """The log as one machine has it in a directory: its store's time is the machine's own."""

    def __init__(self, log: TransactionLog, clock: MachineClock) -> None:
        self._log = log
        self._clock = clock

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def store_time(self) -> Micros:
        return self._clock.now()


class Lake:
    """One table, and machines whose clocks are ahead or behind."""

    def __init__(self) -> None:
        self.story = TableStory()
        self.world = self.story.clock

    def machine(self, ahead: float = 0) -> MachineClock:
        return self.world.machine(micros(ahead))

    def process(self, clock: MachineClock | None = None, retry: Retry | None = None) -> TableHead:
        """A new process; None: on a machine of its own, whose clock is right."""
        clock = clock or self.machine()
        log: TransactionLog = OwnTime(self.story.log, clock)  # type: ignore[assignment] # by name
        head = self.story.another_head(log=log, clock=clock, retry=retry)
        head.follow()
        return head

    def when_committed(self, head: TableHead, *changes: object) -> int:
        head.follow()
        known = head.state.head()
        given: tuple[Any, ...] = changes or (AddFiles(()),)
        transaction = self.story.transaction(*given, base=known.number)
        return head.commit(transaction)

    @property
    def at(self) -> Micros:
        """The newest log time."""
        self.story.head.follow()
        return self.story.state.head().at

    def changes(self) -> Iterator[object]:
        for number, body in self.story.log.log.read_after(TransactionNumber(0)):
            for transaction in decode_entry(body, number).transactions:
                yield from transaction.changes

    def kinds(self) -> list[str]:
        return [type(change).__name__ for change in self.changes()]
