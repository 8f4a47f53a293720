"""Who waits for a database learns which process holds it; one that is gone is never named."""

import logging
import os
import platform
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from lakebed.errors import UnavailableError
from lakebed.observe import events
from lakebed.statestore.answers import Retry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.table_state import database_lock, layout
from lakebed.statestore.table_state.database_lock import (
    LockHolder,
    _command,
    begin_writing,
    execute_alone,
    lock_holder,
)
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE held(one)")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_lock, "NOTICE_SECONDS", 0.01)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(open_cache(tmp_path / "cache.sqlite")):
        return tmp_path / "cache.sqlite"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process, in the midst of a transaction on the database."""
    program = [sys.executable, "-c", HOLDER, str(path), "a-key-of-a-user"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_the_error_names_the_process_that_writes(
    path: Path, holder: subprocess.Popen[bytes]
) -> None:
    with closing(open_cache(path)) as connection, pytest.raises(UnavailableError) as error:
        begin_writing(connection, seconds_max=0.05)
    facts = error.value.facts
    started = datetime.fromisoformat(facts.pop("started"))
    assert started.tzinfo is not None
    assert facts == {
        "path": path,
        "process": holder.pid,
        "host": platform.node(),
        "command": Path(sys.executable).name,
        "waited_seconds": 0.05,
    }
    assert f"end process {holder.pid}" in str(error.value)


def test_who_waits_is_told_of_the_holder_and_goes_on_when_it_is_done(
    path: Path, holder: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    class Ending(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            holder.kill()

    logger, ending = logging.getLogger("lakebed"), Ending()
    logger.addHandler(ending)
    try:
        with closing(open_cache(path)) as connection:
            begin_writing(connection, seconds_max=60.0)
            assert connection.in_transaction
            connection.rollback()
    finally:
        logger.removeHandler(ending)
    (told,) = [r for r in caplog.records if getattr(r, "event", "") == events.LOCK_AWAITED]
    assert told.levelno == logging.WARNING
    assert told.facts["process"] == holder.pid  # type: ignore[attr-defined]  # of our events
    assert "a-key-of-a-user" not in told.getMessage()


@pytest.mark.parametrize("ends", [True, False])
def test_one_statement_waits_and_tells_as_a_transaction_does(
    path: Path, holder: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture, ends: bool
) -> None:
    class Ending(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if ends:
                holder.kill()

    logger, ending = logging.getLogger("lakebed"), Ending()
    logger.addHandler(ending)
    statement = "UPDATE head SET floor = ?"
    try:
        with closing(open_cache(path)) as connection:
            if ends:
                assert execute_alone(connection, statement, (7,), seconds_max=60.0).rowcount == 1
                assert connection.execute("SELECT floor FROM head").fetchone() == (7,)
            else:
                with pytest.raises(UnavailableError) as error:
                    execute_alone(connection, statement, (7,), seconds_max=0.05)
                assert error.value.facts["process"] == holder.pid
            assert not connection.in_transaction
    finally:
        logger.removeHandler(ending)
    (told,) = [r for r in caplog.records if getattr(r, "event", "") == events.LOCK_AWAITED]
    assert told.facts["process"] == holder.pid  # type: ignore[attr-defined]  # of our events


def test_a_process_that_was_killed_holds_nothing(
    path: Path, holder: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    assert lock_holder(path).process == holder.pid
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert lock_holder(path) == LockHolder()
    with closing(open_cache(path)) as connection:
        begin_writing(connection, seconds_max=60.0)
        connection.rollback()
    assert not caplog.records


def test_a_reader_is_no_holder(path: Path) -> None:
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM head").fetchall()
        assert lock_holder(path) == LockHolder()


def test_the_own_process_is_told_apart(path: Path) -> None:
    with closing(open_cache(path)) as mine, closing(open_cache(path)) as other:
        mine.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="this process itself") as error:
            begin_writing(other, seconds_max=0.02)
        assert error.value.facts["process"] == os.getpid()


def test_an_unknown_holder_is_not_guessed(
    path: Path, holder: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/a-program-that-embeds-python")
    with closing(open_cache(path)) as connection, pytest.raises(UnavailableError) as error:
        begin_writing(connection, seconds_max=0.02)
    assert error.value.facts == {"path": path, "waited_seconds": 0.02}


def test_a_state_is_opened_and_read_while_another_process_writes(
    path: Path, holder: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "BUSY_SECONDS", 0.02)
    with closing(open_cache(path)) as connection:
        state = TableState(connection)
        with state.reading():
            assert state.head().number == 0


def test_a_commit_names_who_holds_the_state(
    path: Path, holder: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.statestore.table_state.proven_state.BUSY_SECONDS", 0.02)
    story = TableStory()
    head = story.another_head(state=TableState(open_cache(path)))
    head._retry = Retry(seconds_max=0.0)
    with pytest.raises(UnavailableError) as error:
        story.when_committed(AddFiles(()), head=head)
    assert error.value.facts["process"] == holder.pid
    head.close()


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("/usr/bin/python3 /opt/venv/bin/lakebed ingest trips key-1", "lakebed ingest"),
        ("/opt/venv/bin/lakebed bulk-import trips", "lakebed bulk-import"),
        ("python3 /opt/venv/bin/lakebed --lake x run", "lakebed"),
        ("/opt/venv/bin/lakebed", "lakebed"),
        ("sqlite3 lake/cache/t.sqlite", "sqlite3"),
        ("", None),
    ],
)
def test_of_a_command_only_its_name_is_told(words: str, command: str | None) -> None:
    assert _command(words.split()) == command
