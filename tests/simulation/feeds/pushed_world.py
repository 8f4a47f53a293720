"""A world with a feed that senders push to: machines receive, others land, all of them die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lakebed.errors import LakebedError
from lakebed.feed_errors import DefinitionMovedError, OwnerFencedError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection, taken_before
from lakebed.feeds.land_records import first_records, records_in_table
from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.feeds.owned_splits import OwnedSplits
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.push.receiver import Answer, Receiver, ReceiverRules, RequestHead
from lakebed.landing.push.segment_source import SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, taken_items_of
from tests.simulation import actors
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_exact
from tests.simulation.feeds.fed_rows import FED_SCHEMA
from tests.simulation.feeds.fed_world import CONNECTION, FedWorld
from tests.simulation.feeds.model_source import ModelSource
from tests.simulation.machine import Machine, Parts
from tests.simulation.violation import ENDS, FED_ANSWERS, FED_ROWS, FED_TILES, Violation

REPEATED_SECONDS_MAX = 86_400
"""By true time: items are remembered for longer than that."""


class Push(msgspec.Struct):
    """A request as its sender knows it.

    ids: of its records. key: "": none. tries: how often it was sent. heard: how often success was.
    """

    ids: tuple[int, ...]
    key: str
    begun: Micros
    tries: int = 0
    heard: int = 0


class PushedRows:
    """Makes a row of each record."""

    def __init__(self, width: int) -> None:
        self._width = width

    @property
    def schema(self) -> Schema:
        return FED_SCHEMA

    @property
    def windows(self) -> None:
        return None

    def concat(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return pa.concat_batches(batches)

    def first(self, batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, int, int]:
        return first_records(batch, count)

    def row(self, rows: list[Any], index: int) -> list[Any]:
        return rows[index : index + 1]

    def __call__(
        self, split: str, records: Records[pa.RecordBatch], known: KnownBefore[Any]
    ) -> MadeRows[list[Any]]:
        there = records_in_table(records.count, known)
        ids = [int(value) for value in records.batch["value"].to_pylist()]
        positions = records.batch["position"].to_pylist()
        rows = [
            (position % self._width, split, position, id_)
            for position, id_, is_there in zip(positions, ids, there, strict=True)
            if not is_there
        ]
        return MadeRows(
            rows=rows or None,
            rows_count=len(rows),
            read=records.count,
            size=records.size,
            deduplicated=int(there.sum()),
        )


class PushedWorld(FedWorld):
    """All that one seed decides, with senders that repeat."""

    receiver_type: type[Receiver] = Receiver
    source_of_segments: type[SegmentSource] = SegmentSource

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        self.pushed: list[Push] = []
        self.last_id = 0
        super().__init__(seed, scratch, parts)
        self.source = ModelSource(self.rng)  # it gives nothing
        self.actors = list(PUSHED_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in PUSHED_ACTORS.values()]
        self._latest = self.actors[0]

    def _records_in(self, split: str, begin: int, end: int) -> int:
        return end - begin

    def segments(self, machine: Machine) -> SegmentStore:
        return SegmentStore(machine.objects, CONNECTION)

    def _made_pipeline(
        self, machine: Machine, splits: OwnedSplits, version: int, *, is_calm: bool = False
    ) -> Any:  # noqa: ANN401 - a pipeline of two kinds of batches
        table, connection = machine.catalog.find("fed"), FeedConnection(CONNECTION, version)
        rounds = CommitRound[Any](
            stage=StageRows[Any](files=machine.files),
            make_rows=PushedRows(self.width),
            clock=machine.clock,
        )
        source = self.source_of_segments(
            self.segments(machine),
            clock=machine.clock,
            is_taken=lambda item: bool(taken_before(table, connection, [item])),
        )
        return self.pipeline(
            table=table,
            connection=connection,
            source=source,
            rounds=rounds,
            clock=machine.clock,
            rules=PipelineRules(
                limits=RotationLimits(size=self.rng.choice((20, 100)), seconds=100)
            ),
            splits=splits,
        )

    # senders

    def some_push(self) -> Push:
        """Return a request: a new one, one that is repeated, or another body under its key."""
        now, drawn = self.clock.now(), self.rng.random()
        since = now - REPEATED_SECONDS_MAX * MICROS_PER_SECOND
        keyed = [push for push in self.pushed if push.key and push.begun > since]
        if keyed and drawn < 0.5:
            unheard = [push for push in keyed if not push.heard]
            return self.rng.choice(unheard if unheard and drawn < 0.4 else keyed)
        key = f"key-{len(self.pushed)}" if drawn < 0.9 else ""
        if keyed and drawn < 0.55:
            key = self.rng.choice(keyed).key
        count = self.rng.randrange(1, 6)
        ids = tuple(range(self.last_id + 1, self.last_id + 1 + count))
        self.last_id += count
        self.pushed.append(Push(ids, key, now))
        return self.pushed[-1]

    def send(self, machine: Machine, push: Push) -> Answer:
        """Send a request to the receiver of a machine."""
        table = machine.catalog.find("fed")

        def items_of(prefix: bytes) -> Sequence[bytes]:
            with table.head.reading() as state:
                known = connection_of(state, CONNECTION)
                return [] if known is None else taken_items_of(state, known, prefix, 10)

        receiver = self.receiver_type(
            ReceiverRules(feed="fed"),
            self.segments(machine),
            items_of,
            clock=machine.clock,
            token=lambda: machine.rng.getrandbits(128),
        )
        body = b"".join(b"%d\n" % id_ for id_ in push.ids)
        headers = [("content-type", "text/plain"), ("content-length", str(len(body)))]
        headers += [("idempotency-key", push.key)] if push.key else []
        push.tries += 1
        answer = receiver.respond(RequestHead("POST", "/", headers), lambda _: body)
        self.weather.happened[f"told {answer.status}"] += 1
        if answer.status == 200:
            push.heard += 1
        elif answer.status == 409:
            self._check_refusal(push)
        elif answer.status != 503:
            raise Violation(FED_ANSWERS, f"a sender hears {answer}")
        return answer

    def _check_refusal(self, push: Push) -> None:
        if sum(other.key == push.key for other in self.pushed) < 2:
            raise Violation(FED_ANSWERS, f"{push} is refused, and its key is its own")

    # the end

    def end(self) -> None:
        """Let senders repeat what they may, and workers land all that is there, in peace."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        since = self.clock.now() - REPEATED_SECONDS_MAX * MICROS_PER_SECOND
        for push in list(self.pushed):
            if push.key and push.begun > since and self.send(machine, push).status == 503:
                raise Violation(ENDS, f"{push} is refused in peace")
        super().end()

    def check(self) -> None:
        """Look at everything. A segment that is put again says when it came, so its bytes differ:
        it is put if absent, and its item is the same."""
        paths = self.weather.reused_paths
        self.weather.reused_paths = {path for path in paths if not path.startswith("feeds/")}
        super().check()

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what was landed with what senders heard."""
        if table.id != self.fed.id:
            super().check_rows(machine, table, auditor)
            return
        check_exact(machine, table)
        rows: list[tuple[Any, ...]] = [row for batch in machine.query.run(table) for row in batch]
        positions = Counter((row[1], row[2]) for row in rows)
        if positions and max(positions.values()) > 1:
            raise Violation(FED_TILES, "two records of one position")
        check_pushed(self.pushed, Counter(row[3] for row in rows))
        waiting = list(self.segments(machine).names(9))
        if waiting:
            raise Violation(ENDS, f"{len(waiting)} segments were never deleted")


def check_pushed(pushed: Sequence[Push], found: Counter[int]) -> None:
    """What a sender heard of is there; once, if it has a key; and nothing else is."""
    for push in pushed:
        most = min(push.tries, 1) if push.key else push.tries
        least = min(push.heard, 1) if push.key else push.heard
        for id_ in push.ids:
            count = found.pop(id_, 0)
            if not least <= count <= most:
                raise Violation(FED_ROWS, f"record {id_} of {push} is there {count} times")
    if found:
        raise Violation(FED_ROWS, f"nobody pushed {sorted(found)[:9]}")


def land(world: PushedWorld, machine: Machine) -> None:
    """Let a machine's worker land and delete."""
    pipeline = world.pipeline_of(machine)
    try:
        for _ in range(world.rng.randrange(1, 5)):
            pipeline.turn(is_draining=world.rng.random() < 0.5)
            world.clock.advance(1)  # so that it lists again
    except (OwnerFencedError, DefinitionMovedError):
        world.forget_pipeline(machine, to_newest=True)
        raise
    except LakebedError:
        if world.rng.random() < 0.5:
            pipeline.forget()
        raise


def push(world: PushedWorld, machine: Machine) -> None:
    world.send(machine, world.some_push())


PUSHED_ACTORS: dict[Callable[[Any, Machine], None], int] = {
    land: 60,
    push: 60,
    actors.create_jobs: 6,
    actors.work: 8,
    actors.split: 5,
    actors.collect: 4,
    actors.sweep: 5,
    actors.snapshot: 2,
    actors.damage_snapshot: 1,
}
