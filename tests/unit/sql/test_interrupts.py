"""What runs can be ended while other threads begin more."""

from collections.abc import Iterator
from threading import Thread
from weakref import WeakSet

from lakebed.sql.interrupts import Interruptible, Interrupts


class Work:
    def __init__(self) -> None:
        self.ended = 0

    def interrupt(self) -> None:
        self.ended += 1


def test_work_may_be_added_by_another_thread_while_all_is_ended() -> None:
    """The other thread adds its work when a first one was found in the set."""
    interrupts, first, second, late = Interrupts(), Work(), Work(), Work()
    adding = Thread(target=interrupts.add, args=(late,))

    class Observed(WeakSet[Interruptible]):
        def __iter__(self) -> Iterator[Interruptible]:
            for work in super().__iter__():
                if adding.ident is None:
                    adding.start()
                    adding.join(0.5)  # it is done by then, or waits for its turn
                yield work

    interrupts._begun = Observed()
    interrupts.add(first)
    interrupts.add(second)
    interrupts.interrupt()
    adding.join()
    assert (first.ended, second.ended, late.ended) == (1, 1, 0)
    interrupts.interrupt()
    assert (first.ended, second.ended, late.ended) == (2, 2, 1)
