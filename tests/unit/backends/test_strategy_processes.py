"""Processes of users' strategies: who asks them gets an answer, or an error in bounded time."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.system.strategy_processes import ANSWER_BYTES_MAX, StrategyProcesses
from lakebed.config.packages import STRATEGIES
from lakebed.config.settings import TableSettings
from lakebed.errors import StrategyError
from lakebed.ports.compaction_strategies import LeafFile
from tests.unit.packages_of_tests import Install, installing

LEAVES_ITS_SESSION = """
import os, time

held = os.open(os.environ["LAKEBED_TEST_FIFO"], os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    os.write(held, b"%d" % os.getpid())
    time.sleep(60)
os._exit(0)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    return installing(tmp_path, monkeypatch)


@pytest.mark.parametrize("files", [1, 5_000], ids=["answer", "question"])
def test_nobody_waits_for_a_child_that_left_its_session_and_holds_the_pipes(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    install("leaves", LEAVES_ITS_SESSION, {STRATEGIES: {"leaves": "leaves"}})
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setenv("LAKEBED_TEST_FIFO", str(fifo))
    read_end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    asked = [LeafFile(name="00" * 12, rows=1, bytes=1, seconds=1)] * files
    settings = TableSettings(compaction_strategy="leaves")
    child, seconds_max = b"", 0.5
    try:
        while not child:  # until there is one
            seconds_max *= 4
            processes = StrategyProcesses(seconds_max=seconds_max)
            with processes.opened(settings) as ask, pytest.raises(StrategyError, match="too long"):
                ask(asked)
            with suppress(BlockingIOError):
                child = os.read(read_end, 20)
        with pytest.raises(BlockingIOError):  # the child has it open, so it lives
            os.read(read_end, 1)
    finally:
        os.close(read_end)
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(child), signal.SIGKILL)


@pytest.mark.parametrize("more", [b"", b"x"], ids=["as long as may be", "too long"])
def test_an_answer_is_read_in_parts_and_up_to_a_limit(
    install: Install, tmp_path: Path, more: bytes
) -> None:
    text = "def long(files, settings):\n    return [['x' * %d]]\n"
    around = len(b'{"file_groups":[[""]]}\n')
    install("long", text % (ANSWER_BYTES_MAX - around + len(more)), {STRATEGIES: {"long": "long"}})
    settings = TableSettings(compaction_strategy="long")
    with StrategyProcesses(seconds_max=60.0).opened(settings) as ask:
        if more:
            with pytest.raises(StrategyError, match="said what is no answer"):
                ask([])
        else:
            assert ask([]) == [["x" * (ANSWER_BYTES_MAX - around)]]
