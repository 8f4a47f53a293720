import threading
from itertools import chain

import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.errors import InvalidError
from lakebed.model.names import Micros
from lakebed.ports.job_queue import (
    BODY_BYTES_MAX,
    ONCE_SECONDS,
    JobQueue,
    Message,
    Received,
)
from tests.contracts.conftest import RECEIVES_MAX, Queues
from tests.contracts.fast_time import FastClock

SERVERS = ("ministack", "elasticmq", "stormy")


@pytest.fixture
def clock(queue_backend: str) -> VirtualClock | FastClock:
    return FastClock() if queue_backend in SERVERS else VirtualClock()


@pytest.fixture
def queue(queues: Queues) -> JobQueue:
    return queues().open("jobs")


def receive(queue: JobQueue, messages_max: int = 10) -> list[Received]:
    return queue.receive(messages_max=messages_max, hidden_seconds=30)


def bodies(received: list[Received]) -> list[bytes]:
    return [message.body for message in received]


def test_what_is_sent_is_received_by_anyone_and_gone_when_deleted(queues: Queues) -> None:
    queues().open("jobs").send([Message(b"a"), Message(b"\x00"), Message(b"")])
    received = receive(queues().open("jobs"))
    assert sorted(bodies(received)) == [b"", b"\x00", b"a"]
    assert {message.receives for message in received} == {1}
    for message in received:
        queues().open("jobs").delete(message.receipt)
    assert queues().open("jobs").depth() == (0, 0)


def test_an_empty_queue_gives_nothing(queue: JobQueue) -> None:
    assert receive(queue) == []
    assert queue.depth() == (0, 0)
    assert queue.dead_letters(messages_max=10) == []
    queue.send([])
    assert queue.depth() == (0, 0)


def test_queues_of_two_names_do_not_meet(queues: Queues) -> None:
    queues().open("a").send([Message(b"a")])
    assert receive(queues().open("b")) == []
    (message,) = receive(queues().open("a"))
    queues().open("b").delete(message.receipt)
    queues().open("b").extend(message.receipt, hidden_seconds=0)
    assert queues().open("a").depth() == (1, 0)
    assert receive(queues().open("a")) == []


def test_no_more_messages_come_than_were_asked_for(queue: JobQueue) -> None:
    queue.send([Message(b"%d" % n) for n in range(5)])
    got = [bodies(receive(queue, 2)) for _ in range(4)]
    assert [len(some) for some in got] == [2, 2, 1, 0]
    assert sorted(chain.from_iterable(got)) == [b"%d" % n for n in range(5)]


def test_a_message_in_hand_is_out_of_sight_until_its_time_is_up(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"a")])
    assert bodies(receive(queue)) == [b"a"]
    clock.advance(15)
    assert receive(queue) == []
    assert queue.depth() == (1, 0)
    clock.advance(25)
    (message,) = receive(queue)
    assert (message.body, message.receives) == (b"a", 2)


def test_a_message_can_be_kept_longer(queue: JobQueue, clock: VirtualClock) -> None:
    queue.send([Message(b"a")])
    (message,) = receive(queue)
    clock.advance(15)
    queue.extend(message.receipt, hidden_seconds=60)
    clock.advance(30)
    assert receive(queue) == []
    queue.delete(message.receipt)
    clock.advance(60)
    assert receive(queue) == []


def test_a_message_can_be_given_back_at_once(queue: JobQueue) -> None:
    queue.send([Message(b"a")])
    (message,) = receive(queue)
    queue.extend(message.receipt, hidden_seconds=0)
    assert bodies(receive(queue)) == [b"a"]


def test_a_receipt_that_has_run_out_does_nothing(queue: JobQueue, clock: VirtualClock) -> None:
    queue.send([Message(b"a")])
    (old,) = receive(queue)
    clock.advance(40)
    (new,) = receive(queue)
    queue.delete(old.receipt)
    queue.extend(old.receipt, hidden_seconds=0)
    assert receive(queue) == []
    assert queue.depth() == (1, 0)
    queue.delete(new.receipt)
    queue.delete(new.receipt)
    assert queue.depth() == (0, 0)


def test_many_messages_are_deleted_together_and_old_receipts_do_nothing(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"%d" % n) for n in range(13)])
    old = receive(queue, 1)
    clock.advance(40)
    found = receive(queue) + receive(queue)
    assert len(found) == 13
    queue.delete(*(m.receipt for m in [*old, *found[:12]]))
    assert queue.depth() == (1, 0)
    queue.delete()


def test_a_message_received_too_often_becomes_a_dead_letter(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"poison")])
    for receives in range(1, RECEIVES_MAX + 1):
        (message,) = receive(queue)
        assert message.receives == receives
        clock.advance(40)
    assert receive(queue) == []
    assert queue.depth() == (0, 1)


def test_dead_letters_are_kept_until_they_are_deleted(queue: JobQueue, clock: VirtualClock) -> None:
    queue.send([Message(b"a", "g"), Message(b"b", "g")])
    for _ in range(RECEIVES_MAX + 1):
        receive(queue)
        clock.advance(40)
    assert queue.depth() == (0, 2)
    dead = queue.dead_letters(messages_max=10)
    assert bodies(dead) == [b"a", b"b"]
    assert all(letter.receives >= RECEIVES_MAX for letter in dead)
    queue.delete(dead[0].receipt)
    queue.delete(dead[0].receipt)
    assert queue.depth() == (0, 1)
    queue.delete(dead[1].receipt)
    assert queue.depth() == (0, 0)
    assert queue.dead_letters(messages_max=10) == []
    assert receive(queue) == []


