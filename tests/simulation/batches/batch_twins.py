"""Twins of what makes batches, each with exactly one rule broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from lakebed.backends.memory import MemoryFileBatches
from lakebed.config.settings import TableSettings
from lakebed.errors import ConflictError
from lakebed.ingest.batch_files import BatchFiles
from lakebed.ingest.run_batches import RunBatches
from lakebed.model.names import Micros, TableId
from lakebed.ports.file_batches import (
    Batch,
    BatchHead,
    BatchTarget,
    SubmitCounts,
    SubmittedFile,
)
from lakebed.statestore.open_table import OpenTable
from tests.simulation import violation as v
from tests.simulation.batches.batched_world import BatchedWorld
from tests.simulation.batches.crowded_world import CrowdedWorld

Patch = Callable[[pytest.MonkeyPatch], None]


def sends_before_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes files out of those that wait and sends their job, then writes down what it holds."""
    plan = BatchFiles._plan_all

    def first(self: BatchFiles, table: OpenTable, settings: TableSettings) -> int:
        batches = self._batches
        real = batches.plan

        def planned(table_id: TableId, batch: Batch, head: BatchHead) -> None:
            batches.remove(table_id, batch)
            self._send(table, batch, batch.target, sends=1)
            real(table_id, batch, head)

        batches.plan = planned  # type: ignore[method-assign, assignment]  # it is a twin
        return plan(self, table, settings)

    monkeypatch.setattr(BatchFiles, "_plan_all", first)


def deletes_whatever_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all files of a batch's names wait no more, also those that were put again."""

    def remove(self: MemoryFileBatches, table: TableId, batch: Batch) -> None:
        names = {file.name for file in batch.files}
        own = self._of(table)
        own.pending = {d: f for d, f in own.pending.items() if f.name not in names}

    monkeypatch.setattr(MemoryFileBatches, "remove", remove)


def knows_no_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans the next batch while one is open: all planners look at the number alone."""

    def plan(self: MemoryFileBatches, table: TableId, batch: Batch, head: BatchHead) -> None:
        own = self._of(table)
        if own.head.planned >= batch.number:
            raise ConflictError("another batch was planned")
        own.batches[batch.number] = batch
        own.head = BatchHead(batch.number, batch.number - 1, own.head.ended)

    monkeypatch.setattr(MemoryFileBatches, "plan", plan)


def looks_at_the_head_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads the head after the files that wait: another planner may have taken them between."""
    plan = BatchFiles._plan_all

    def late(self: BatchFiles, table: OpenTable, settings: TableSettings) -> int:
        batches = self._batches
        pending, real = batches.pending(table.id, files_max=100), batches.pending
        batches.pending = lambda *_, **__: pending  # type: ignore[method-assign]  # it is a twin
        try:
            return plan(self, table, settings)
        finally:
            batches.pending = real  # type: ignore[method-assign]  # it is a twin

    monkeypatch.setattr(BatchFiles, "_plan_all", late)


def forgets_what_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets files wait again that are in a batch: events that come twice are two files."""

    def submit(
        self: MemoryFileBatches, table: TableId, files: Sequence[SubmittedFile]
    ) -> SubmitCounts:
        self._of(table).pending.update({file.digest: file for file in files})
        return SubmitCounts(len(files), 0)

    monkeypatch.setattr(MemoryFileBatches, "submit", submit)


def removes_before_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is submitted again between both waits again."""

    def finish(self: BatchFiles, table: OpenTable, settings: TableSettings) -> None:
        head = self._batches.head(table.id)
        if head.planned == head.closed:
            return
        batch = self._batches.batch(table.id, head.planned)
        assert batch is not None
        self._batches.remove(table.id, batch)
        self._batches.take(table.id, batch, until=Micros(1 << 60))
        self._send(table, batch, batch.target, sends=1)
        self._batches.finish(table.id, batch.number, sent=self._clock.now())

    monkeypatch.setattr(BatchFiles, "_finish_open", finish)


