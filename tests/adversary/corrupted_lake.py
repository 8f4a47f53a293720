"""A small lake with files of every kind, and all that is asked of a damaged copy of it."""

from __future__ import annotations

import random
import shutil
import sqlite3
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import zstandard

from lakebed.bootstrap.local import open_local
from lakebed.errors import LakebedError
from lakebed.lake import Lake
from lakebed.model.schema import schema_of
from lakebed.ports.job_queue import Message
from lakebed.sorted_files.format.arrow_schema import arrow_schema

SCHEMA = schema_of(row_keys={"id": "string"}, values={"n": "int64", "note": "string?"})
RAW_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    pa.ArrowException,
    sqlite3.Error,
    zstandard.ZstdError,
)
"""What no damaged file may raise: callers are told by errors of ours."""
QUEUE = "planted"
MESSAGES_MAX = 10


class Answers(msgspec.Struct, frozen=True):
    """outcome: "found", "mended", "harmless", or what went wrong: "silent", "raw"."""

    outcome: str
    told: str = ""


class WrongAnswerError(Exception):
    """An answer that is not the model's, and that nothing was told of."""


def kind_of(file: str) -> str:
    """Return what kind of file a path inside a lake is; "": none that is damaged."""
    folder, _, name = file.rpartition("/")
    if name.endswith(".lock") or (name.endswith("-shm") and not folder):
        return ""
    for suffix in ("-wal", "-shm"):
        if name.endswith(suffix):
            kind = kind_of(file.removesuffix(suffix))
            return kind and f"{kind}{suffix}"
    if file == "lakebed.json":
        return "mark"
    if name == "tables.sqlite":
        return "registry"
    if folder.startswith("objects/"):
        return "snapshot" if "/snapshots" in folder else "rows" if "/files" in folder else "object"
    return {"logs": "log", "cache": "state", "queues": name.removesuffix(".sqlite")}.get(folder, "")


def rows(seed: int, count: int) -> pa.Table:
    """Return rows of the table, the same for the same seed."""
    rng = random.Random(seed)
    columns = {
        "id": [f"{rng.randrange(10**6):06d}" for _ in range(count)],
        "n": list(range(count)),
        "note": [rng.choice([None, "x" * rng.randrange(9)]) for _ in range(count)],
    }
    return pa.table(columns, schema=arrow_schema(SCHEMA))


