"""Asks users' strategies, each in a process of its own: one that ends, hangs or prints harms none.

The process is told one line for each leaf, and answers each with a line. It is waited for until
some seconds after its start, also while another process holds its pipes. When the block ends, it is
ended with all that it started; only what left its session lives on.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from lakebed.backends.system import strategy_program
from lakebed.backends.system.strategy_program import Begin, LeafAnswer
from lakebed.config.settings import TableSettings
from lakebed.errors import StrategyError, did_you_mean
from lakebed.ports.compaction_strategies import Ask, LeafFile

SECONDS_MAX = 15.0
"""Most seconds for a table: the start of the process, and all its leaves. A run of the function
that plans has 120, and works on ten tables."""
ANSWER_BYTES_MAX = 4 << 20
"""Most bytes of an answer for a leaf: a leaf has at most 10,000 files; a name takes 50 bytes."""

PROGRAM = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {strategy_program.__name__} import main
main()
"""
"""Modules are found where this process finds them, in the same order."""


class StrategyProcesses:
    """Starts a process for a table when its first leaf is asked about.

    seconds_max: that it may take for the table.
    """

    def __init__(self, *, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max

    @contextmanager
    def opened(self, settings: TableSettings) -> Iterator[Ask]:
        """Yield who asks the strategy that settings name, until the block ends."""
        asked = _AskedProcess(settings, self._seconds_max)
        try:
            yield asked.ask
        finally:
            asked.end()


class _AskedProcess:
    """A strategy's process, while one table is planned."""

    def __init__(self, settings: TableSettings, seconds_max: float) -> None:
        self._settings = settings
        self._seconds_max = seconds_max
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0

    def ask(self, files: Sequence[LeafFile]) -> object:
        """Return what the strategy gives for the files of a leaf. Raises: StrategyError."""
        try:
            line = self._answer(msgspec.json.encode(files))
            answer = msgspec.json.decode(line, type=LeafAnswer)
        except TimeoutError:
            raise self._late() from None
        except (OSError, msgspec.MsgspecError):
            raise self._lost() from None
        if answer.problem:
            known = answer.known or ()
            hint = f"{did_you_mean(self._name, known, what='strategy')}; install its package here"
            more = {"known": ", ".join(known), "hint": hint} if answer.known is not None else {}
            raise StrategyError(answer.problem, strategy=self._name, **more)
        return answer.file_groups

    def end(self) -> None:
        """End the process and all that it started. Safe to call again."""
        if self._process is not None:
            if self._process.returncode is None:
                with suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    @property
    def _name(self) -> str:
        return self._settings.compaction_strategy

    def _answer(self, line: bytes) -> bytes:
        """Return the line that answers a line. Raises: StrategyError, OSError."""
        if self._process is None:
            self._process = self._started()
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None, "it is a pipe"
        assert answers is not None, "it is a pipe"
        left = memoryview(line + b"\n")
        while left:
            self._wait(asked.fileno(), selectors.EVENT_WRITE)
            left = left[os.write(asked.fileno(), left) :]
        answer = bytearray()
        while not answer.endswith(b"\n") and len(answer) < ANSWER_BYTES_MAX:
            self._wait(answers.fileno(), selectors.EVENT_READ)
            some = os.read(answers.fileno(), ANSWER_BYTES_MAX - len(answer))
            if not some:
                break
            answer += some
        if not answer.endswith(b"\n"):
            raise self._lost()
        return bytes(answer)

    def _started(self) -> subprocess.Popen[bytes]:
        paths = json.dumps([path for path in sys.path if path])
        begin = msgspec.json.encode(Begin(self._settings)).decode()
        isolated = ["-I", "-S"] if sys.flags.isolated else []
        self._deadline = time.monotonic() + self._seconds_max
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            [sys.executable, *isolated, "-c", PROGRAM, paths, begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # it is ended with all that it started
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None, "it is a pipe"
            os.set_blocking(pipe.fileno(), False)
        return process

    def _wait(self, descriptor: int, event: int) -> None:
        """Wait until a pipe takes or has bytes, or is closed. Raises: TimeoutError."""
        seconds = self._deadline - time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if seconds <= 0 or not selector.select(seconds):
                raise TimeoutError

    def _late(self) -> StrategyError:
        hint = "let it decide by what it is given, and give an answer in less time"
        return StrategyError(
            "a strategy takes too long",
            strategy=self._name,
            seconds_max=self._seconds_max,
            hint=hint,
        )

    def _lost(self) -> StrategyError:
        hint = "what it printed lies in the log"
        return StrategyError(
            "the process of a strategy ended, or said what is no answer",
            strategy=self._name,
            hint=hint,
        )
