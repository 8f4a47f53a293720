"""What holds for all tests: unit tests cannot reach the network, properties are tried alike."""

import socket
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

UNIT = Path(__file__).parent / "unit"

settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")


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