class Whole:
    """A lake as it was closed, and as a crash would leave it; and what its answers are."""

    def __init__(self, folder: Path) -> None:
        self.closed, self.crashed = folder / "closed", folder / "crashed"
        self.rows: dict[str, list[Any]] = {}
        self.messages = [f"message {number}".encode() * 9 for number in range(4)]
        self.jobs: dict[str, list[Any]] = {}

    @classmethod
    def made(cls, folder: Path) -> Whole:
        """Make the lake."""
        whole = cls(folder)
        with Lake(open_local(whole.closed)) as lake:
            for name in ("t", "u"):
                whole._fill(lake, name)
            queue = lake._app.queues.open(QUEUE)
            queue.send([Message(body) for body in whole.messages])
            shutil.copytree(whole.closed, whole.crashed)
        return whole

    def _fill(self, lake: Lake, name: str) -> None:
        settings = {"leaf_rows_max": 250, "shared_file_rows_max": 100, "job_files_max": 4}
        table = lake.create_table(name, SCHEMA, split_points=["3", "6"], settings=settings)
        app, opened = lake._app, table._opened
        log, snapshots = app.logs.open(opened.id), app.heads.snapshots(opened.id)
        table.ingest(rows(0, 300), job="a")
        for seed in (1, 2):
            table.ingest(rows(seed, 60), job=f"b{seed}")
            with opened.head.reading() as state:
                snapshots.write(state)
        app.create_jobs.run(opened, everything=True)
        with opened.head.reading() as state:
            jobs = [job.id for job in state.jobs()]
        app.run_job.run(opened, jobs[0])
        snapshots.truncate(log)
        table.ingest(rows(3, 50), job="c")
        self.rows[name] = table.query().read_all().to_pylist()
        self.jobs[name] = [(report.job, report.event) for report in table.jobs(job="a")]

    def asked(
        self, path: Path, rng: random.Random, *, in_use: bool, hurt: Callable[[], None]
    ) -> Answers:
        """Return what came of damage to a copy of the lake. in_use: it is open then, and another
        process goes on writing."""
        told: list[str] = []
        try:
            if in_use:
                with Lake(open_local(path)) as lake:
                    self._ask(lake, told, dict.fromkeys(self.rows, 0))
                    hurt()
                    grown = self._grow(path, told)
                    self._ask(lake, told, grown)
                    self._look(lake, told)
            else:
                hurt()
                with Lake(open_local(path, create=False)) as lake:
                    self._ask(lake, told, dict.fromkeys(self.rows, 0))
                    if rng.random() < 0.5:
                        self._look(lake, told)
        except LakebedError as error:
            told.append(f"{error.code()}: {error}")
        except WrongAnswerError as error:
            try:
                with Lake(open_local(path, create=False)) as lake:
                    self._look(lake, told)
            except LakebedError as found:
                told.append(str(found))
            if not told:
                return Answers("silent", str(error))
        except RAW_ERRORS:
            return Answers("raw", traceback.format_exc()[-900:])
        if told:
            return Answers("found", "; ".join(told))
        is_mended = any(path.glob("cache/*.damaged-*"))
        return Answers("mended" if is_mended else "harmless")

    def _grow(self, path: Path, told: list[str]) -> dict[str, int]:
        """Let another writer commit more rows. Returns how many each table has more."""
        grown = dict.fromkeys(self.rows, 0)
        try:
            with Lake(open_local(path, create=False)) as other:
                for name in self.rows:
                    other.table(name).ingest(rows(9, 5), job="late")
                    grown[name] = 5
        except LakebedError as error:
            told.append(f"{error.code()}: {error}")
        return grown

    def _ask(self, lake: Lake, told: list[str], grown: dict[str, int]) -> None:
        """Ask everything; raise WrongAnswerError for an answer that is not right."""
        for name, more in grown.items():
            asked = partial(self._asked_of_table, lake, name)
            want = self.rows[name] + rows(9, 5).to_pylist()[:more]
            self._answer(told, asked, (in_order(want), self.jobs[name]))
        self._answer(told, lambda: lake.tables(online=True), sorted(self.rows))
        self._answer(told, lambda: self._received(lake, told), self.messages)

    def _asked_of_table(self, lake: Lake, name: str) -> tuple[list[Any], list[Any]]:
        """Send a request again, which is done once; return all rows, and reports of a job."""
        table = lake.table(name)
        table.ingest(rows(0, 300), job="a")
        reports = [(report.job, report.event) for report in table.jobs(job="a")]
        if not set(reports) - set(self.jobs[name]):
            reports = self.jobs[name]  # they are hints, and some may be lost
        return in_order(table.query().read_all().to_pylist()), reports

    def _received(self, lake: Lake, told: list[str]) -> list[bytes]:
        queue = lake._app.queues.open(QUEUE)
        taken = queue.receive(messages_max=MESSAGES_MAX, hidden_seconds=0)
        told += [f"dead letter {one.body!r}" for one in queue.dead_letters(messages_max=9)]
        return [bytes(one.body) for one in taken]

    def _answer(self, told: list[str], ask: Callable[[], object], want: object) -> None:
        try:
            got = ask()
        except LakebedError as error:
            told.append(f"{error.code()}: {error}")
            return
        if got != want:
            raise WrongAnswerError(f"{str(got)[:200]} instead of {str(want)[:200]}")

    def _look(self, lake: Lake, told: list[str]) -> None:
        report = lake.fsck(deep=True)
        told += [f"{one.code} {one.facts}" for one in report.findings if one.severity == "damage"]


def in_order(rows: list[Any]) -> list[Any]:
    """Return rows in one order, whatever order equal keys came in."""
    return sorted(rows, key=lambda row: (row["id"], row["n"], row["note"] or ""))
