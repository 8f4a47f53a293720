"""Asks users' strategies, each in a process of its own: one that ends, hangs or prints harms none.

The process is told one line for each leaf, and answers each with a line. It ends when the block
does, and at the latest after some seconds, with all that it started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer

import msgspec

from lakebed.backends.system import strategy_program
from lakebed.backends.system.strategy_program import Begin, LeafAnswer
from lakebed.config.settings import TableSettings
from lakebed.errors import StrategyError, did_you_mean
from lakebed.ports.compaction_strategies import Ask, LeafFile

SECONDS_MAX = 15.0
"""For a table: the start of the process, and all its leaves. A run of the function that plans has
120, and works on ten tables."""
ANSWER_BYTES_MAX = 4 << 20
"""For a leaf. A leaf has at most 10,000 files, of names that take 50 bytes."""

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
        self._timer: Timer | None = None
        self._is_late = False

    def ask(self, files: Sequence[LeafFile]) -> object:
        """Return what the strategy gives for the files of a leaf. Raises: StrategyError."""
        try:
            line = self._answer(msgspec.json.encode(files))
            answer = msgspec.json.decode(line, type=LeafAnswer)
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
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            self._kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    @property
    def _name(self) -> str:
        return self._settings.compaction_strategy

    def _answer(self, line: bytes) -> bytes:
        if self._process is None:
            self._process = self._started()
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None, "it is a pipe"
        assert answers is not None, "it is a pipe"
        asked.write(line + b"\n")
        asked.flush()
        return answers.readline(ANSWER_BYTES_MAX)

    def _started(self) -> subprocess.Popen[bytes]:
        paths = json.dumps([path for path in sys.path if path])
        begin = msgspec.json.encode(Begin(self._settings)).decode()
        isolated = ["-I", "-S"] if sys.flags.isolated else []
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            [sys.executable, *isolated, "-c", PROGRAM, paths, begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # it is ended with all that it started
        )
        self._timer = Timer(self._seconds_max, self._expire)
        self._timer.daemon = True
        self._timer.start()
        return process

    def _expire(self) -> None:
        self._is_late = True
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _lost(self) -> StrategyError:
        if self._is_late:
            hint = "let it decide by what it is given, and give an answer in less time"
            return StrategyError(
                "a strategy takes too long",
                strategy=self._name,
                seconds_max=self._seconds_max,
                hint=hint,
            )
        hint = "what it printed lies in the log"
        return StrategyError(
            "the process of a strategy ended, or said what is no answer",
            strategy=self._name,
            hint=hint,
        )
