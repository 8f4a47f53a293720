"""Keeps what the processes of a lake in a directory say of themselves, each in the file whose lock
it holds while it lives: so who lives is known at once."""

from __future__ import annotations

from pathlib import Path

from lakebed.backends.local.process_folder import ProcessFolder, notes_of_living
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.processes import ProcessReport, encode_process, process_in


class LockedProcessReports:
    """The processes with a folder in `root`. own: that of this process.

    One whose report the disk refused says nothing to others, and counts as of an older release
    there; of this process its report is known all the same.
    """

    def __init__(self, root: Path, own: ProcessFolder) -> None:
        self._root = root
        self._own = own
        self._reported: ProcessReport | None = None

    def report(self, report: ProcessReport) -> None:
        """Remember it, as long as this process has its folder."""
        self._reported = report
        self._own.write_note(encode_process(report))

    def living(self, now: Micros) -> list[ProcessReport]:
        """Return what each process that holds a lock says; of one that says nothing, that."""
        found = []
        for lock, body, changed in notes_of_living(self._root):
            at = Micros(min(now, int(changed * MICROS_PER_SECOND)))
            own = self._reported if lock.stem == self._own.path.name else None
            found.append(own or process_in(body) or _silent(lock, at))
        return sorted((one for one in found if not one.ended), key=lambda one: one.process)


def _silent(lock: Path, at: Micros) -> ProcessReport:
    """Return what is known of a process that wrote no report: its release did not."""
    process = lock.stem.partition("-")[0]
    return ProcessReport(
        process=lock.stem,
        program=f"process {process}",
        release="",
        reads={},
        started=at,
        at=at,
    )
