"""A process of a soak: python -m tests.soak.worker ROLE LAKE BEGAN RATE ...

It says `ready`, then a line for each thing that it did. It ends by being killed, or with
`error ...` when it meets what its callers are not told to expect. BEGAN: seconds since 1970 when
the soak began. RATE: jobs a second of each sender.
"""

import sys
import time
from pathlib import Path

from lakebed.bootstrap.local import open_local
from lakebed.errors import (
    ConflictError,
    FencedError,
    TableBusyError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from tests.e2e.worker import acknowledged_in, say, work
from tests.soak.tables import Known, job_of, number_of, problems, rows_of, table_of

PAUSE_SECONDS = 0.5
RETRIABLE = (
    ConflictError,
    FencedError,
    TableBusyError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)


def due_at(job: str, began: float, rate: float) -> float:
    """Return when a job is due, in seconds since 1970."""
    return began + number_of(job) / rate


def send(lake: Lake, began: float, rate: float, acks: str, sender: str) -> None:
    """Ingest a job whenever one is due; one that may be tried again is, under its id. Goes on
    behind the last one that was acknowledged."""
    file = Path(acks, sender)
    number = file.read_text().count("\n") if file.exists() else 0
    with file.open("a") as told:
        while True:
            job = job_of(sender, number)
            due = due_at(job, began, rate)
            time.sleep(max(0.0, due - time.time()))
            try:
                lake.table(table_of(job)).ingest(rows_of(job, due), job=job)
            except RETRIABLE as error:
                say("again", error.code())
                time.sleep(PAUSE_SECONDS)
                continue
            told.write(job + "\n")
            told.flush()
            say("ack", job)
            number += 1


def keep(lake: Lake, _began: float, _rate: float) -> None:
    """Do the scheduled work, over and over."""
    while True:
        try:
            say("merged", lake.run().jobs_done)
        except RETRIABLE as error:
            say("again", error.code())
        time.sleep(PAUSE_SECONDS)


def read(lake: Lake, began: float, rate: float, acks: str) -> None:
    """Ask what is known to have an answer, over and over."""
    known = Known()
    while True:
        known.add(acknowledged_in(acks))
        due = {job: due_at(job, began, rate) for job in known.aged}
        try:
            wrong = problems(lake, known, due=due, now=time.time(), exact=False)
        except RETRIABLE as error:
            say("again", error.code())
            continue
        if wrong:
            say("error", "wrong answers", wrong[:3])
            return
        say("read", len(known.jobs))
        time.sleep(PAUSE_SECONDS)


ROLES = {"send": send, "keep": keep, "read": read}


def main(role: str, path: str, began: str, rate: str, *arguments: str) -> None:
    lake = Lake(open_local(path, create=False))
    work(
        lambda opened, *more: ROLES[role](opened, float(began), float(rate), *more),
        lake,
        arguments,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
