"""Checks how messages, jobs and schedules do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.doctor.check import Check, Cure, Sign
from lakebed.doctor.patient import Patient
from lakebed.model.names import MICROS_PER_SECOND

WAITING_MAX = 10_000
FAILED_SINCE_SECONDS = 3_600.0
LATE_SECONDS_MAX = 7_200
"""Most seconds that due work may be late: schedules go off each five minutes, sweeps once a day."""
TRIES_MAX = 3

_check = partial(Check, section="how it goes")


def _letters(patient: Patient) -> Iterator[Sign]:
    for queue, (_, dead) in sorted(patient.lake.loads().items()):
        if dead:
            does = f"send dead letters of {queue} again, where nothing could be done twice"
            cure = Cure(does=does, act=partial(patient.lake.redrive, queue))
            yield Sign(about=f"{queue}: {dead:,}", cure=cure)


def _damaged(patient: Patient) -> Iterator[Sign]:
    for problem in patient.lake.damaged_messages():
        yield Sign(about=problem)


def _waiting(patient: Patient) -> Iterator[Sign]:
    for queue, (waiting, _) in sorted(patient.lake.loads().items()):
        if waiting > WAITING_MAX:
            yield Sign(about=f"{queue}: {waiting:,}")


def _failed(patient: Patient) -> Iterator[Sign]:
    for table, report in patient.lake.failed_jobs(since_seconds=FAILED_SINCE_SECONDS):
        yield Sign(about=f"{table}: {report.kind} {report.job} {report.event}: {report.reason}")


def _late(patient: Patient) -> Iterator[Sign]:
    online = {entry.name for entry in patient.lake.entries() if entry.online}
    before = patient.lake.now() - LATE_SECONDS_MAX * MICROS_PER_SECOND
    for table, mark in sorted(patient.lake.marks().items()):
        for work, done in sorted(mark.handled.items()):
            if table in online and done.due < before and work not in mark.failed:
                hours = (patient.lake.now() - done.due) / MICROS_PER_SECOND / 3_600
                yield Sign(about=f"{table}: {work}, due for {hours:.1f} h")


def _failing(patient: Patient) -> Iterator[Sign]:
    for table, mark in sorted(patient.lake.marks().items()):
        for work, failed in sorted(mark.failed.items()):
            if failed.tries >= TRIES_MAX:
                yield Sign(about=f"{table}: {work}, {failed.tries} times in a row")


def _silent(patient: Patient) -> Iterator[Sign]:
    for task in patient.lake.silent_tasks():
        yield Sign(about=task)


WORK_CHECKS = (
    _check(
        id="dead-letters",
        found_when="messages were given up",
        cure="`lakebed dead-letters show` says why; mend that, then send them again, as `--fix`",
        look=_letters,
    ),
    _check(
        id="messages-damaged",
        found_when="messages of queues were lost or changed on the disk",
        cure="send again what was sent lately: a job is done once under its id; look at the disk",
        of="a directory",
        look=_damaged,
    ),
    _check(
        id="queue-long",
        found_when="more than 10,000 messages wait in a queue",
        cure="`lakebed explain queue-age`; `lakebed tasks start` starts work at once",
        look=_waiting,
    ),
    _check(
        id="jobs-failed",
        found_when="jobs failed or were rejected in the last hour",
        cure="`lakebed jobs TABLE --event failed --event rejected`",
        look=_failed,
    ),
    _check(
        id="marks-old",
        found_when="scheduled work on a table is due for more than two hours",
        cure="does its schedule run? The checks of schedules and functions say so",
        of="an instance",
        look=_late,
    ),
    _check(
        id="work-failing",
        found_when="scheduled work on a table fails again and again",
        cure="`lakebed run TABLE` shows the error; the function's log has it, too",
        of="an instance",
        look=_failing,
    ),
    _check(
        id="tasks-silent",
        found_when="a task has not ended, and was not heard of for an hour",
        cure="its log says why; one that was killed is made up for by the next",
        look=_silent,
    ),
)
