"""A message that a clock hides for longer than is allowed is in sight: the clock was wrong."""

from pathlib import Path

import pytest

from lakebed.backends.local.job_queues import HIDDEN_SECONDS_MAX, SqliteJobQueues
from lakebed.backends.memory import VirtualClock
from lakebed.ports.job_queue import Message

DAY = 86_400


def queues(path: Path, *, ahead: float = 0.0) -> tuple[SqliteJobQueues, VirtualClock]:
    """Return queues as a process sees them whose clock is so many seconds ahead."""
    clock = VirtualClock()
    clock.advance(ahead)
    return SqliteJobQueues(path, clock, receives_max=3), clock


@pytest.mark.parametrize("message_group", ["", "table-1"])
def test_what_a_clock_200_days_ahead_took_is_handed_out_again(
    tmp_path: Path, message_group: str
) -> None:
    ours, _ = queues(tmp_path)
    ours.open("ingest").send([Message(body, message_group) for body in (b"first", b"second")])
    theirs, _ = queues(tmp_path, ahead=200 * DAY)
    (taken,) = theirs.open("ingest").receive(messages_max=1, hidden_seconds=60)
    assert taken.body == b"first"
    found = ours.open("ingest").receive(messages_max=10, hidden_seconds=60)
    assert [message.body for message in found] == [b"first", b"second"]
    theirs.open("ingest").delete(taken.receipt)
    assert ours.open("ingest").depth() == (2, 0), "a receipt that was overtaken deletes nothing"
    assert not ours.problems()


def test_what_a_clock_200_days_ahead_sent_is_handed_out(tmp_path: Path) -> None:
    theirs, _ = queues(tmp_path, ahead=200 * DAY)
    theirs.open("ingest").send([Message(b"sent")])
    ours, _ = queues(tmp_path)
    (found,) = ours.open("ingest").receive(messages_max=1, hidden_seconds=60)
    assert found.body == b"sent"


def test_a_message_is_out_of_sight_for_twelve_hours_at_most(tmp_path: Path) -> None:
    ours, clock = queues(tmp_path)
    ours.open("ingest").send([Message(b"sent")])
    (taken,) = ours.open("ingest").receive(messages_max=1, hidden_seconds=10 * DAY)
    ours.open("ingest").extend(taken.receipt, hidden_seconds=10 * DAY)
    clock.advance(HIDDEN_SECONDS_MAX - 1)
    assert not ours.open("ingest").receive(messages_max=1, hidden_seconds=60)
    clock.advance(2)
    assert len(ours.open("ingest").receive(messages_max=1, hidden_seconds=60)) == 1
