"""Processes that help one process to merge: started when a large merge wants them, kept for the
next, ended with it.

A helper reads lines from its standard input and answers on its standard output; it ends when its
input does, at once, and the kernel closes that however the other process dies. What a helper does
not do, or not in time, is done without it.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from selectors import EVENT_READ, DefaultSelector

import msgspec

from lakebed.observe import events, usage
from lakebed.observe.usage import carried
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.merging.range_messages import (
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
    decode_answer,
    encode,
)

READY = b"ready"
START_SECONDS_MAX = 60.0
RANGE_SECONDS_MAX = 600.0
"""Most seconds that a helper may take for some row groups. One that takes longer is ended."""
FAILURES_MAX = 3
"""Most failures of helpers in the life of a process: more are not started."""
LINE_BYTES_MAX = 1 << 20


class Helper:
    """One process, asked by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own program, without a shell
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # a terminal's ^C is for the process that it helps
        )
        self._merge_task: MergeTask | None = None
        self._rest = b""

    def is_ready(self) -> bool:
        """Wait until it can merge. Whether it can."""
        return self._line(START_SECONDS_MAX) == READY

    def merged(self, merge_task: MergeTask, range_task: RangeTask) -> RangeMerged | RangeFailed:
        """Return what became of a range of a merge. Raises: OSError: the helper is lost."""
        if self._merge_task != merge_task:
            self._say(merge_task)
            self._merge_task = merge_task
        self._say(range_task)
        line = self._line(RANGE_SECONDS_MAX)
        if line is None:
            raise BrokenPipeError("a helper did not answer")
        try:
            answer = decode_answer(line)
        except msgspec.MsgspecError as error:
            raise BrokenPipeError(f"a helper says what is no answer: {error}") from None
        if isinstance(answer, RangeMerged):
            if answer.path != range_task.path:
                raise BrokenPipeError("a helper answers what was not asked")
            usage.count_all(answer.used)
        return answer

    def kill(self) -> None:
        """End the process, whatever it does: who waits for a line gets none."""
        with suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        """End the process, which gets no more ranges."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _say(self, message: MergeTask | RangeTask) -> None:
        assert self._process.stdin is not None, "it is a pipe"
        line = memoryview(encode(message) + b"\n")
        while line:
            line = line[self._process.stdin.write(line) or 0 :]

    def _line(self, seconds: float) -> bytes | None:
        """Return the next line without its end; None: there is none in time."""
        assert self._process.stdout is not None, "it is a pipe"
        while b"\n" not in self._rest and len(self._rest) < LINE_BYTES_MAX:
            with DefaultSelector() as selector:
                selector.register(self._process.stdout, EVENT_READ)
                ready = selector.select(seconds)
            more = self._process.stdout.read(LINE_BYTES_MAX) if ready else b""
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line


Help = Callable[[Helper], None]


class MergeHelpers:
    """So many processes. open_scratch: opens where they leave what they merged, when they do.

    Close it to end them. Threads of this process only wait for their answers.
    """

    def __init__(
        self, command: Sequence[str], *, open_scratch: Callable[[], ObjectStore], count: int
    ) -> None:
        self.count = count
        self._open_scratch = open_scratch
        self._command = command
        self._failures = 0
        self._idle: SimpleQueue[Helper | None] = SimpleQueue()
        for _ in range(count):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="lakebed-merge")
        self._helpers: set[Helper] = set()
        self._is_closed = False

    @functools.cached_property
    def scratch(self) -> ObjectStore:
        """Return the store in which helpers leave what they merged."""
        return self._open_scratch()

    def each(self, help_: Help, *, at_most: int | None = None) -> None:
        """Let every helper do this, or so many, once it is there and idle. Returns at once.

        help_: in a thread of the helper. When it raises OSError the helper is lost. Raises:
        RuntimeError: there is no thread to be had.
        """
        for _ in range(self.count if at_most is None else min(self.count, at_most)):
            self._threads.submit(carried(self._lent), help_)

    def close(self) -> None:
        """End all of them. Safe to call again."""
        self._is_closed = True
        for helper in list(self._helpers):
            helper.kill()
        self._threads.shutdown(cancel_futures=True)
        for helper in list(self._helpers):
            helper.end()
        self._helpers.clear()

    def _lent(self, help_: Help) -> None:
        helper, problem = self._idle.get(), "a helper failed"
        is_kept = False
        try:
            helper = helper or self._started()
            if helper is not None:
                help_(helper)
            is_kept = True
        except OSError as error:
            problem = str(error)
        finally:
            if not is_kept:
                self._lose(helper, problem)
                helper = None
            self._idle.put(helper)

    def _lose(self, helper: Helper | None, problem: str) -> None:
        self._failures += 1
        if not self._is_closed:
            events.emit(events.MERGE_HELPER_LOST, problem=problem)
        if helper is not None:
            self._helpers.discard(helper)
            helper.end()

    def _started(self) -> Helper | None:
        """Return a new helper; None: they fail here."""
        if self._failures >= FAILURES_MAX:
            return None
        helper = Helper(self._command)
        self._helpers.add(helper)
        if self._is_closed or not helper.is_ready():
            self._helpers.discard(helper)
            helper.end()
            raise BrokenPipeError("a helper did not start")
        return helper
