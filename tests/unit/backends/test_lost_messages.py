"""Messages that a damaged file of queues has forgotten are logged before what is left is taken."""

import shutil
from pathlib import Path

import pytest

from lakebed.backends.local.job_queues import SqliteJobQueues
from lakebed.backends.memory import VirtualClock
from lakebed.observe import events
from lakebed.ports.job_queue import Message


def as_crashed(folder: Path, count: int) -> Path:
    """Return a copy of queues with so many messages, without what SQLite wrote ahead."""
    live, crashed = folder / "live", folder / "crashed"
    live.mkdir()
    queues = SqliteJobQueues(live, VirtualClock())
    for number in range(count):
        queues.open("q").send([Message(b"%d" % number)])
    crashed.mkdir()
    for name in ("queues.sqlite", "queues.sent"):
        shutil.copy(live / name, crashed)
    queues.close()
    return crashed


def lost(caplog: pytest.LogCaptureFixture) -> list[int]:
    found = [r for r in caplog.records if getattr(r, "event", "") == events.MESSAGES_LOST]
    return [getattr(record, "facts", {})["messages"] for record in found]


def test_lost_messages_are_logged_once_before_any_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queues = SqliteJobQueues(as_crashed(tmp_path, 3), VirtualClock())
    for _ in range(2):
        assert queues.open("q").receive(messages_max=9, hidden_seconds=0) == []
        assert lost(caplog) == [3]
    assert queues.problems() == ["3 messages that were sent are lost"]
    queues.close()  # whoever opens it next is told, too
    queues.open("other").receive(messages_max=9, hidden_seconds=0)
    assert lost(caplog) == [3, 3]


def test_lost_messages_are_logged_before_others_take_their_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = SqliteJobQueues(as_crashed(tmp_path, 3), VirtualClock()).open("q")
    queue.send([Message(b"%d" % number) for number in range(3)])
    assert lost(caplog) == [3]
    assert len(queue.receive(messages_max=9, hidden_seconds=0)) == 3
    assert lost(caplog) == [3]


def test_whole_queues_log_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queues = SqliteJobQueues(tmp_path, VirtualClock())
    queue = queues.open("q")
    assert queue.receive(messages_max=9, hidden_seconds=0) == []
    queue.send([Message(b"a")])
    (taken,) = queue.receive(messages_max=9, hidden_seconds=9)
    queue.delete(taken.receipt)
    queues.close()
    assert queue.receive(messages_max=9, hidden_seconds=0) == []
    assert lost(caplog) == []