def sends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never sends a job again: a message that is lost takes its files along."""
    monkeypatch.setattr(BatchFiles, "_send_again", lambda *_: None)


def closes_before_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes a batch for sent, once and for all, before it is."""
    send, send_again = BatchFiles._send, BatchFiles._send_again
    for_good = Micros(1 << 60)

    def late(
        self: BatchFiles, table: OpenTable, batch: Batch, target: BatchTarget, *, sends: int
    ) -> None:
        self._batches.finish(table.id, batch.number, sent=for_good)
        send(self, table, batch, target, sends=sends)

    def unless_for_good(
        self: BatchFiles, table: OpenTable, batch: Batch, settings: TableSettings
    ) -> None:
        if batch.sent != for_good:
            send_again(self, table, batch, settings)

    monkeypatch.setattr(BatchFiles, "_send", late)
    monkeypatch.setattr(BatchFiles, "_send_again", unless_for_good)


def leaves_out_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bad file refuses all of its batch."""
    refuse = RunBatches._refuse

    def all_of_it(
        self: RunBatches[Any],
        table: OpenTable,
        batch: Batch,
        _file: object,
        error: Any,  # noqa: ANN401 - as it is given
    ) -> None:
        refuse(self, table, batch, None, error)

    monkeypatch.setattr(RunBatches, "_refuse", all_of_it)


def reads_the_log_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sees batches to their end without refusals that were written down meanwhile."""
    follow = BatchFiles._follow

    def early(self: BatchFiles, table: OpenTable, settings: TableSettings) -> None:
        batches = self._batches
        known = batches.batches(table.id)

        def before(_: TableId, *, below: int, batches_max: int) -> list[Batch]:
            return [one for one in known if one.number < below][:batches_max]

        real = batches.batches
        batches.batches = before  # type: ignore[method-assign, assignment]  # a twin
        try:
            follow(self, table, settings)
        finally:
            batches.batches = real  # type: ignore[method-assign]  # it is a twin

    monkeypatch.setattr(BatchFiles, "_follow", early)


def ends_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes a batch for at an end once its job was sent."""
    follow = BatchFiles._follow

    def early(self: BatchFiles, table: OpenTable, settings: TableSettings) -> None:
        follow(self, table, settings)
        head = self._batches.head(table.id)
        self._batches.end(table.id, head.closed, free=[])

    monkeypatch.setattr(BatchFiles, "_follow", early)


class BatchTwin(msgspec.Struct, frozen=True):
    """patch: breaks the rule. checkers: one of these notices. world: where that is."""

    patch: Patch
    checkers: tuple[str, ...] = (v.BATCHED,)
    world: type[BatchedWorld] = CrowdedWorld


BATCH_TWINS = {
    "sends before the record": BatchTwin(
        sends_before_the_record, (v.BATCHED, v.ENDS), BatchedWorld
    ),
    "deletes whatever the version": BatchTwin(deletes_whatever_the_version),
    "knows no closed": BatchTwin(knows_no_closed, (v.BATCHED, v.ENDS)),
    "looks at the head last": BatchTwin(looks_at_the_head_last),
    "forgets what was taken": BatchTwin(forgets_what_was_taken),
    "removes before it takes": BatchTwin(removes_before_it_takes),
    "sends once": BatchTwin(sends_once, (v.BATCHED, v.ENDS), BatchedWorld),
    "closes before it sends": BatchTwin(closes_before_it_sends, (v.BATCHED, v.ENDS), BatchedWorld),
    "leaves out what is there": BatchTwin(leaves_out_what_is_there, world=BatchedWorld),
    "reads the log last": BatchTwin(reads_the_log_last),
    "ends what is sent": BatchTwin(ends_what_is_sent, (v.BATCHED, v.ENDS), BatchedWorld),
}
