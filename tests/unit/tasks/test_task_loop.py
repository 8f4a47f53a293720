"""When a task ends, and what becomes of the job that it has in hand."""

import json
import threading
from collections.abc import Callable

import pytest

from lakebed.backends.memory import MemoryJobQueue, VirtualClock
from lakebed.backends.system import SystemClock
from lakebed.errors import InvalidError, UnavailableError
from lakebed.observe.json_lines import JsonLines
from lakebed.ports.job_queue import Message, Received
from lakebed.tasks.task_loop import StopRequest, TaskLimits, TaskLoop, kept_or_given_back
from lakebed.tasks.worker import FailurePolicy, Visibility, Worker

LIMITS = TaskLimits(idle_seconds=60, age_seconds=3_600, failures_max=3, wait_seconds=10)
FAILURES = FailurePolicy(refused=(InvalidError,), retry_seconds=30, bugs=True)


class Task:
    """A task over a queue in memory. work: what a job does, by its message's body."""

    def __init__(self, work: Callable[[bytes], object] = lambda _: None) -> None:
        self.clock = VirtualClock()
        self.queue = MemoryJobQueue(self.clock, receives_max=5)
        self.done: list[bytes] = []
        self.ended = 0
        self._work = work
        worker = Worker(queue=self.queue, handle=self._handle, failures=FAILURES)
        self.loop = TaskLoop(worker, clock=self.clock, limits=LIMITS, ended=self._end)

    def given(self, *bodies: bytes) -> "Task":
        self.queue.send([Message(body) for body in bodies])
        return self

    def _handle(self, message: Received) -> None:
        self._work(message.body)
        self.done.append(message.body)

    def _end(self) -> None:
        self.ended += 1


def fails(error: Exception) -> Callable[[bytes], object]:
    def work(body: bytes) -> None:
        if body.startswith(b"bad"):
            raise error

    return work


def test_a_task_ends_when_its_queue_has_been_empty_for_a_while() -> None:
    task = Task().given(b"a", b"b")
    assert task.loop.run() == "idle"
    assert (task.done, task.ended) == ([b"a", b"b"], 1)
    assert 60 <= task.clock.monotonic() <= 80


def test_a_job_that_comes_meanwhile_begins_the_while_anew() -> None:
    task = Task().given(b"a")

    def later(_: float) -> None:
        if 50 <= task.clock.monotonic() < 60:
            task.given(b"b")

    task.clock.on_sleep = later
    assert task.loop.run() == "idle"
    assert task.done == [b"a", b"b"]
    assert task.clock.monotonic() >= 110


def test_an_old_task_begins_no_job() -> None:
    task = Task(lambda _: task.clock.advance(800)).given(b"a", b"b", b"c", b"d", b"e", b"f")
    assert task.loop.run() == "age"
    assert task.done == [b"a", b"b", b"c", b"d", b"e"]
    assert task.queue.depth() == (1, 0)


def test_a_task_whose_jobs_all_fail_ends_and_their_messages_come_back() -> None:
    task = Task(fails(UnavailableError("busy"))).given(b"bad1", b"bad2", b"bad3", b"good")
    assert task.loop.run() == "failures"
    assert task.queue.depth() == (4, 0)
    task.clock.advance(31)
    assert len(task.queue.receive(messages_max=10, hidden_seconds=1)) == 4


def test_a_bug_ends_neither_the_task_nor_the_job_and_is_counted_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = Task(fails(AssertionError("a bug"))).given(b"bad", b"good")
    assert task.loop.run() == "failures", "it comes again and again"
    assert task.done == [b"good"]
    assert task.queue.depth() == (1, 0)
    lines = map(json.loads, map(JsonLines({}).format, caplog.records))
    assert [line["task_bugs"] for line in lines if line.get("event") == "task_bug"] == [1, 1, 1, 1]


def test_what_can_never_work_is_a_dead_letter_at_once_and_no_failure() -> None:
    task = Task(fails(InvalidError("never"))).given(b"bad1", b"bad2", b"bad3", b"bad4", b"good")
    assert task.loop.run() == "idle"
    assert task.done == [b"good"]
    assert {m.receives for m in task.queue.dead_letters(messages_max=10)} == {1}
    assert task.queue.depth() == (0, 4)


def test_a_busy_queue_counts_as_a_failure() -> None:
    class BusyQueue(MemoryJobQueue):
        def receive(
            self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
        ) -> list[Received]:
            raise UnavailableError("busy")

    clock = VirtualClock()
    worker = Worker(queue=BusyQueue(clock), handle=lambda _: None)
    assert TaskLoop(worker, clock=clock, limits=LIMITS).run() == "failures"


def test_told_to_stop_a_task_finishes_its_job_and_takes_no_other() -> None:
    stop = StopRequest()
    task = Task(lambda _: stop()).given(b"a", b"b")
    assert task.loop.run(lambda: stop.is_asked) == "stopped"
    assert task.done == [b"a"]
    assert task.queue.depth() == (1, 0)


@pytest.mark.parametrize("grace_seconds", [0.1, 60.0])
def test_a_job_that_takes_too_long_to_stop_is_given_back(grace_seconds: float) -> None:
    queue, stop, killed = MemoryJobQueue(SystemClock()), StopRequest(), threading.Event()

    def work(_: Received) -> None:
        stop()
        killed.wait(3)
        if grace_seconds < 1:
            assert queue.receive(messages_max=1, hidden_seconds=60), "it is there for others"

    worker = Worker(
        queue=queue,
        handle=work,
        visibility=Visibility(
            keep_hidden=lambda message: kept_or_given_back(
                queue,
                message,
                hidden_seconds=60,
                stop=stop,
                grace_seconds=grace_seconds,
                end_process=killed.set,
            )
        ),
    )
    queue.send([Message(b"a")])
    worker.step()
    assert killed.is_set() == (grace_seconds < 1)
    assert queue.depth() == ((1, 0) if grace_seconds < 1 else (0, 0))
