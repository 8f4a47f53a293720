"""The door to what processes of a lake say of themselves: their release, and that they live."""

from __future__ import annotations

from typing import Protocol

import msgspec

from lakebed.model.names import Micros

SILENT_SECONDS = 3_600
"""Seconds without a report after which a process counts as dead, where it is not known
otherwise."""
REPORT_SECONDS = 600
"""Seconds between reports of one process: several may be lost before it seems dead."""


class ProcessReport(msgspec.Struct, frozen=True, kw_only=True):
    """A process's report of itself. Releases may add fields, never take one away.

    process: a name that is used once.
    program: what it runs, and where.
    release: "": of a release that says nothing of itself.
    reads: the newest of each form that it reads, such as `entry`.
    ended: it does no more.
    """

    process: str
    program: str
    release: str
    reads: dict[str, int]
    started: Micros
    at: Micros
    ended: bool = False


_decode = msgspec.msgpack.Decoder(ProcessReport).decode
encode_process = msgspec.msgpack.Encoder().encode


def process_in(body: bytes) -> ProcessReport | None:
    """Return the report that bytes are; None: they are none."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class ProcessReports(Protocol):
    """Reports of processes. Hints: some may be missing.

    Every implementation passes `tests/contracts/upgrades/test_processes.py`.

    Both methods raise UnavailableError when the store is busy, DeniedError when it refuses us.
    """

    def report(self, report: ProcessReport) -> None:
        """Remember it, in place of an older one of this process."""
        ...

    def living(self, now: Micros) -> list[ProcessReport]:
        """Return the newest report of each process that may live, by name: of those that hold a
        lock, or have reported in the last `SILENT_SECONDS` and did not end."""
        ...
