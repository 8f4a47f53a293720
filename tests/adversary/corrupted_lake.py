"""A small lake with files of every kind, and all that is asked of a damaged copy of it."""

from __future__ import annotations

import logging
import random
import shutil
import sqlite3
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import zstandard

from lakebed.bootstrap.housekeeping import KINDS
from lakebed.bootstrap.local import open_local
from lakebed.errors import CorruptError, LakebedError
from lakebed.lake import Lake
from lakebed.model.jobs import BATCHING
from lakebed.model.schema import schema_of
from lakebed.observe import events
from lakebed.ports.job_queue import Message
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from tests.adversary import corrupted_stores
from tests.adversary.verdicts import Answer, Kind, Verdict, verdict

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
WORKED_FIRST = 0.3
"""How often the scheduled work meets a damage before anything is asked."""
OF_ROOT = {
    "tables.sqlite": "registry",
    "leases.sqlite": "leases",
    "feeds.sqlite": "definitions",
    "feeds.made": "definitions.made",
}
"""Kinds of files that lie in no folder of a lake."""
LATE_ROWS = 5
"""That another writer commits behind a damage."""


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
    if not folder:
        return OF_ROOT.get(name, "")
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


class Warned(logging.Handler):
    """Hears what the log says of lost messages."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: list[str] = []

    def __enter__(self) -> Self:
        logging.getLogger("lakebed").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("lakebed").removeHandler(self)
        self.take()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") == events.MESSAGES_LOST:
            self._texts.append(record.getMessage())

    def take(self) -> list[str]:
        """Return what was said since the last call."""
        texts, self._texts = self._texts, []
        return texts


class Whole:
    """A lake as it was closed, and as a crash would leave it; and what its answers are."""

    def __init__(self, folder: Path) -> None:
        self.closed, self.crashed = folder / "closed", folder / "crashed"
        self.rows: dict[str, list[Any]] = {}
        self.ids: dict[str, str] = {}
        self.messages = [f"message {number}".encode() * 9 for number in range(4)]
        self.jobs: dict[str, list[Any]] = {}
        self._warned = Warned()

    @classmethod
    def made(cls, folder: Path) -> Whole:
        """Make the lake."""
        whole = cls(folder)
        with Lake(open_local(whole.closed)) as lake:
            for name in ("t", "u"):
                whole._fill(lake, name)
            queue = lake._app.queues.open(QUEUE)
            queue.send([Message(body) for body in whole.messages])
            corrupted_stores.fill(lake)
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
        self.ids[name] = opened.id
        self.rows[name] = table.query().read_all().to_pylist()
        self.jobs[name] = [(report.job, report.event) for report in table.jobs(job="a")]

    def asked(
        self, path: Path, file: str, rng: random.Random, *, in_use: bool, hurt: Callable[[], None]
    ) -> Verdict:
        """Return what came of damage to a file of a copy of the lake. in_use: it is open then, and
        another process goes on writing."""
        heard: list[Answer] = []
        with self._warned:
            self._hear_all(path, rng, heard, in_use=in_use, hurt=hurt)
        is_mended = any(path.glob("cache/*.damaged-*"))
        return verdict(heard, is_mended=is_mended, unharmed=self._unharmed(file))

    def _unharmed(self, file: str) -> list[str]:
        """Return the tables that a damage to this file does not reach: those that are not its own,
        if it is the file of one."""
        if not any(id_ in file for id_ in self.ids.values()):
            return []
        return [name for name, id_ in self.ids.items() if id_ not in file]

    def _hear_all(
        self,
        path: Path,
        rng: random.Random,
        heard: list[Answer],
        *,
        in_use: bool,
        hurt: Callable[[], None],
    ) -> None:
        none: dict[str, tuple[int, ...]] = dict.fromkeys(self.rows, (0,))
        try:
            if in_use:
                with Lake(open_local(path)) as lake:
                    self._ask(lake, heard, none)
                    hurt()
                    grown = self._grow(path, heard)
                    self._ask(lake, heard, grown)
                    self._look(lake, heard)
            else:
                hurt()
                with Lake(open_local(path, create=False)) as lake:
                    if rng.random() < WORKED_FIRST:
                        self._work(lake, heard)
                    self._ask(lake, heard, none)
                    if rng.random() < 0.5 or any(one.kind == "wrong" for one in heard):
                        self._look(lake, heard)
        except LakebedError as error:
            heard.append(_report(error))
        except RAW_ERRORS:
            heard.append(Answer("raw", traceback.format_exc()[-900:]))

    def _grow(self, path: Path, heard: list[Answer]) -> dict[str, tuple[int, ...]]:
        """Let another writer commit more rows. Returns how many each table may have more."""
        grown: dict[str, tuple[int, ...]] = dict.fromkeys(self.rows, (0,))
        try:
            with Lake(open_local(path, create=False)) as other:
                for name in self.rows:
                    grown[name] = (0, LATE_ROWS)  # what comes of an ingest that fails is open
                    other.table(name).ingest(rows(9, LATE_ROWS), job="late")
                    grown[name] = (LATE_ROWS,)
        except LakebedError as error:
            heard.append(_report(error))
        return grown

    def _ask(self, lake: Lake, heard: list[Answer], grown: dict[str, tuple[int, ...]]) -> None:
        """Ask everything, and hear each answer that is not right."""
        late = rows(9, LATE_ROWS).to_pylist()
        for name, counts in grown.items():
            asked = partial(self._asked_of_table, lake, name)
            tables = [in_order(self.rows[name] + late[:count]) for count in counts]
            wanted = [(want, self.jobs[name]) for want in tables]
            _hear(heard, asked, *wanted, about=name)
        _hear(heard, lambda: lake.tables(online=True), sorted(self.rows))
        _hear(heard, lambda: self._received(lake, heard), self.messages)
        for ask, wanted in corrupted_stores.questions(lake):
            _hear(heard, ask, *wanted)
        _hear(heard, lambda: [one.name for one in lake.status()], sorted(self.rows))

    def _asked_of_table(self, lake: Lake, name: str) -> tuple[list[Any], list[Any]]:
        """Send a request again, which is done once; return all rows, and reports of a job."""
        table = lake.table(name)
        table.ingest(rows(0, 300), job="a")
        reports = [(report.job, report.event) for report in table.jobs(job="a")]
        if not set(reports) - set(self.jobs[name]):
            reports = self.jobs[name]  # they are hints, and some may be lost
        return in_order(table.query().read_all().to_pylist()), reports

    def _work(self, lake: Lake, heard: list[Answer]) -> None:
        """Do the scheduled work, but for batches: their table is none of the lake's."""
        kinds = [kind for kind in KINDS if kind != BATCHING]
        _hear(heard, lambda: lake.run(kinds=kinds) and None, None)

    def _received(self, lake: Lake, heard: list[Answer]) -> list[bytes]:
        """Return the messages; those that are lost, or dead letters now, are reported as such."""
        queue = lake._app.queues.open(QUEUE)
        taken = queue.receive(messages_max=MESSAGES_MAX, hidden_seconds=0)
        dead = queue.dead_letters(messages_max=9)
        heard += [Answer("report", f"dead letter {one.body!r}") for one in dead]
        found = [bytes(one.body) for one in taken]
        lost = self._warned.take()
        heard += [Answer("report", text) for text in lost]
        is_rest = lost or len(found) + len(dead) == len(self.messages)
        return self.messages if is_rest and is_part(found, self.messages) else found

    def _look(self, lake: Lake, heard: list[Answer]) -> None:
        report = lake.fsck(deep=True)
        damages = [one for one in report.findings if one.severity == "damage"]
        heard += [Answer("report", f"{one.code} {one.facts}") for one in damages]


def _hear(heard: list[Answer], ask: Callable[[], object], *wanted: object, about: str = "") -> None:
    """Ask, and hear what is neither of the answers that are wanted."""
    try:
        got = ask()
    except LakebedError as error:
        heard.append(_report(error, about))
        return
    if got not in wanted:
        heard.append(Answer("wrong", f"{str(got)[:200]} instead of {str(wanted[0])[:200]}"))


def _report(error: LakebedError, about: str = "") -> Answer:
    """Return what an error says: that something is damaged, or anything else, which is wrong: that
    there is no such table, that the request can never work, that one should try again or upgrade.
    """
    kind: Kind = "report" if isinstance(error, CorruptError) else "wrong"
    return Answer(kind, f"{error.code()}: {error}", about)


def is_part(some: list[bytes], every: list[bytes]) -> bool:
    """Whether all that is in a list is in another one, in the same order."""
    left = iter(every)
    return all(one in left for one in some)


def in_order(rows: list[Any]) -> list[Any]:
    """Return rows in one order, whatever order equal keys came in."""
    return sorted(rows, key=lambda row: (row["id"], row["n"], row["note"] or ""))
