"""What a newer release wrote is nobody's mistake: messages wait, tasks end, nothing is rejected."""

from collections.abc import Callable

import pytest

from lakebed.backends.memory import MemoryJobQueue, VirtualClock
from lakebed.bootstrap.functions.sent_messages import RETRY_SECONDS, SentMessages
from lakebed.bootstrap.tasks.task_process import EXIT_CODES
from lakebed.errors import InvalidError, LakebedError, NewerFormatError, UnavailableError
from lakebed.ports.job_queue import (
    UPGRADE_WAIT_SECONDS,
    Message,
    Received,
    upgrade_wait_seconds,
)
from lakebed.tasks.task_loop import TaskLimits, TaskLoop
from lakebed.tasks.worker import FailurePolicy, Worker

FAILURES = FailurePolicy(refused=(InvalidError,), retry_seconds=30, bugs=True)


def raising(error: LakebedError) -> Callable[[Received], None]:
    def handle(_: Received) -> None:
        raise error

    return handle


def test_a_newer_format_is_no_mistake_of_who_asked() -> None:
    error = NewerFormatError("a newer log entry", number=7)
    assert not isinstance(error, InvalidError)
    assert "upgrade this installation" in str(error)
    assert error.exit_code not in {InvalidError.exit_code, LakebedError.exit_code}


def test_a_task_that_meets_a_newer_format_ends_and_its_message_waits() -> None:
    clock = VirtualClock()
    queue = MemoryJobQueue(clock)
    queue.send([Message(b"a"), Message(b"b")])
    worker = Worker(queue=queue, handle=raising(NewerFormatError("newer")), failures=FAILURES)
    ending = TaskLoop(worker, clock=clock, limits=TaskLimits(failures_max=3)).run()
    assert ending == "outdated"
    assert EXIT_CODES[ending] == NewerFormatError.exit_code
    assert queue.depth() == (2, 0)
    (other,) = queue.receive(messages_max=10, hidden_seconds=1)
    assert other.body == b"b", "the task took no other job"


def test_a_message_waits_longer_each_time_and_is_not_dead_before_five_hours() -> None:
    clock = VirtualClock()
    queue = MemoryJobQueue(clock)
    queue.send([Message(b"a")])
    worker = Worker(queue=queue, handle=raising(NewerFormatError("newer")), failures=FAILURES)
    for seconds in UPGRADE_WAIT_SECONDS:
        assert worker.step() == "outdated"
        clock.advance(seconds - 1)
        assert worker.step() is None
        clock.advance(2)
    assert clock.monotonic() > 5 * 3_600
    assert worker.step() is None
    assert queue.depth() == (0, 1)


def test_a_round_of_jobs_stops_at_what_needs_a_newer_release() -> None:
    queue = MemoryJobQueue(VirtualClock())
    queue.send([Message(b"a"), Message(b"b")])
    worker = Worker(queue=queue, handle=raising(NewerFormatError("newer")), failures=FAILURES)
    assert worker.run(jobs_max=10) == 0
    assert [m.body for m in queue.receive(messages_max=10, hidden_seconds=1)] == [b"b"]


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (UnavailableError("busy"), RETRY_SECONDS),
        (NewerFormatError("newer"), UPGRADE_WAIT_SECONDS[0]),
    ],
)
def test_a_message_that_a_function_was_handed_comes_back(
    error: LakebedError, seconds: float
) -> None:
    clock = VirtualClock()
    queue = MemoryJobQueue(clock)
    queue.send([Message(b"a")])
    (held,) = queue.receive(messages_max=1, hidden_seconds=10_000)
    SentMessages(queue, received=lambda _: held).failed({}, error)
    clock.advance(seconds - 1)
    assert queue.receive(messages_max=1, hidden_seconds=1) == []
    clock.advance(2)
    assert queue.receive(messages_max=1, hidden_seconds=1)[0].body == b"a"


def test_waits_are_of_every_receive() -> None:
    assert [upgrade_wait_seconds(n) for n in (0, 1, 2, 5, 99)] == [60, 60, 300, 14_400, 14_400]
