"""Unit tests decide from what they are given: the network is out of reach."""

import socket

import pytest


def test_a_unit_test_cannot_connect() -> None:
    with socket.socket() as door, pytest.raises(pytest.fail.Exception, match="memory backend"):
        door.connect(("127.0.0.1", 9))
