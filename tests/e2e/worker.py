"""A process of a test: python -m tests.e2e.worker ROLE LAKE STARTED ARGUMENT...

It says `ready`, then a line for each thing that it did: what it says has happened. It ends by being
killed, or with `error ...` when something happens that its callers are not told to expect.
"""

import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from lakebed.bootstrap.local import open_local
from lakebed.errors import (
    ConflictError,
    FencedError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from tests.e2e.fast_clock import FastClock
from tests.e2e.rows import jobs_of, rows_of, wrong_jobs

PAUSE_SECONDS = 0.15
CALM_JOBS = 50
"""Of one that ingests: after so many its pauses have doubled. Every check replays and reads all."""
RETRIABLE = (ConflictError, FencedError, UnavailableError, UnknownOutcomeError)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def ingest(lake: Lake, acks: str, prefix: str, first: str) -> None:
    """Ingest job after job; one that may be tried again is tried again under its id."""
    table = lake.table("t")
    with Path(acks, prefix).open("a") as file:
        for number, job in enumerate(jobs_of(prefix)):
            if number < int(first):
                continue
            rows = rows_of(job)
            while True:
                try:
                    table.ingest(rows, job=job)
                except RETRIABLE as error:
                    say("again", error.code(), job)
                    time.sleep(PAUSE_SECONDS)
                    continue
                break
            file.write(job + "\n")
            file.flush()
            say("ack", job)
            time.sleep(PAUSE_SECONDS * (1 + number / CALM_JOBS))


def keep(lake: Lake) -> None:
    """Do the scheduled work, over and over."""
    while True:
        try:
            say("ran", lake.run())
            time.sleep(PAUSE_SECONDS)
        except RETRIABLE as error:
            say("again", error.code())


def read(lake: Lake, acks: str) -> None:
    """Read everything, over and over, and look whether it is one consistent version."""
    table = lake.table("t")
    while True:
        acknowledged = acknowledged_in(acks)
        try:
            found = table.query().read_all()
        except VersionExpiredError:
            say("expired")
            continue
        wrong = wrong_jobs(found, acknowledged)
        keys = found.column("key").combine_chunks()
        in_order = pa.compute.all(pa.compute.less_equal(keys[:-1], keys[1:])).as_py()
        if wrong or in_order is False:
            say("error", "inconsistent read", wrong, in_order)
            return
        say("read", len(found), len(acknowledged))


def backup(lake: Lake, directory: str) -> None:
    """Copy the lake into a directory, over and over."""
    while True:
        done = lake.backup(directory)
        if isinstance(done.failure, RETRIABLE):
            say("again", done.failure.code())
        elif done.failure is not None:
            raise done.failure
        say("backed-up", sum(table.files_copied for table in done.tables))


def acknowledged_in(acks: str) -> list[str]:
    """Return the jobs that were acknowledged before now; a line that is being written is not."""
    lines = [text for file in Path(acks).iterdir() for text in file.read_text().splitlines(True)]
    return [line.strip() for line in lines if line.endswith("\n")]


ROLES: dict[str, Callable[..., None]] = {
    "ingest": ingest,
    "keep": keep,
    "read": read,
    "backup": backup,
}


def work(role: Callable[..., None], lake: Lake, arguments: Sequence[str]) -> None:
    """Say `ready` and act; an error that ends the process is said before."""
    say("ready")
    try:
        role(lake, *arguments)
    except BaseException as error:
        with contextlib.suppress(BrokenPipeError):
            say("error", repr(error), traceback.format_exc().replace("\n", " | "))
        raise


def main(role: str, path: str, started: str, *arguments: str) -> None:
    lake = Lake(open_local(path, create=False, clock=FastClock(float(started))))
    work(ROLES[role], lake, arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
