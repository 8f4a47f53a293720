"""Messages that a damaged file of queues has forgotten are logged before what is left is taken."""

import os
import shutil
from pathlib import Path
from zlib import crc32

import pytest

from lakebed.backends.local.job_queues import SentMark, SqliteJobQueues
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


def test_two_processes_that_send_at_once_leave_no_mark_that_neither_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is held up between opening the file and writing the 6; the other writes a 10."""
    one, other = SentMark(tmp_path / "queues.sent"), SentMark(tmp_path / "queues.sent")
    opened = os.open

    def held_up(path: Path, flags: int, mode: int) -> int:
        file = opened(path, flags, mode)
        monkeypatch.undo()
        other.remember(10)
        return file

    monkeypatch.setattr(os, "open", held_up)
    one.remember(6)
    assert one.last() == 6
    other.remember(10)
    assert one.last() == 10


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"60", 60),  # of an older release
        (b"", 0),
        (b"6\xb2", 0),
        (b"9" * 30, 0),
        (b"0000000000000000060", 0),
        (b"0000000000000000060 01234567", 0),
        (b"6100000000000000060 " + b"%08x" % crc32(b"0000000000000000060"), 0),
        (b"0000000000000000060 " + b"%08x" % crc32(b"0000000000000000060"), 60),
    ],
)
def test_a_mark_that_is_a_mix_of_two_is_none(tmp_path: Path, text: bytes, number: int) -> None:
    (tmp_path / "queues.sent").write_bytes(text)
    assert SentMark(tmp_path / "queues.sent").last() == number


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
