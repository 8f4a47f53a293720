"""What holds for all tests: unit tests cannot reach the network, requests to AWS are checked before
they are sent, properties are tried alike, and a worker that crashes leaves word of where."""

from __future__ import annotations

import faulthandler
import gc
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import settings

from lakebed.observe import usage
from localcloud.programs import checked_requests
from tests.dsl.process_logging import logging_restored

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

UNIT = Path(__file__).parent / "unit"
CRASHES = pytest.StashKey[TemporaryDirectory[str]]()
"""Where workers leave the stacks of a crash: what they print is far above the summary."""

settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")


@pytest.hookimpl(trylast=True)  # pytest's own, before it, lets stacks be printed
def pytest_configure(config: pytest.Config) -> None:
    """Let a worker that crashes write its stacks into a file, and have a folder for these."""
    folder = getattr(config, "workerinput", {}).get("crashes")
    if folder is None:
        config.stash[CRASHES] = TemporaryDirectory(prefix="crashed-workers-")
        config.add_cleanup(config.stash[CRASHES].cleanup)
        return
    with ExitStack() as closing:
        faulthandler.enable(closing.enter_context(Path(folder, f"{os.getpid()}.txt").open("w")))
        closing.callback(faulthandler.disable)
        config.add_cleanup(closing.pop_all().close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Name the folder to a worker of xdist's."""
    node.workerinput["crashes"] = node.config.stash[CRASHES].name


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show where workers crashed. Nothing: they were killed."""
    if CRASHES in config.stash:
        for stacks in Path(config.stash[CRASHES].name).iterdir():
            if text := stacks.read_text():
                terminalreporter.section(f"a worker crashed: process {stacks.stem}")
                terminalreporter.write(text)


def pytest_collection() -> None:
    """Let nothing look for garbage among fourteen thousand tests: it took two fifths of the time
    in which they are collected."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _requests_are_checked() -> None:
    """As in the processes of the local cloud: whoever answers, and whatever clients say of it."""
    checked_requests.install()


@pytest.fixture(autouse=True)
def _process_as_new() -> Iterator[None]:
    """Handlers that run in this process set up its logging, and count what they use for all of it;
    no later test counts that as its own."""
    usage.collect_in(usage.PROCESS)
    usage.PROCESS.take()
    with logging_restored():
        yield


@pytest.fixture(autouse=True)
def _no_network_in_unit_tests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not request.path.is_relative_to(UNIT):
        return

    def refuse(_socket: socket.socket, address: object) -> NoReturn:
        pytest.fail(f"a unit test connects to {address!r}: use a memory backend")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
