"""A server program on loopback, while a test session runs."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path

from tests.servers import leash
from tests.servers.listening import beyond_loopback

READY_SECONDS_MAX = 60
"""SeaweedFS takes 17 s after it was killed."""


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(free.getsockname()[1]) for free in held]


def program(name: str) -> str | None:
    """Return the program that was installed beside this Python."""
    path = Path(sys.executable).parent / name
    return str(path) if path.exists() else None


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    *,
    is_ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a program in a folder, from when it is ready until the block ends.

    It must not listen to other machines, on any port.
    """
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, leash.__file__, *command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + READY_SECONDS_MAX
        while not answers(is_ready):
            if process.poll() is not None or time.monotonic() > end:
                tail = log.read_text(errors="replace")[-2000:]
                raise AssertionError(f"{command[0]} does not answer. It says:\n{tail}")
            time.sleep(0.05)
        exposed = beyond_loopback(process.pid)
        assert not exposed, f"{command[0]} listens to other machines: {', '.join(exposed)}"
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(15)


def kill(folder: Path) -> None:
    """Kill the program that runs in a folder, as power that fails does."""
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def answers(is_ready: Callable[[], bool]) -> bool:
    try:
        return is_ready()
    except (OSError, HTTPException):
        return False
