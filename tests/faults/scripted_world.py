"""The world of a fault script: a source, a table, workers that die, and doors that shut."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

from lakebed.backends.faulty.crash_plan import Crash, CrashPlan
from lakebed.backends.faulty.faults import Fault, Faults
from lakebed.backends.faulty.object_store import FaultyObjectStore
from lakebed.backends.faulty.transaction_logs import FaultyTransactionLogs
from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource
from lakebed.bootstrap.app import App
from lakebed.bootstrap.assemble import Stores, assemble
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import pipeline_from, target_of
from lakebed.bootstrap.memory import Memory
from lakebed.config.feeds import feed_file
from lakebed.errors import LakebedError
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pipeline import DISCOVER_SECONDS, Pipeline
from lakebed.feeds.worker import PASSING
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import table_name
from lakebed.model.schema import schema_of
from lakebed.statestore.table_state.feed_records import (
    connections,
    gaps_of,
    ledger_of,
    positions_of,
)
from tests.faults.script import Script, Step

SCHEMA = schema_of(
    row_keys={"_split": "string", "_position": "int64"},
    values={"_version": "int64", "id": "int64?"},
)
TEXT = """
[feed.told]
files = "never/*.log"
decoder = { format = "json" }
[connection.told]
feed = "told"
table = "told"
lineage = true
policy = "own"
[policy.own]
gap = "record"
errors_in_row_max = 1000
rotate_records = 20
rotate_idle_seconds = 1
"""
BAD_EVERY = 7
TURNS_MAX = 300
SHUT: Mapping[str, tuple[Fault, ...]] = {
    "objects": (
        Fault.PUT_THROTTLED,
        Fault.READ_THROTTLED,
        Fault.LIST_THROTTLED,
        Fault.DELETE_THROTTLED,
    ),
    "log": (Fault.APPEND_THROTTLED, Fault.LOG_READ_THROTTLED),
}
UNANSWERED: Mapping[str, Mapping[Fault, float]] = {
    "objects": {Fault.PUT_UNANSWERED: 0.3, Fault.PUT_LOST: 0.2},
    "log": {Fault.APPEND_UNANSWERED: 0.3, Fault.APPEND_LOST: 0.2},
}


class FaultStage(Protocol):
    """Where a script takes place."""

    def stores(self) -> Stores:
        """Return the lake's stores, as one process has them."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Kill(CrashPlan):
    """When a worker is killed, said while it lives."""

    def at(self, effect: int, moment: Literal["before", "after"]) -> None:
        """Kill it at an effect, counted from now on."""
        self._at, self._moment = len(self.effects) + effect, moment


class Worker:
    """A process that runs the feed's connection."""

    def __init__(self, world: ScriptedWorld, name: str) -> None:
        self.kill = Kill()
        self.is_paused = False
        stores, folder = world.stage.stores(), world.folder / f"{name}-{world.started}"
        (folder / "states").mkdir(parents=True)
        self.app = assemble(
            replace(
                stores,
                objects=FaultyObjectStore(stores.objects, world.faults, self.kill),
                logs=FaultyTransactionLogs(stores.logs, world.faults, self.kill),
            ),
            states=folder / "states",
            spill=folder,
            memory=Memory(),
        )
        _, (definition,) = definitions_in(feed_file(TEXT))
        target = target_of(self.app, definition)
        source = MemoryRecordSource(world.broker)
        self.pipeline: Pipeline[Any] = pipeline_from(
            self.app, definition, target, source, OwnsAll()
        )


