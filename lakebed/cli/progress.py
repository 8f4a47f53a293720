"""Progress: on a terminal one line on stderr that is written over, in a file a line a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import Self

import click

from lakebed.backends.system.clock import SystemClock
from lakebed.costs.shown_counters import READ
from lakebed.observe.usage import Counter, watched

COLUMNS_MAX = 79
SECONDS_BETWEEN_LINES = 60.0
"""Seconds between two lines where stderr is no terminal: a log that is kept."""
SECONDS_BETWEEN_READS = 0.5
"""Seconds until bytes that were read are shown, and until they are shown again."""


class ProgressLine:
    """A line that says how far things are. silent: it is not wanted. clock: gives seconds; None:
    this machine's."""

    def __init__(self, *, silent: bool = False, clock: Callable[[], float] | None = None) -> None:
        self._on = not silent
        self._is_terminal = sys.stderr.isatty()
        self._clock = SystemClock().monotonic if clock is None else clock
        self._shown = False
        self._counted = ""
        self._read = 0.0
        self._lock = RLock()
        self._last = self._read_last = self._clock()
        self._phase = ""
        self._phase_began = self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self.clear()
            self._on = False  # whoever still counts is not heard any more

    def count(self, phase: str, done: int, total: int | None = None) -> None:
        """Say how many rows of how many went through a phase, how fast, and how long it takes."""
        now = self._clock()
        if phase != self._phase:
            self._phase, self._phase_began = phase, now
        self._counted = progress_text(phase, done, total, now - self._phase_began)
        self.show(self._with_read())

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """Say also how many bytes are read, by whatever thread, until the `with` ends: also of
        rows that a test leaves out, or that are not yet there to be counted."""
        with watched(self._note), self:
            yield self

    def _note(self, counter: Counter, amount: float) -> None:
        if counter not in READ:
            return
        with self._lock:
            self._read += amount
            if self._clock() - self._read_last >= SECONDS_BETWEEN_READS:
                self._read_last = self._clock()
                self.show(self._with_read())

    def _with_read(self) -> str:
        read = f"{self._read / (1 << 20):,.1f} MiB read" if self._read else ""
        return ", ".join(filter(None, (self._counted, read)))

    def show(self, text: str) -> None:
        """Replace the line; without a terminal write it, a minute after the last one."""
        with self._lock:
            if not self._on:
                return
            if self._is_terminal:
                click.echo(f"\r\x1b[K{text[:COLUMNS_MAX]}", nl=False, err=True)
                self._shown = True
            elif self._clock() - self._last >= SECONDS_BETWEEN_LINES:
                click.echo(text, err=True)
                self._last = self._clock()

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False


def progress_text(phase: str, done: int, total: int | None, seconds: float) -> str:
    """Return how far a phase is, in words: its share, its rate and what is left of its time."""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{phase} {done:,} rows"]
    if total is not None:
        parts = [f"{phase} {done:,} of {total:,} rows, {100 * done // max(1, total)} %"]
    if rate:
        parts.append(f"{round(rate):,} rows/s")
    if rate and total is not None:
        parts.append(f"{_duration((total - done) / rate)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes, left = divmod(max(0, round(seconds)), 60)
    return f"{minutes} min {left} s" if minutes else f"{left} s"
