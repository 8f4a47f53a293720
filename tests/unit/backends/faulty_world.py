"""A small world with true stores, the same stores as a worker meets them, and a worker."""

import random
from collections.abc import Iterator
from contextlib import suppress

from lakebed.backends.faulty import (
    CrashPlan,
    Fault,
    Faults,
    FaultyJobQueues,
    FaultyObjectStore,
    FaultyTransactionLogs,
)
from lakebed.backends.memory import (
    MemoryJobQueues,
    MemoryObjectStore,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.errors import LakebedError, LogConflictError
from lakebed.model.names import TableId, TransactionNumber
from lakebed.ports.job_queue import Message

TABLE = TableId("t1")


def number(n: int) -> TransactionNumber:
    return TransactionNumber(n)


class World:
    """True stores, and the same as a worker meets them while one fault always happens."""

    def __init__(self, *faults: Fault, crashes: CrashPlan | None = None) -> None:
        clock = VirtualClock()
        self.logs = MemoryTransactionLogs(clock)
        self.objects = MemoryObjectStore(clock)
        self.queues = MemoryJobQueues(clock)
        self.faults = Faults(random.Random(7), dict.fromkeys(faults, 1.0))
        self.log = FaultyTransactionLogs(self.logs, self.faults, crashes).open(TABLE)
        self.store = FaultyObjectStore(self.objects, self.faults, crashes)
        self.queue = FaultyJobQueues(self.queues, self.faults, crashes).open("jobs")

    def entries(self) -> list[bytes]:
        return [body for _, body in self.logs.open(TABLE).read_after(number(0))]

    def taken(self, n: TransactionNumber) -> bool:
        if n == 0:
            return True
        try:
            self.logs.open(TABLE).append(n, b"")
        except LogConflictError:
            return True
        return False

    def paths(self) -> list[str]:
        return list(self.objects.list(""))

    def messages(self) -> list[bytes]:
        received = self.queues.open("jobs").receive(messages_max=99, hidden_seconds=0)
        return [message.body for message in received]

    def put(self, path: str = "a", body: bytes = b"body") -> None:
        writer = self.store.create(path)
        writer.write(body)
        writer.finish()

    def truly_put(self, path: str) -> None:
        with self.faults.none():
            self.put(path)


def busy(world: World) -> Iterator[str]:
    """A worker that does everything, whatever it is told. Yields what it lived to see."""
    for n in range(1, 4):
        for step in (
            lambda n=n: world.put(f"{n}"),
            lambda n=n: world.log.append(number(n), b"%d" % n),
            lambda n=n: world.queue.send([Message(b"%d" % n)]),
            lambda n=n: world.store.delete([f"{n}"]),
            lambda n=n: world.log.truncate(number(n)),
            lambda n=n: [
                world.queue.delete(m.receipt)
                for m in world.queue.receive(messages_max=9, hidden_seconds=9)
            ],
            lambda: list(world.log.read_after(number(2))),
        ):
            with suppress(LakebedError):
                step()
            yield "step"
