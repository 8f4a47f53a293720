"""Emulators and other servers of tests take connections from this machine only."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.backends.system.clock import SystemClock
from localcloud.services.emulator import Emulator
from tests.servers.listening import beyond_loopback, listening
from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells by /proc")
needs_ipv6 = pytest.mark.skipif(
    not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6"
)

LISTENER = """
import pathlib, socket, subprocess, sys, time
host, port, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if depth:
    again = [sys.executable, "-c", pathlib.Path("program").read_text(), host, str(port), "0"]
    sys.exit(subprocess.run(again).returncode)
family = socket.AF_INET6 if ":" in host else socket.AF_INET
kept = socket.create_server((host, port), family=family)
pathlib.Path("ready").touch()
time.sleep(60)
"""


@contextmanager
def listener(folder: Path, host: str, *, depth: int = 0) -> Iterator[None]:
    """Run a program that listens, or whose child does."""
    (folder / "program").write_text(LISTENER)
    (port,) = free_ports(1)
    command = [sys.executable, "-c", LISTENER, host, str(port), str(depth)]
    with running(command, folder, is_ready=(folder / "ready").exists):
        yield


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("host", ["0.0.0.0", pytest.param("::", marks=needs_ipv6)])
def test_a_server_that_listens_to_other_machines_is_refused(
    tmp_path: Path, host: str, depth: int
) -> None:
    with (
        pytest.raises(AssertionError, match="listens to other machines"),
        listener(tmp_path, host, depth=depth),
    ):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_a_server_on_loopback_is_seen_and_taken(tmp_path: Path, host: str) -> None:
    before = listening(os.getpid())
    with listener(tmp_path, host):
        (new,) = listening(os.getpid()) - before
        assert str(new[0]) == host


def test_the_emulators_listen_on_loopback_only(ministack: S3Server, tmp_path: Path) -> None:
    """No server of this session does, and MiniStack has one port only: MQTT and SFTP are off."""
    with Emulator(tmp_path, clock=SystemClock()) as emulator:
        ports = {port for _, port in listening(os.getpid())}
        assert {emulator.port, int(ministack.url.rpartition(":")[2])} <= ports
        assert not beyond_loopback(os.getpid())
