"""A cluster of one process: this one. It does one task after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakebed.bootstrap.bulk_import import Tasks


class ThisProcess:
    """Runs the tasks of bulk imports where it is asked to."""

    tasks_at_once = 1

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def sort(self, job: bytes, works: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the answers of the first stage."""
        return (self._tasks.sort(job, work) for work in works)

    def merge(self, job: bytes, works: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the answers of the second stage."""
        return (self._tasks.merge(job, work) for work in works)
