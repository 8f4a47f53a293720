"""Checks how the tables of a lake do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.compaction.create_jobs import UNTIL_STARTED_AGAIN
from lakebed.config.functions import DISK_MIB_MIN, MIB, SNAPSHOT_COPIES, full_disk_hint
from lakebed.doctor.check import Check, Sign
from lakebed.doctor.patient import Patient, SurveyedTable
from lakebed.errors import UnavailableError
from lakebed.statestore.snapshots import LOG_ENTRIES_MAX

FILES_SHARE_MAX = 0.75
"""Share of `leaf_files_max` above which compaction is about to be too late."""
DEBT_MINUTES_MAX = 60
JOB_SECONDS_MIN = 3_600
ENTRIES_MAX = 2 * LOG_ENTRIES_MAX
"""Most entries behind the newest snapshot: one is written after half of them."""
AHEAD_SECONDS_MAX = 600.0
GARBAGE_SHARE_MAX, GARBAGE_BYTES_MIN = 0.5, 1 << 20
HELD_SHARE_MAX = 0.5
ERRORS_IN_ROW_MAX = 3
ROWS_TIMES_MAX = 2
"""Most rows of a leaf, as a multiple of `leaf_rows_max`: splits come each minute, and take the leaf
apart at once."""

_check = partial(Check, section="how it goes")


def _tables(patient: Patient) -> Iterator[SurveyedTable]:
    """Yield what is known of each table, then raise if some were not looked at in time."""
    survey = patient.lake.survey()
    yield from survey.tables
    if survey.unseen:
        raise UnavailableError("too many tables for the time", unseen=survey.unseen)


def _unreadable(patient: Patient) -> Iterator[Sign]:
    quarantined = {entry.name for entry in patient.lake.entries() if entry.quarantined}
    for name, why in patient.lake.survey().failed.items():
        if name not in quarantined:
            yield Sign(about=f"{name}: {why}")


def _quarantined(patient: Patient) -> Iterator[Sign]:
    for entry in patient.lake.entries():
        if entry.quarantined:
            yield Sign(about=entry.name)


def _offline(patient: Patient) -> Iterator[Sign]:
    for entry in patient.lake.entries():
        if not entry.online and not entry.quarantined:
            yield Sign(about=entry.name)


def _files(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        most = max((node.files for node in one.status.nodes), default=0)
        if most > one.settings.leaf_files_max * FILES_SHARE_MAX:
            of = one.settings.leaf_files_max
            yield Sign(about=f"{one.status.name}: a leaf has {most:,} of {of:,} files")


def _debt(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        nodes = one.status.nodes
        waiting = sum(node.rows for node in nodes if node.files > one.settings.job_files_max)
        if not waiting or not one.status.online:
            continue
        if not one.merged_per_second:
            yield Sign(about=f"{one.status.name}: {waiting:,} rows wait, and nothing was merged")
            continue
        minutes = waiting / one.merged_per_second / 60
        if minutes > DEBT_MINUTES_MAX:
            yield Sign(about=f"{one.status.name}: {minutes:,.0f} minutes of one worker")


def _stuck(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        limit = max(JOB_SECONDS_MIN, UNTIL_STARTED_AGAIN * one.settings.redispatch_seconds)
        for job in one.status.jobs:
            if job.age_seconds > limit:
                hours = job.age_seconds / 3_600
                yield Sign(about=f"{one.status.name}: {job.id} holds {job.files} for {hours:.1f} h")


def _rejected(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        for job in one.status.jobs:
            if job.report == "rejected":
                yield Sign(about=f"{one.status.name}: {job.id}: {job.reason}")


def _log_long(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        behind = one.status.number - max(one.status.snapshots, default=0)
        if behind > ENTRIES_MAX:
            yield Sign(about=f"{one.status.name}: {behind:,} entries behind its newest snapshot")


def _single_snapshot(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        if one.status.number > 2 * ENTRIES_MAX and len(one.status.snapshots) == 1:
            yield Sign(about=f"{one.status.name}: one, at {one.status.snapshots[0]:,}")


def _ahead(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        if one.ahead_seconds > AHEAD_SECONDS_MAX:
            yield Sign(about=f"{one.status.name}: {one.ahead_seconds:,.0f} s")


def _garbage(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        found = one.status
        limit = max(GARBAGE_BYTES_MIN, found.bytes * GARBAGE_SHARE_MAX)
        if found.garbage_due and found.garbage_bytes > limit and found.online:
            yield Sign(
                about=f"{found.name}: {found.garbage_due:,} files are due,"
                f" of {found.garbage_bytes:,} bytes"
            )


def _held(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        limit = max(GARBAGE_BYTES_MIN, one.status.bytes * HELD_SHARE_MAX)
        for holder in one.status.holders:
            if holder.bytes > limit:
                who = f"{holder.kind} {holder.name}"
                yield Sign(about=f"{one.status.name}: {who} keeps {holder.bytes:,} bytes")


def _over_disk(patient: Patient) -> Iterator[Sign]:
    functions = patient.parts().functions()
    disk_mib = max((one.disk_mib for one in functions), default=DISK_MIB_MIN)
    for one in _tables(patient):
        takes = SNAPSHOT_COPIES * one.state_bytes / MIB
        if takes > disk_mib:
            yield Sign(
                about=f"{one.status.name}: takes {takes:,.0f} MiB; {full_disk_hint(disk_mib)}"
            )


def _unsplittable(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        leaves = sum(node.unsplittable for node in one.status.nodes)
        if leaves:
            yield Sign(about=f"{one.status.name}: {leaves:,} of {one.status.leaves:,} leaves")


def _unsplit(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        limit = one.settings.leaf_rows_max * ROWS_TIMES_MAX
        for node in one.status.nodes:
            if node.rows > limit and not node.unsplittable and one.status.online:
                yield Sign(about=f"{one.status.name}: a leaf has {node.rows:,} rows")


def _gaps(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        for fed in one.status.connections:
            if fed.gaps:
                yield Sign(about=f"{one.status.name}: feed {fed.id}, {fed.gaps:,} gaps")


def _feed_errors(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        for fed in one.status.connections:
            if fed.errors_in_row >= ERRORS_IN_ROW_MAX:
                count = fed.errors_in_row
                yield Sign(about=f"{one.status.name}: feed {fed.id}, {count:,} records in a row")


def _quarantine_grows(patient: Patient) -> Iterator[Sign]:
    for one in _tables(patient):
        for fed in one.status.connections:
            if fed.quarantined * 10 > fed.read:
                share = f"{fed.quarantined:,} of {fed.read:,} records"
                yield Sign(about=f"{one.status.name}: feed {fed.id}, {share}")


TABLE_CHECKS = (
    _check(
        id="table-unreadable",
        found_when="a table cannot be read",
        cure="`lakebed fsck TABLE` says what is damaged and what is safe",
        look=_unreadable,
    ),
    _check(
        id="table-quarantined",
        found_when="a table is in quarantine: nothing is done on it or with it",
        cure="mend it, then `lakebed table online TABLE`, or drop it",
        look=_quarantined,
    ),
    _check(
        id="table-offline",
        found_when="a table is offline: it is not split, merged or collected",
        cure="`lakebed table online TABLE` when the reason has gone",
        look=_offline,
    ),
    _check(
        id="leaf-files-high",
        found_when="a leaf has three quarters of the files above which ingest is refused",
        cure="`lakebed tasks start compaction`; `lakebed explain files-per-leaf`",
        look=_files,
    ),
    _check(
        id="compaction-debt",
        found_when="what waits to be merged takes a worker more than an hour at today's rate",
        cure="`lakebed tasks start compaction --count N`; raise `compaction_tasks_max`",
        look=_debt,
    ),
    _check(
        id="compaction-stuck",
        found_when="a compaction job holds files for more than an hour, and longer than tries take",
        cure="`lakebed dead-letters list --queue compaction`; tasks that fail are in its log",
        look=_stuck,
    ),
    _check(
        id="compaction-rejected",
        found_when="a compaction job can never work as it is",
        cure="`lakebed explain compactions-rejected`",
        look=_rejected,
    ),
    _check(
        id="log-long",
        found_when="a log has grown by thousands of entries without a snapshot",
        cure="`lakebed run TABLE`; the schedule of snapshots, or its function, does not run",
        look=_log_long,
    ),
    _check(
        id="snapshot-alone",
        found_when="a long log has one snapshot only: it cannot be emptied before a second one",
        cure="`lakebed fsck TABLE --deep` proves snapshots; the next tick writes another",
        look=_single_snapshot,
    ),
    _check(
        id="log-time-ahead",
        found_when="log time is ten minutes ahead of this clock: a machine's clock was wrong",
        cure="`lakebed fsck --repair` sets log time back",
        look=_ahead,
    ),
    _check(
        id="garbage-stays",
        found_when="files without a use that are due take more than half of the table",
        cure="`lakebed run TABLE`; the schedule of garbage, or its function, does not run",
        look=_garbage,
    ),
    _check(
        id="versions-held",
        found_when="one tag, pin or follower keeps more than half as much as the table has",
        cure="drop the tag (`lakebed table untag`), or end the reader",
        look=_held,
    ),
    _check(
        id="state-over-disk",
        of="an instance",
        found_when="three times a table's state, as a snapshot takes, is above the functions' disk",
        cure="deploy with a larger `function_disk_mib`",
        look=_over_disk,
    ),
    _check(
        id="leaf-unsplittable",
        found_when="a leaf is too large and has no key to split it at",
        cure="add a row key that tells its rows apart, or raise `leaf_rows_max`",
        look=_unsplittable,
    ),
    _check(
        id="leaf-unsplit",
        found_when="a leaf has twice the rows that it may have, and is not split",
        cure="`lakebed run TABLE`; the schedule of splits, or its function, does not run",
        look=_unsplit,
    ),
    _check(
        id="feed-gaps",
        found_when="a feed's source no longer had records that were not taken",
        cure="`lakebed explain feed-gaps`",
        look=_gaps,
    ),
    _check(
        id="feed-failing",
        found_when="the last records of a feed could not be used, several in a row",
        cure="`lakebed explain feeds-failed`",
        look=_feed_errors,
    ),
    _check(
        id="feed-quarantines",
        found_when="more than a tenth of a feed's records is set aside",
        cure="`lakebed feed quarantine` shows why",
        look=_quarantine_grows,
    ),
)
