"""Further processes of `lakebed feed run`: one that ends is started again, and all end with the
first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

LOOK_SECONDS = 1.0
PROCESSES_MAX = 64
"""Most processes, the first one included."""
PROGRAM = """
from lakebed.bootstrap.feeds.further_processes import end_with
from lakebed.cli.main import main
end_with({process})
main()
"""


class FurtherProcesses:
    """Processes that do the same work. arguments: gives those of `lakebed`, of each of them, which
    are counted from 1. count: of processes, at first."""

    def __init__(self, arguments: Callable[[int], Sequence[str]], count: int) -> None:
        self._arguments = arguments
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._running = [self._started(arguments(number)) for number in range(1, count + 1)]
        self._looked = time.monotonic()

    def keep(self) -> None:
        """Start those again that ended, a second after the last look at the earliest: one may have
        been killed to save memory."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        self._running = [
            self._started(self._arguments(number)) if process.poll() is not None else process
            for number, process in enumerate(self._running, start=1)
        ]
        self._leaving = [process for process in self._leaving if process.poll() is None]

    def change(self, more: int) -> None:
        """Start so many more; below zero: let so many stop, as far as there are any."""
        for _ in range(min(more, PROCESSES_MAX - 1 - len(self._running))):
            self._running.append(self._started(self._arguments(len(self._running) + 1)))
        for _ in range(min(-more, len(self._running))):
            self._leaving.append(self._running.pop())
            self._leaving[-1].terminate()

    def end(self) -> int:
        """Let all stop and wait for that. Returns the gravest of their exit codes."""
        for process in self._running:
            process.terminate()
        codes = [process.wait() for process in (*self._running, *self._leaving)]
        # one that was not listening yet had nothing to commit
        return max((abs(code) for code in codes if code != -signal.SIGTERM), default=0)

    @staticmethod
    def _started(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        program = PROGRAM.format(process=os.getpid())
        return subprocess.Popen(  # noqa: S603  our own program, without a shell
            [sys.executable, "-c", program, *arguments]
        )


def end_with(process: int) -> None:
    """Let this process stop as by SIGTERM when the one that started it is gone: it may have been
    killed, and who starts it again would have ever more of these."""

    def watch() -> None:
        while os.getppid() == process:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end-with", daemon=True).start()
