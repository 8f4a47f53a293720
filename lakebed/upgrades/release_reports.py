"""Reports of this process: that it lives, and of which release it is. Hints, never truth."""

from __future__ import annotations

import threading

import msgspec

from lakebed.errors import LakebedError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.releases import THIS
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.processes import REPORT_SECONDS, ProcessReport, ProcessReports


class ReleaseReports:
    """Reports one process. Safe to share among threads.

    process: its name, used once.
    program: what it runs, and where.
    """

    def __init__(
        self, processes: ProcessReports, *, clock: Clock, process: str, program: str
    ) -> None:
        self._processes = processes
        self._clock = clock
        self._process = process
        self._program = program
        self._started = clock.now()
        self._lock = threading.Lock()
        self._reported: Micros | None = None
        self._ended = False

    def report(self) -> None:
        """Say that the process lives."""
        with self._lock:
            self._send(ended=False)

    def report_if_due(self) -> None:
        """Say that the process lives, if that was not said for a while: called at each piece of
        work."""
        with self._lock:
            last = self._reported  # by the wall's clock: others stand while a function is frozen
            passed = None if last is None else self._clock.now() - last
            if passed is None or not 0 <= passed < REPORT_SECONDS * MICROS_PER_SECOND:
                self._send(ended=False)

    def end(self) -> None:
        """Say that it does no more. What never said that it lives is not worth a report."""
        with self._lock:
            if self._reported is not None and not self._ended:
                self._ended = True
                self._send(ended=True)

    def _send(self, *, ended: bool) -> None:
        now = self._clock.now()
        report = ProcessReport(
            process=self._process,
            program=self._program,
            release=THIS.name,
            reads=msgspec.structs.asdict(THIS.formats),
            started=self._started,
            at=now,
            ended=ended,
        )
        self._reported = now
        try:
            self._processes.report(report)
        except LakebedError as error:
            events.emit(events.REPORT_LOST, task=self._process, reason=error)


class ReportMeanwhile:
    """Reports a process until it is closed, whatever it works on. first_seconds: until the first
    report; who ends before that is not worth one."""

    def __init__(self, reports: ReleaseReports, *, first_seconds: float) -> None:
        self._reports = reports
        self._first_seconds = first_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="release-reports", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say that the process ends, if it was reported. Safe to call again."""
        self._closed.set()
        self._thread.join()
        self._reports.end()

    def _run(self) -> None:
        seconds = self._first_seconds
        while not self._closed.wait(seconds):
            self._reports.report()
            seconds = REPORT_SECONDS
