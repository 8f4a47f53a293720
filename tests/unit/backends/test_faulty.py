"""Each fault fires, is counted, and does what its name says."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from lakebed.backends.faulty import (
    CALM,
    HARSH,
    MILD,
    Fault,
    Faults,
    FaultyJobQueues,
    FaultyObjectStore,
    FaultyTransactionLog,
)
from lakebed.errors import (
    LakebedError,
    LogConflictError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.ports.job_queue import Message
from tests.unit.backends.faulty_world import TABLE, World, busy, number


def test_without_faults_all_is_as_it_was() -> None:
    world = World()
    world.log.append(number(1), b"x")
    world.put()
    world.queue.send([Message(b"m")])
    (message,) = world.queue.receive(messages_max=1, hidden_seconds=9)
    world.queue.extend(message.receipt, hidden_seconds=9)
    world.queue.delete(message.receipt)
    assert list(world.log.read_after(number(0))) == [(1, b"x")]
    assert world.store.read("a", [(0, 4)]) == [b"body"]
    assert list(world.store.list("")) == ["a"]
    assert world.queue.depth() == (0, 0)
    assert not world.faults.fired


@pytest.mark.parametrize(
    ("fault", "error", "landed"),
    [
        (Fault.APPEND_THROTTLED, UnavailableError, False),
        (Fault.APPEND_LOST, UnknownOutcomeError, False),
        (Fault.APPEND_LATE, UnknownOutcomeError, False),
        (Fault.APPEND_UNANSWERED, UnknownOutcomeError, True),
        (Fault.APPEND_OWN_TRY, LogConflictError, True),
    ],
)
def test_faults_of_an_append(fault: Fault, error: type[LakebedError], landed: bool) -> None:
    world = World(fault)
    with pytest.raises(error):
        world.log.append(number(1), b"x")
    assert world.entries() == ([b"x"] if landed else [])
    world.faults.settle()
    assert world.entries() == ([b"x"] if landed or fault is Fault.APPEND_LATE else [])
    assert world.faults.fired[fault] == 1


def test_a_late_append_lands_only_while_its_number_is_free() -> None:
    world = World(Fault.APPEND_LATE)
    with pytest.raises(UnknownOutcomeError):
        world.log.append(number(1), b"late")
    with world.faults.none():
        world.log.append(number(1), b"first")
    world.faults.settle()
    assert world.entries() == [b"first"]


def test_an_answer_that_the_number_is_taken_can_be_lost_too() -> None:
    world = World(Fault.APPEND_UNANSWERED)
    world.logs.open(TABLE).append(number(1), b"first")
    with pytest.raises(UnknownOutcomeError):
        world.log.append(number(1), b"second")
    assert world.entries() == [b"first"]


def test_a_read_of_the_log_is_throttled_or_cut_short() -> None:
    for fault, most in ((Fault.LOG_READ_THROTTLED, 0), (Fault.LOG_READ_CUT, 3)):
        world = World(fault)
        for n in range(1, 9):
            world.logs.open(TABLE).append(number(n), b"%d" % n)
        seen = []
        with pytest.raises(UnavailableError):
            seen.extend(int(n) for n, _ in world.log.read_after(number(0)))
        assert len(seen) <= most
        assert seen == list(range(1, len(seen) + 1))
        assert world.faults.fired[fault] == 1


def test_a_truncation_is_throttled_or_done_in_part() -> None:
    for fault in (Fault.TRUNCATE_THROTTLED, Fault.TRUNCATE_PARTIAL):
        world = World(fault)
        for n in range(1, 9):
            world.logs.open(TABLE).append(number(n), b"")
        with pytest.raises(UnavailableError):
            world.log.truncate(number(5))
        assert len(list(world.logs.open(TABLE).read_after(number(4)))) == 4
        with world.faults.none():
            world.log.truncate(number(5))


def test_another_runs_before_an_append_and_not_inside_itself() -> None:
    world = World(Fault.ANOTHER_BEFORE_APPEND)
    runs = []

    def another() -> None:
        runs.append(1)
        world.log.append(number(1), b"another")

    world.faults.let_another_run = another
    with pytest.raises(LogConflictError):
        world.log.append(number(1), b"mine")
    assert runs == [1]
    assert world.entries() == [b"another"]


@pytest.mark.parametrize(
    ("fault", "error", "landed"),
    [
        (Fault.PUT_THROTTLED, UnavailableError, False),
        (Fault.PUT_LOST, UnknownOutcomeError, False),
        (Fault.PUT_LATE, UnknownOutcomeError, False),
        (Fault.PUT_UNANSWERED, UnknownOutcomeError, True),
        (Fault.PUT_OWN_TRY, ObjectExistsError, True),
    ],
)
def test_faults_of_a_put(fault: Fault, error: type[LakebedError], landed: bool) -> None:
    world = World(fault)
    with pytest.raises(error):
        world.put()
    assert world.paths() == (["a"] if landed else [])
    world.faults.settle()
    assert world.paths() == (["a"] if landed or fault is Fault.PUT_LATE else [])
    assert world.faults.fired[fault] == 1


def test_a_doubled_put_brings_a_deleted_object_back() -> None:
    world = World(Fault.PUT_TWICE)
    world.put()
    world.store.delete(["a"])
    assert world.paths() == []
    world.faults.settle()
    assert world.paths() == ["a"]


@pytest.mark.parametrize(
    ("fault", "error", "left", "at_last"),
    [
        (Fault.DELETE_THROTTLED, UnavailableError, ["a", "b"], ["a", "b"]),
        (Fault.DELETE_LATE, UnknownOutcomeError, ["a", "b"], []),
        (Fault.DELETE_UNANSWERED, UnknownOutcomeError, [], []),
    ],
)
def test_faults_of_a_delete(
    fault: Fault, error: type[LakebedError], left: list[str], at_last: list[str]
) -> None:
    world = World(fault)
    world.truly_put("a")
    world.truly_put("b")
    with pytest.raises(error):
        world.store.delete(["a", "b"])
    assert world.paths() == left
    world.faults.settle()
    assert world.paths() == at_last
    assert world.faults.fired[fault] > 0


def test_a_listing_hides_what_is_new_until_the_world_settles() -> None:
    world = World(Fault.LIST_HIDES)
    world.truly_put("a")
    assert list(world.store.list("")) == []
    assert world.store.look("a") is not None
    world.faults.settle()
    assert list(world.store.list("")) == ["a"]


def test_a_listing_shows_what_was_deleted_once_and_in_order() -> None:
    world = World(Fault.LIST_SHOWS_DELETED)
    for path in ("x/a", "x/b", "x/c", "y"):
        world.truly_put(path)
    world.store.delete(["x/b", "y", "x/b"])
    assert list(world.store.list("x/")) == ["x/a", "x/b", "x/c"]
    assert list(world.store.list("x/", below="x/b")) == ["x/a"]
    world.faults.settle()
    assert list(world.store.list("")) == ["x/a", "x/c"]


def test_reads_and_listings_are_throttled() -> None:
    world = World(Fault.READ_THROTTLED, Fault.LIST_THROTTLED)
    world.truly_put("a")
    calls: list[Callable[[], object]] = [
        lambda: world.store.read("a", [(0, 1)]),
        lambda: world.store.look("a"),
        lambda: list(world.store.list("")),
    ]
    for call in calls:
        with pytest.raises(UnavailableError):
            call()


def test_a_name_that_is_used_twice_is_noticed() -> None:
    world = World()
    world.put("a", b"one")
    with pytest.raises(ObjectExistsError):
        world.put("a", b"one")
    assert world.faults.reused_paths == set()
    world.store.delete(["a"])
    world.put("a", b"two")
    assert world.faults.reused_paths == {"a"}


@pytest.mark.parametrize(
    ("fault", "at_first", "at_last"),
    [
        (Fault.MESSAGE_LOST, [], []),
        (Fault.MESSAGE_DOUBLED, [b"m", b"m"], [b"m", b"m"]),
        (Fault.MESSAGE_LATE, [], [b"m"]),
    ],
)
def test_faults_of_a_message(fault: Fault, at_first: list[bytes], at_last: list[bytes]) -> None:
    world = World(fault)
    world.queue.send([Message(b"m")])
    assert world.messages() == at_first
    world.faults.settle()
    assert world.messages() == at_last
    assert world.faults.fired[fault] == 1


def test_a_send_is_throttled_or_unanswered() -> None:
    for fault, error, there in (
        (Fault.SEND_THROTTLED, UnavailableError, []),
        (Fault.SEND_UNANSWERED, UnknownOutcomeError, [b"m"]),
    ):
        world = World(fault)
        with pytest.raises(error):
            world.queue.send([Message(b"m")])
        assert world.messages() == there


def test_a_receive_finds_nothing_and_deletes_and_extensions_are_lost() -> None:
    world = World(Fault.RECEIVE_EMPTY, Fault.MESSAGE_DELETE_LOST, Fault.EXTEND_LOST)
    world.queues.open("jobs").send([Message(b"m")])
    assert world.queue.receive(messages_max=1, hidden_seconds=9) == []
    (message,) = world.queues.open("jobs").receive(messages_max=1, hidden_seconds=9)
    world.queue.delete(message.receipt)
    world.queue.extend(message.receipt, hidden_seconds=0)
    assert world.queue.depth() == (1, 0)
    assert world.messages() == []


def test_late_requests_hang_until_they_are_delivered() -> None:
    world = World(Fault.PUT_LATE)
    for n in range(100):
        with pytest.raises(UnknownOutcomeError):
            world.put(f"{n:02}")
    assert (world.faults.late_count, world.paths()) == (100, [])
    world.faults.deliver_late(0.3)
    assert 10 < len(world.paths()) < 60
    assert world.faults.late_count == 100 - len(world.paths())
    world.faults.settle()
    assert (world.faults.late_count, len(world.paths())) == (0, 100)


def test_one_seed_gives_one_world_and_harsh_faults_all_fire() -> None:
    def run(seed: int) -> tuple[str, list[str]]:
        world = World()
        world.faults = faults = Faults(random.Random(seed), HARSH)
        world.faults.let_another_run = lambda: None
        world.log = FaultyTransactionLog(world.logs.open(TABLE), faults)
        world.store = FaultyObjectStore(world.objects, faults)
        world.queue = FaultyJobQueues(world.queues, faults).open("jobs")
        for _ in range(200):
            for _ in busy(world):
                pass
            with suppress(LakebedError):
                world.store.look("1")
            with suppress(LakebedError):
                list(world.store.list(""))
            world.queue.extend("1/1", hidden_seconds=1)
        assert all(faults.fired[fault] for fault in Fault), faults.table()
        return faults.table(), world.paths()

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_the_table_shows_every_fault() -> None:
    world = World(Fault.PUT_LOST)
    with pytest.raises(UnknownOutcomeError):
        world.put()
    lines = world.faults.table().splitlines()
    assert len(lines) == len(Fault)
    assert [line.split() for line in lines if not line.endswith(" 0")] == [["put", "lost", "1"]]


def test_rates_are_chances_and_those_of_one_request_exclude_each_other() -> None:
    for rates in (HARSH, MILD):
        assert set(rates) == set(Fault)
        for door in ("APPEND_", "PUT_", "DELETE_", "MESSAGE_", "SEND_", "LOG_READ_", "TRUNCATE_"):
            assert sum(rate for fault, rate in rates.items() if fault.name.startswith(door)) < 0.75
    assert not CALM
    faults = Faults(random.Random(1), {Fault.PUT_LOST: 0.25, Fault.PUT_LATE: 0.5})
    drawn = [faults.choose(Fault.PUT_LOST, Fault.PUT_LATE) for _ in range(4000)]
    for fault, share in ((Fault.PUT_LOST, 0.25), (Fault.PUT_LATE, 0.5), (None, 0.25)):
        assert abs(drawn.count(fault) / 4000 - share) < 0.05
