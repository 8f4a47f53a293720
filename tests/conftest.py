"""What holds for all tests: unit tests cannot reach the network, requests to AWS are checked before
they are sent, properties are tried alike."""

import gc
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from lakebed.observe import usage
from localcloud.programs import checked_requests
from tests.dsl.process_logging import logging_restored

UNIT = Path(__file__).parent / "unit"

settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")


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
