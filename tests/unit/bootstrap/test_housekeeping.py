"""Rounds of housekeeping: what is done in which order, and of what is named alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap import housekeeping as module
from lakebed.bootstrap.app import App
from lakebed.bootstrap.housekeeping import Housekeeping
from lakebed.bootstrap.local import open_local
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.errors import CorruptError, InvalidError, UnavailableError
from lakebed.model.names import TableName
from lakebed.ports.job_queue import JobQueue
from lakebed.statestore.write_snapshot import WriteSnapshot
from lakebed.tasks.failed_work import FailedWork
from tests.unit.tables.lakes import SCHEMA

TABLES = (TableName("a"), TableName("z"))
ROUND = [
    "batches",
    "split a",
    "create a",
    "split z",
    "create z",
    "merge",
    "commit",
    "give up",
    "collect a",
    "snapshot a",
    "collect z",
    "snapshot z",
]
SWEEPS = ["leftovers", "sweep a", "sweep z", "nameless", "reports"]


class Recorded:
    """A lake of two tables, whose work is written down in place of being done.

    calls: in their order.
    breaks: calls that fail, and how.
    finds: calls that find something to do, once.
    """

    def __init__(self, app: App, patch: pytest.MonkeyPatch) -> None:
        self.app = app
        self.calls: list[str] = []
        self.breaks: dict[str, Exception] = {}
        self.finds: set[str] = set()
        recorded = self

        class RecordedWorker:
            def __init__(self, *, queue: JobQueue, **_: object) -> None:
                self._name = "merge" if queue is app.queue else "batches"

            def run(self, **_: object) -> int:
                return recorded.call(self._name)

        patch.setattr(module, "Worker", RecordedWorker)
        for service, name in (
            (app.split_leaves, "split"),
            (app.create_jobs, "create"),
            (app.committer, "commit"),
            (app.collect, "collect"),
            (app.sweep, "sweep"),
        ):
            patch.setattr(service, "run", self._recorder(name))
        patch.setattr(GiveUpDeadJobs, "run", self._recorder("give up", of=True))
        patch.setattr(WriteSnapshot, "run", self._recorder("snapshot", of=True))
        patch.setattr(app.leftovers, "sweep", self._recorder("leftovers"))
        patch.setattr(app.tracker, "forget", self._recorder("reports"))
        patch.setattr(app.catalog, "sweep_nameless", lambda _: self.call("nameless"))
        for name in TABLES:
            app.catalog.create(name, SCHEMA)
        self.housekeeping = Housekeeping(app)

    def _recorder(self, name: str, *, of: bool = False) -> Callable[..., int]:
        """Return what stands for a service's method. of: it is its class's, and has a self."""

        def run(*given: object, **_: object) -> int:
            tables: Any = given[int(of) :]
            return self.call(f"{name} {tables[0].name}" if tables else name)

        return run

    def call(self, name: str) -> int:
        self.calls.append(name)
        if name in self.breaks:
            raise self.breaks[name]
        found = name in self.finds
        self.finds.discard(name)
        return int(found)

    def run(
        self,
        tables: list[TableName] | None = None,
        **named: Any,  # noqa: ANN401 - as housekeeping takes
    ) -> list[str]:
        """Run, and return what was called; failures are kept, not raised."""
        self.calls.clear()
        self.failures: list[FailedWork] = []
        self.housekeeping.run(tables, failed=self.failures.append, **named)
        return list(self.calls)

    def failed(self) -> list[tuple[str, str]]:
        return [(one.table, one.work) for one in self.failures]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    app = open_local(tmp_path / "lake", clock=VirtualClock())
    yield Recorded(app, monkeypatch)
    app.close()


def test_a_round_goes_from_batches_to_garbage_and_the_sweeps_come_last(lake: Recorded) -> None:
    assert lake.run() == [*ROUND, *SWEEPS]
    assert lake.failures == []


def test_rounds_are_repeated_until_nothing_is_due_and_then_swept_once(lake: Recorded) -> None:
    lake.finds = {"split z", "commit"}
    assert lake.run() == [*ROUND, *ROUND, *SWEEPS]


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("batching", ["batches"]),
        ("splitting", ["split a", "split z"]),
        ("compaction-creation", ["create a", "create z"]),
        ("compaction", ["merge", "give up"]),
        ("commits", ["commit"]),
        ("garbage", ["collect a", "collect z"]),
        ("snapshots", ["snapshot a", "snapshot z"]),
        ("sweep", SWEEPS),
        ("history", []),
    ],
)
def test_a_kind_of_work_may_be_done_alone(lake: Recorded, kind: str, calls: list[str]) -> None:
    assert lake.run(kinds=[kind]) == calls


def test_the_kinds_of_one_run_are_not_those_of_the_next(lake: Recorded) -> None:
    assert lake.run(kinds=["commits"]) == ["commit"]
    assert lake.run() == [*ROUND, *SWEEPS]


def test_an_unknown_kind_is_refused_before_anything_is_done(lake: Recorded) -> None:
    with pytest.raises(InvalidError, match=r"kind=sweeps\): did you mean 'sweep'"):
        lake.run(kinds=["commits", "sweeps"])
    assert lake.calls == []


def test_of_a_named_table_nothing_is_swept_that_belongs_to_no_table(lake: Recorded) -> None:
    calls = lake.run([TableName("z")])
    assert calls == [one for one in [*ROUND, *SWEEPS[:3]] if not one.endswith(" a")]


def test_everything_leaves_submitted_files_where_they_are(lake: Recorded) -> None:
    assert lake.run(everything=True) == [*ROUND[1:], *SWEEPS]


def test_what_is_stopped_leaves_the_sweeps_to_the_next_run(lake: Recorded) -> None:
    assert lake.run(should_stop=lambda: True) == []
    lake.finds = {"commit"}
    assert lake.run(should_stop=lambda: "commit" in lake.calls) == ROUND


@pytest.mark.parametrize("broken", [one for one in [*ROUND, *SWEEPS] if one.endswith(" a")])
def test_what_fails_on_a_table_keeps_nothing_else_from_being_done(
    lake: Recorded, broken: str
) -> None:
    lake.breaks[broken] = CorruptError("a file has no footer")
    assert lake.run() == [*ROUND, *SWEEPS]
    assert [table for table, _ in lake.failed()] == ["a"]


@pytest.mark.parametrize(
    ("broken", "work"),
    [
        ("batches", "taking-in"),
        ("merge", "compaction"),
        ("commit", "commits"),
        ("give up", "dead-letters"),
        ("leftovers", "leftovers"),
        ("nameless", "nameless-logs"),
        ("reports", "reports"),
    ],
)
def test_what_fails_for_all_tables_keeps_nothing_else_from_being_done(
    lake: Recorded, broken: str, work: str
) -> None:
    lake.breaks[broken] = UnavailableError("a queue is busy")
    assert lake.run() == [*ROUND, *SWEEPS]
    assert lake.failed() == [("(all)", work)]


def test_a_named_table_forgets_its_own_failures_and_those_of_all_and_no_others(
    lake: Recorded,
) -> None:
    waiting = ["split a", "split z", "leftovers"]
    lake.breaks = dict.fromkeys(waiting, CorruptError("a file has no footer"))
    assert [one for one in lake.run() if one in waiting] == waiting
    assert [one for one in lake.run() if one in waiting] == [], "they wait for their next try"
    again = lake.run([TableName("z")])
    assert [one for one in again if one in waiting] == ["split z", "leftovers"]
    lake.breaks.clear()
    assert [one for one in lake.run([TableName("z")]) if one in waiting] == ["split z", "leftovers"]
    assert [one for one in lake.run() if one in waiting] == ["split z", "leftovers"]
    assert lake.failed() == [("a", "splitting")], "what waits is still reported"