def test_a_dead_letter_that_was_looked_at_can_be_put_back_in_sight(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"bad", "g"), Message(b"worse", "g")])
    for message in receive(queue):
        queue.give_up(message)
    for _ in range(2):
        letters = queue.dead_letters(messages_max=10)
        assert bodies(letters) == [b"bad", b"worse"]
        for letter in letters:
            queue.extend(letter.receipt, hidden_seconds=0)
    gone = queue.dead_letters(messages_max=1)[0].receipt
    queue.delete(gone)
    queue.extend(gone, hidden_seconds=0)
    assert bodies(queue.dead_letters(messages_max=10)) == [b"worse"]


def test_queues_are_known_by_name(queues: Queues) -> None:
    opened = queues()
    opened.open("jobs").send([Message(b"a")])
    assert "jobs" in opened.names()


def test_a_message_that_can_never_work_is_a_dead_letter_at_once(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"bad", "g", sent_at=Micros(5_000_000)), Message(b"good", "g")])
    (bad,) = receive(queue, 1)
    queue.give_up(bad)
    queue.delete(bad.receipt)
    assert bodies(receive(queue)) == [b"good"]
    (letter,) = queue.dead_letters(messages_max=10)
    assert (letter.body, letter.message_group, letter.sent_at) == (b"bad", "g", 5_000_000)
    assert queue.depth() == (1, 1)
    queue.delete(letter.receipt)
    assert queue.depth() == (1, 0)


def test_two_receivers_never_hold_one_message_at_once(queues: Queues) -> None:
    queues().open("jobs").send([Message(b"%d" % n) for n in range(60)])
    got: list[bytes] = []
    view = queues()

    def work() -> None:
        queue = view.open("jobs")
        while received := receive(queue, 3):
            got.extend(bodies(received))
            for message in received:
                queue.delete(message.receipt)

    threads = [threading.Thread(target=work) for _ in range(4)]
    if type(view).__name__ == "MemoryJobQueues":
        threads = threads[:1]  # in memory a queue belongs to one thread
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(b"%d" % n for n in range(60))
    assert queues().open("jobs").depth() == (0, 0)


def test_messages_of_a_group_come_in_order_and_one_in_hand_holds_up_the_others(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"a1", "a"), Message(b"b1", "b"), Message(b"a2", "a"), Message(b"x")])
    taken = receive(queue, 1)
    while taken[-1].message_group != "a" and len(taken) < 3:  # nobody promises an order of groups
        taken += receive(queue, 1)
    first = taken.pop()
    assert (first.body, first.message_group) == (b"a1", "a")
    assert sorted(bodies(taken + receive(queue))) == [b"b1", b"x"]
    assert receive(queue) == []
    queue.delete(first.receipt)
    (second,) = receive(queue)
    assert second.body == b"a2"
    clock.advance(40)
    assert b"a2" in bodies(receive(queue))


def test_messages_of_one_group_may_come_together(queue: JobQueue) -> None:
    queue.send([Message(b"%d" % n, "a") for n in range(4)])
    assert bodies(receive(queue, 3)) == [b"0", b"1", b"2"]
    assert receive(queue) == []


def test_a_poisoned_message_does_not_stop_its_group(queue: JobQueue, clock: VirtualClock) -> None:
    queue.send([Message(b"poison", "a")])
    for _ in range(RECEIVES_MAX):
        receive(queue)
        clock.advance(40)
    queue.send([Message(b"good", "a")])
    assert bodies(received_soon(queue)) == [b"good"]
    assert bodies(queue.dead_letters(messages_max=10)) == [b"poison"]


def received_soon(queue: JobQueue) -> list[Received]:
    """What a queue gives at once, or when it has moved a message to the dead letters."""
    return receive(queue) or receive(queue)


def test_what_must_be_in_once_is_taken_once_for_five_minutes(
    queue: JobQueue, clock: VirtualClock
) -> None:
    queue.send([Message(b"tick", once="t1:12:00"), Message(b"tick", once="t1:12:00")])
    (message,) = receive(queue)
    queue.delete(message.receipt)
    queue.send([Message(b"tick", once="t1:12:00")])
    assert receive(queue) == []
    queue.send([Message(b"tick", once="t1:12:01"), Message(b"tick"), Message(b"tick")])
    assert len(receive(queue)) == 3


def test_after_five_minutes_it_may_be_in_again(
    queue: JobQueue, clock: VirtualClock, queue_backend: str
) -> None:
    if queue_backend in SERVERS:
        pytest.skip("its five minutes cannot be made shorter")
    for _ in range(2):
        queue.send([Message(b"tick", once="t1:12:00")])
        (message,) = receive(queue)
        queue.delete(message.receipt)
        clock.advance(ONCE_SECONDS + 1)


def test_a_message_tells_when_it_was_first_sent(queue: JobQueue, clock: VirtualClock) -> None:
    before = clock.now()
    queue.send([Message(b"new"), Message(b"old", sent_at=Micros(5_000_000))])
    found = {m.body: m.sent_at for m in receive(queue)}
    assert before <= found[b"new"] <= clock.now()
    assert found[b"old"] == 5_000_000


def test_a_message_that_is_too_large_is_refused_with_all_that_came_with_it(
    queue: JobQueue,
) -> None:
    with pytest.raises(InvalidError, match="too large"):
        queue.send([Message(b"a"), Message(bytes(BODY_BYTES_MAX + 1))])
    assert queue.depth() == (0, 0)
    largest = bytes(range(256)) * (BODY_BYTES_MAX // 256)
    queue.send([Message(largest), Message(largest)])
    assert bodies(receive(queue)) == [largest, largest]


def test_never_more_than_ten_come_at_once(queue: JobQueue) -> None:
    queue.send([Message(b"%d" % n) for n in range(25)])
    assert [len(receive(queue, 100)) for _ in range(4)] == [10, 10, 5, 0]