class ScriptedWorld:
    """Does what a script says, and checks what must be so at its end."""

    def __init__(self, stage: FaultStage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.faults = Faults(random.Random(folder.name), {})
        self.broker = MemoryBroker()
        self.workers: dict[str, Worker] = {}
        self.started = self.happened = 0
        self._ids: dict[tuple[str, int], int] = {}
        (folder / "look" / "states").mkdir(parents=True)
        self.look: App = assemble(
            stage.stores(),
            states=folder / "look" / "states",
            spill=folder / "look",
            memory=Memory(),
        )
        self.look.catalog.create(table_name("told"), SCHEMA)

    def close(self) -> None:
        """Leave nothing open."""
        for name in list(self.workers):
            self._end(name)
        self.look.close()

    def play(self, script: Script) -> None:
        """Do all steps of a script."""
        for step in script.steps:
            getattr(self, f"_{step.word}")(step)

    def _start(self, step: Step) -> None:
        assert step.start not in self.workers, f"{step.start} lives"
        self.started += 1
        self.workers[step.start] = Worker(self, step.start)

    def _kill(self, step: Step) -> None:
        if not step.before and not step.after:
            self._end(step.kill)
            return
        moment: Literal["before", "after"] = "before" if step.before else "after"
        self.workers[step.kill].kill.at(step.before or step.after, moment)

    def _pause(self, step: Step) -> None:
        self.happened += 1
        self.workers[step.pause].is_paused = True

    def _resume(self, step: Step) -> None:
        self.workers[step.resume].is_paused = False

    def _produce(self, step: Step) -> None:
        if step.into not in self.broker.splits:
            self.broker.make(step.into)
        split = self.broker.splits[step.into]
        for _ in range(step.produce):
            id_ = len(self._ids)
            self._ids[f"{step.into}@{split.incarnation}", split.end] = id_
            value = b"bad" if id_ % BAD_EVERY == 0 else json.dumps({"id": id_}).encode()
            self.broker.write(step.into, value)

    def _turns(self, step: Step) -> None:
        for _ in range(step.turns):
            for name in sorted(self.workers):
                self._turn(name)
            self.stage.advance(1.0)

    def _cut(self, step: Step) -> None:
        assert step.cut is not None
        if step.cut == "source":
            self.broker.is_away = True
            return
        self.faults.rates = {**self.faults.rates, **dict.fromkeys(SHUT[step.cut], 1.0)}

    def _lose_answers(self, step: Step) -> None:
        assert step.lose_answers is not None
        self.faults.rates = {**self.faults.rates, **UNANSWERED[step.lose_answers]}

    def _restore(self, step: Step) -> None:
        assert step.restore is not None
        if step.restore == "source":
            self.broker.is_away = False
            return
        gone = {*SHUT[step.restore], *UNANSWERED[step.restore]}
        self.faults.rates = {f: rate for f, rate in self.faults.rates.items() if f not in gone}

    def _forget(self, step: Step) -> None:
        self.broker.forget(step.into, step.forget)

    def _make_anew(self, step: Step) -> None:
        self.broker.make(step.make_anew)

    def _wait(self, step: Step) -> None:
        self.stage.advance(step.wait)

    def _finish(self, _: Step) -> None:
        self.faults.rates, self.broker.is_away = {}, False
        assert self.workers, "someone must be there who finishes"
        for worker in self.workers.values():
            worker.is_paused = False
        self.stage.advance(DISCOVER_SECONDS)  # of source splits that came meanwhile
        for _turn in range(TURNS_MAX):
            self._turns(Step(turns=1))
            if all(worker.pipeline.is_idle for worker in self.workers.values()):
                break
        self.check()

    def _turn(self, name: str) -> None:
        worker = self.workers[name]
        if worker.is_paused:
            return
        try:
            worker.pipeline.turn()
        except Crash:
            self._end(name)
        except PASSING:  # as `FeedWorker` does: it takes the turn again
            worker.pipeline.forget()

    def _end(self, name: str) -> None:
        self.happened += 1
        with suppress(Crash, LakebedError):
            self.workers.pop(name).app.close()

    def check(self) -> None:
        """Each record is a row, or in the quarantine, or in a gap that is recorded, once; the
        ledger says so, and positions stand behind them."""
        rows = self._rows("told")
        bad = {(row["source_split"], row["position"]) for row in self._rows("told_quarantine")}
        stored = {(row["_split"], row["_position"]): row["id"] for row in rows}
        assert len(stored) == len(rows), "twice in the table"
        assert len(bad) == len(self._rows("told_quarantine")), "twice in the quarantine"
        assert not stored.keys() & bad, "in both"
        gaps, tally, ends = self._told()
        for (split, position), id_ in self._ids.items():
            if not any(g[0] == split and g[1] <= position < g[2] for g in gaps):
                is_there = (
                    (split, position) in bad
                    if id_ % BAD_EVERY == 0
                    else (stored.get((split, position)) == id_)
                )
                assert is_there or not self._is_known(split), f"lost: {split} {position}"
        assert (tally.stored, tally.quarantined) == (len(stored), len(bad))
        assert tally.read == tally.stored + tally.quarantined
        for name, there in self.broker.splits.items():
            assert ends.get(f"{name}@{there.incarnation}", 0) == there.end, f"not taken: {name}"

    def _is_known(self, split: str) -> bool:
        """Whether the source has it still: what was deleted with its topic is gone with it."""
        name, _, incarnation = split.rpartition("@")
        return str(self.broker.splits[name].incarnation) == incarnation

    def _rows(self, table: str) -> list[dict[str, Any]]:
        if table not in {entry.name for entry in self.look.catalog.list()}:
            return []
        found = self.look.catalog.find(table_name(table))
        found.head.follow()
        return [row for batch in self.look.query.run(found) for row in batch.to_pylist()]

    def _told(self) -> tuple[list[tuple[str, int, int]], Tally, dict[str, int]]:
        """Return what the table says: gaps, the ledger's sum, and positions."""
        head = self.look.catalog.find(table_name("told")).head
        head.follow()
        with head.reading() as state:
            (known,) = connections(state)
            gaps = [(g.source_split, int(g.first), int(g.end)) for g in gaps_of(state, known)]
            tally = Tally()
            for _, _, one in ledger_of(state, known):
                tally = tally.plus(one)
            found = positions_of(state, known.id)
            ends = {split: int(position.next) for split, position, _ in found}
        return gaps, tally, ends
