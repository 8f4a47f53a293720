"""What runs can be ended by other threads, and while others begin more."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from weakref import WeakSet

import pytest

from lakebed.errors import InvalidError
from lakebed.sql import shut_engine, sql_work
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


def test_a_stream_that_another_thread_closes_between_two_batches_is_no_whole_answer(
    tmp_path: Path,
) -> None:
    work = sql_work.SqlWork(shut_engine.new_engine(tmp_path))
    batches = work.stream("select i from range(1_000_000) r(i)", ())
    assert batches.read_next_batch().num_rows
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work.close).result()
    with pytest.raises(InvalidError, match="interrupted"):
        batches.read_all()
    assert not sql_work._OPEN
