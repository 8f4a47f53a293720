"""Decides when a rejected job is tried again: when what it rests on has changed, and never
unchanged.

A merge that cannot be done keeps its files, so that no other job is made of them. It rests on the
table's schema, settings and processing, and on the leaf that it was made for. A damaged object that
was restored, an iterator that was mended and a machine with more memory are not in the table's
state, nor is a bug that was mended or a lake that was opened with more `merge_bytes`: there an
operator says so, with `lakebed compact`.
"""

from __future__ import annotations

import hashlib

from lakebed.errors import MergeMemoryError, ObjectTooLargeError, OutOfMemoryError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.table_state.state import CompactionJob, TableState

UNTOLD_SECONDS = 86_400
"""Seconds until a rejected job is tried again whose basis an earlier release did not report."""

TOO_LARGE = (f"{ObjectTooLargeError.code()}: ", f"{OutOfMemoryError.code()}: ")
"""Prefixes of the reasons that smaller leaves do away with."""
TOO_MANY = f"{MergeMemoryError.code()}: "
"""Prefix of the reason that fewer files in a job do away with."""


def basis_of(state: TableState, job: CompactionJob) -> str:
    """Return a digest of what the outcome of a job rests on, its files left out: they are its
    own. A newer release with another setting makes it another, and tries once."""
    rests_on = (state.schema(), state.settings(), state.processing(), _is_split(state, job))
    return hashlib.sha256(repr(rests_on).encode()).hexdigest()[:16]


def has_changed(state: TableState, job: CompactionJob, report: JobReport, now: Micros) -> bool:
    """Return whether a job that was rejected may end otherwise now."""
    if not report.basis:
        return now - max(job.at, min(report.at, now)) >= UNTOLD_SECONDS * MICROS_PER_SECOND
    return _rests_on_other(state, job, report)


def is_freed(state: TableState, job: CompactionJob, report: JobReport) -> bool:
    """Return whether a job is better made anew, as other jobs: its leaf was split, and each leaf
    can merge its own part of files that were too large together; or it had too many files for the
    memory of a merge, and another setting may give it fewer."""
    if report.reason.startswith(TOO_MANY):
        return _rests_on_other(state, job, report)
    return report.reason.startswith(TOO_LARGE) and _is_split(state, job)


def _rests_on_other(state: TableState, job: CompactionJob, report: JobReport) -> bool:
    return report.basis != basis_of(state, job)


def _is_split(state: TableState, job: CompactionJob) -> bool:
    partition = state.partition(job.partition)
    return partition is not None and not partition.is_leaf
