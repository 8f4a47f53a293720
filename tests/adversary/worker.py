"""A process of the random tester: python -m tests.adversary.worker ROLE LAKE STARTED AHEAD ...

It says `ready`, then a line for each thing that it did. It ends by being killed, or with
`error ...` when something happens that its callers are not told to expect. AHEAD: seconds by which
its clock lies.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakebed.bootstrap.local import open_local
from lakebed.errors import (
    ConflictError,
    FencedError,
    TableExistsError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from lakebed.model.schema import schema_of
from tests.adversary.lying_clocks import sleep_in_spite_of_lies
from tests.adversary.tables import problems, rows_of, table_of
from tests.e2e.fast_clock import FastClock
from tests.e2e.worker import acknowledged_in, say, work

PAUSE_SECONDS = 0.1
RETRIABLE = (ConflictError, FencedError, UnavailableError, UnknownOutcomeError)
SCRATCH = schema_of(row_keys={"id": "string"}, values={"n": "int64?"})


def write(lake: Lake, acks: str, writer: str, first: str) -> None:
    """Ingest job after job; one that may be tried again is tried again under its id."""
    number = int(first)
    with Path(acks, writer).open("a") as file:
        while True:
            job = f"{writer}-{number}"
            rows = rows_of(job)
            while not _tried(
                lambda job=job, rows=rows: lake.table(table_of(job)).ingest(rows, job=job)
            ):
                time.sleep(PAUSE_SECONDS)
            file.write(job + "\n")
            file.flush()
            say("ack", job, len(rows))
            number += 1
            time.sleep(PAUSE_SECONDS)


def keep(lake: Lake) -> None:
    """Do the scheduled work, over and over."""
    while True:
        if _tried(lake.run):
            say("ran")
        time.sleep(PAUSE_SECONDS)


def read(lake: Lake, acks: str) -> None:
    """Read everything, over and over, and hold it against what was acknowledged before."""
    while True:
        acknowledged = acknowledged_in(acks)
        wrong: list[str] = []
        if _tried(lambda wrong=wrong, known=acknowledged: wrong.extend(problems(lake, known))):
            say("read", len(acknowledged))
        if wrong:
            say("error", "wrong answers", wrong[:3])
            return


def alter(lake: Lake, seed: str) -> None:
    """Change fields, settings and names; make, fill, clear and drop tables of its own."""
    rng = random.Random(seed)
    changes = (
        _add_field,
        _drop_field,
        _rename_field,
        _settings,
        _online,
        _scratch,
        _clear,
        _rename,
    )
    while True:
        change = rng.choice(changes)
        if _tried(lambda change=change: change(lake, rng), TableExistsError, TableMissingError):
            say("altered", change.__name__)
        time.sleep(PAUSE_SECONDS * 3)


def _extras(lake: Lake) -> list[str]:
    return [f.name for f in lake.table("plain").schema.values if f.name.startswith("x")]


def _add_field(lake: Lake, rng: random.Random) -> None:
    lake.table("plain").add_field(f"x{rng.getrandbits(40):x}", "int64?")


def _drop_field(lake: Lake, rng: random.Random) -> None:
    for name in _extras(lake)[:1]:
        lake.table("plain").drop_field(name)


def _rename_field(lake: Lake, rng: random.Random) -> None:
    for name in _extras(lake)[:1]:
        lake.table("plain").rename_field(name, f"x{rng.getrandbits(40):x}")


def _settings(lake: Lake, rng: random.Random) -> None:
    lake.table("plain").change_settings(
        leaf_rows_max=rng.choice([2_000, 4_000, 8_000]), job_files_max=rng.choice([3, 4, 8])
    )


def _online(lake: Lake, rng: random.Random) -> None:
    lake.set_online("tally", online=rng.random() < 0.7)


def _scratch(lake: Lake, rng: random.Random) -> None:
    if "scratch" in lake.tables():
        lake.drop_table("scratch")
    else:
        lake.create_table("scratch", SCRATCH)


def _clear(lake: Lake, rng: random.Random) -> None:
    table = lake.table("scratch")
    table.ingest(pa.table({"id": [str(rng.random())], "n": [1]}))
    table.clear(split_points=rng.choice([None, (), ["3"]]))


def _rename(lake: Lake, rng: random.Random) -> None:
    lake.rename_table(*rng.choice([("scratch", "other"), ("other", "scratch")]))


def backup(lake: Lake, directory: str) -> None:
    """Copy the lake into a directory, over and over."""
    while True:
        if _tried(lambda: _back_up(lake, directory)):
            say("backed-up")
        time.sleep(PAUSE_SECONDS * 5)


def _back_up(lake: Lake, directory: str) -> None:
    failure = lake.backup(directory).failure
    if failure is not None:
        raise failure


def _tried(act: Callable[[], object], *also: type[Exception]) -> bool:
    """Do something; False: it may be tried again."""
    try:
        act()
    except VersionExpiredError:
        return False
    except (*RETRIABLE, *also) as error:
        say("again", error.code(), str(error).replace("\n", " "))
        return False
    return True


ROLES: dict[str, Callable[..., None]] = {
    "write": write,
    "keep": keep,
    "read": read,
    "alter": alter,
    "backup": backup,
}


def main(role: str, path: str, started: str, ahead: str, *arguments: str) -> None:
    sleep_in_spite_of_lies()
    clock = FastClock(float(started))
    clock.ahead_seconds = float(ahead)
    while True:
        try:
            lake = Lake(open_local(path, create=False, clock=clock))
        except UnavailableError:  # the disk is full: it makes its folder to spill to
            time.sleep(PAUSE_SECONDS)
            continue
        break
    work(ROLES[role], lake, arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
