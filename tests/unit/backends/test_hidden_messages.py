"""A message is in sight though a clock that is wrong, or a damaged index, hides it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.local.job_queues import HIDDEN_SECONDS_MAX, SqliteJobQueues
from lakebed.backends.memory import VirtualClock
from lakebed.ports.job_queue import Message

DAY = 86_400
BODIES = [b"first", b"second", b"third"]
FRAME_BYTES, HEADER_BYTES = 24 + 4096, 32
"""Sizes in the file that SQLite writes ahead: a page with its head, and the head of the file."""


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


@pytest.fixture
def blind_queues(tmp_path: Path) -> SqliteJobQueues:
    """Return queues that are open while their index is damaged where SQLite wrote ahead."""
    ours, theirs = (SqliteJobQueues(tmp_path, VirtualClock()) for _ in range(2))
    ours.open("ingest").send([Message(BODIES[0])])
    theirs.open("ingest").send([Message(body) for body in BODIES[1:]])  # ours reads pages anew
    flip_in_index(tmp_path / "queues.sqlite", "message_by_queue", b"ingest")
    return ours


def flip_in_index(path: Path, index: str, text: bytes) -> None:
    """Flip a bit of each `text` in the page of an index, as SQLite wrote it ahead."""
    with closing(sqlite3.connect(path)) as connection:
        asked = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(asked, (index,)).fetchone()
        ahead = path.with_name(path.name + "-wal")
        content = bytearray(ahead.read_bytes())
        for at in range(HEADER_BYTES, len(content), FRAME_BYTES):
            if int.from_bytes(content[at : at + 4], "big") == page:
                frame = bytes(content[at : at + FRAME_BYTES])
                flipped = bytes([text[0] ^ 1]) + text[1:]
                content[at : at + FRAME_BYTES] = frame.replace(text, flipped)
        with ahead.open("r+b") as file:
            file.write(content)


def test_messages_that_an_index_hides_are_received(blind_queues: SqliteJobQueues) -> None:
    taken = blind_queues.open("ingest").receive(messages_max=9, hidden_seconds=60)
    assert [message.body for message in taken] == BODIES


def test_dead_letters_that_an_index_hides_are_found(tmp_path: Path) -> None:
    ours, theirs = (SqliteJobQueues(tmp_path, VirtualClock()) for _ in range(2))
    ours.open("ingest").send([Message(BODIES[0])])
    (taken,) = theirs.open("ingest").receive(messages_max=1, hidden_seconds=60)
    theirs.open("ingest").give_up(taken)
    flip_in_index(tmp_path / "queues.sqlite", "message_by_queue", b"ingest")
    (dead,) = ours.open("ingest").dead_letters(messages_max=9)
    assert dead.body == BODIES[0]
    assert ours.open("ingest").depth() == (0, 1)
    assert ours.names() == ["ingest"]
