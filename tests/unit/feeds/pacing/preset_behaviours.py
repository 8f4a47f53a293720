"""What can be seen of a policy: each of these tries one parameter out, and says what happened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

import lakebed
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.errors import LakebedError
from lakebed.feed_errors import PositionGoneError
from lakebed.feeds.committed import SplitAt
from lakebed.feeds.owned_splits import MISSED_SECONDS, LeasedSplits
from lakebed.feeds.pacing.spilling import SpillingSource
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.restarts import Restarts
from lakebed.feeds.rotation import MINUTE_MICROS, Waiting, reason_to_commit
from lakebed.feeds.run_feeds import FeedDone
from lakebed.feeds.worker import WantedPipeline
from lakebed.model.feeds.positions import Position
from lakebed.model.names import Micros
from lakebed.ports.leases import WorkerId
from lakebed.ports.record_source import SourceSplit

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
TEXT = """
[feed.calls]
files = "{folder}/*.json"
decoder = {{ format = "json"{time} }}
[connection.calls]
feed = "calls"
table = "calls"
policy = "own"
{more}
[policy.own]
extends = "{preset}"
{changes}
"""


class Bench:
    """A lake with a table of calls, and a feed of one policy, which extends a preset."""

    def __init__(
        self, folder: Path, preset: str, changes: str = "", more: str = "", keys: str = "id"
    ) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        more_values = {} if keys == "id" else {"_version": "int64"}
        own, lineage = {"id": "int64"}, {"_split": "string", "_position": "int64"}
        schema = lakebed.schema_of(
            row_keys=own if keys == "id" else lineage,
            values={"at": "timestamp[us, UTC]?", "fare": "float64?", **more_values},
        )
        self.lake.create_table("calls", schema)
        time = ', time = { path = "at", as = "iso" }' if keys == "id" else ""
        self.text = TEXT.format(folder=folder, preset=preset, changes=changes, more=more, time=time)
        self.ids = 0

    def write(self, *lines: str) -> None:
        with (self.folder / "calls.json").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def row(self, second: float = 0, **more: object) -> str:
        self.ids += 1
        facts = {"id": self.ids, "at": (NOW + timedelta(seconds=second)).isoformat(), **more}
        return "{" + ", ".join(f'"{k}": {_json(v)}' for k, v in facts.items()) + "}"

    def run(self) -> FeedDone:
        (done,) = lakebed.Feeds(self.lake, self.text).run()
        return done

    def pipeline(self) -> Pipeline[pa.RecordBatch]:
        feeds = lakebed.Feeds(self.lake, self.text)._feeds
        assert feeds is not None
        return feeds[0].pipeline

    def wanted(self) -> WantedPipeline[pa.RecordBatch]:
        definitions = lakebed.FeedDefinitions(self.lake)
        definitions.apply(self.text)
        definitions.start("calls")
        (wanted,) = feed_worker(self.lake._app)._wanted()
        return wanted


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


Make = Callable[..., Bench]


def a_bad_record(make: Make) -> str:
    bench = make(errors_in_row_max=1_000)
    bench.write(bench.row(), "no json", bench.row())
    fate = _fate(bench.run())
    return f"{fate}, kept" if "calls_quarantine" in bench.lake.tables() else fate


def bad_records_in_a_row(make: Make) -> str:
    """How many are taken before it stops."""
    bench = make(on_record_error="quarantine", errors_fraction_max=1.0)
    bench.write(*["no json"] * 300)
    done = bench.run()
    return f"{done.tally.quarantined} or so" if not done.code else str(_taken(bench))


def _taken(bench: Bench) -> int:
    with bench.lake._app.catalog.find("calls").head.reading() as state:
        query = "SELECT coalesce(sum(quarantined), 0) FROM tallies"
        return int(state.connection.execute(query).fetchone()[0])


def many_bad_records_of_an_hour(make: Make) -> str:
    bench = make(on_record_error="quarantine", errors_in_row_max=10_000)
    bench.write(*["no json"] * 1_200)
    return bench.run().code or "goes on"


def a_lost_worker(make: Make) -> str:
    pipeline = make().wanted().open()
    splits, now = pipeline._splits, [0.0]
    assert isinstance(splits, LeasedSplits)
    splits._monotonic = lambda: now[0]
    splits._leases.claim(f"{pipeline.connection.id}/x", WorkerId("ghost"), 1)
    try:
        splits.owned(["x"], lambda _: {})
        now[0] += MISSED_SECONDS
        return "resumes" if splits.owned(["x"], lambda _: {}) else "waits"
    except LakebedError as error:
        return error.code()


def failures_of_a_source(make: Make) -> str:
    restarts, waits = Restarts(make().wanted().restarts), list[float]()
    while (wait := restarts.waits(0.0, is_counted=True)) is not None:
        waits.append(wait)
    return f"{len(waits)} times" + (f", {waits[0]:g}-{max(waits):g} s" if waits else "")


def statistics(make: Make) -> str:
    return f"{make().wanted().statistics_seconds:g} s"


def congestion(make: Make) -> str:
    """Which rungs come while ever more is left to take, and what they do."""
    ladder = make().pipeline().flow.congestion
    rungs = list[str]()
    for look in range(600):
        ladder.see(float(look), behind=1_000_000 * look, taken=look, is_caught_up=False)
        if ladder.rung and ladder.rung not in rungs:
            rungs.append(ladder.rung)
    relief = ladder.relief
    did = [f"keeps {relief.keep:g}"] if relief.keep < 1 else []
    did += [f"discards {relief.discards:g}"] if relief.discards else []
    return ", ".join([*rungs, *did])


def workers(make: Make) -> str:
    asked = make().wanted().workers
    return f"{asked.least}-{asked.most}" if asked.most else "not elastic"


def a_lag(make: Make) -> str:
    """After how many seconds what is done."""
    bench = make()
    watched, asks = bench.pipeline().flow, bench.wanted().workers.at_lag
    one = SimpleNamespace(
        split=SourceSplit("x", "x"),
        at=SplitAt(None, Position(1, 0)),
        held=[],
        reader=SimpleNamespace(behind=lambda: 5),
    )
    with _events() as seen:
        for second in range(4_000):
            try:
                watched.look_at_lag(float(second), [cast("Any", one)])
            except LakebedError as error:
                return f"{error.code()} at {second - 1} s"
            if seen:
                return f"event at {second - 1} s" + (", more workers" if asks else "")
    return "nothing"


@contextmanager
def _events() -> Iterator[list[str]]:
    seen = list[str]()
    handler = cast("Any", logging.Handler())
    handler.emit = lambda record: seen.append(record.getMessage())
    logger = logging.getLogger("lakebed")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield seen
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _Gone:
    """A source whose first five records are gone."""

    def splits(self) -> list[SourceSplit]:
        return [SourceSplit("x", "x")]

    def start(self, split: SourceSplit) -> int:
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SimpleNamespace:
        def read(*, bytes_max: int, wait_seconds: float = 0.0) -> None:
            if begin < 5:
                raise PositionGoneError("gone", first=begin, end=5)

        return SimpleNamespace(
            read=read, behind=lambda: 0, acknowledge=lambda _: None, close=lambda: None
        )

    def close(self) -> None:
        """Nothing is held."""


def a_gap(make: Make) -> str:
    pipeline = make().pipeline()
    pipeline._source = cast("Any", _Gone())
    try:
        pipeline.turn()
        pipeline.turn()
    except LakebedError as error:
        return error.code()
    with pipeline.table.head.reading() as state:
        return f"{state.connection.execute('SELECT count(*) FROM gaps').fetchone()[0]} recorded"


def an_unknown_field(make: Make) -> str:
    bench = make(on_record_error="quarantine", errors_in_row_max=1_000)
    bench.write(bench.row(more=1))
    return _fate(bench.run())


def a_value_that_does_not_fit(make: Make) -> str:
    bench = make(on_record_error="quarantine", errors_in_row_max=1_000)
    bench.write(bench.row(fare="much"))
    return _fate(bench.run())


def no_value(make: Make) -> str:
    """Of a table whose keys are split and position, so that a row of nulls is one."""
    more = 'lineage = true\ncolumns = { at = "at", fare = "fare" }'
    bench = make(more=more, keys="lineage", on_record_error="quarantine", errors_in_row_max=1_000)
    bench.write('{"at": "2026-01-01T00:00:00Z", "fare": 1}', "")
    return _fate(bench.run())


def rounds(make: Make) -> str:
    """When they are committed."""
    limits = make().pipeline()._rotation.limits
    held = {"since": 0.0, "newest": 0.0, "minute": 0, "is_caught_up": False}
    found = list[str]()
    for reason, size, records, now, wall, is_caught_up in (
        ("size", limits.size, 1, 0.0, 0, False),
        ("records", 1, limits.records, 0.0, 0, False),
        ("age", 1, 1, limits.seconds, 0, False),
        ("minute", 1, 1, 0.0, MINUTE_MICROS, False),
        ("idle", 1, 1, limits.idle_seconds, 0, True),
    ):
        waiting = Waiting(
            **{**held, "size": size, "records": records, "is_caught_up": is_caught_up}
        )
        if reason_to_commit(limits, waiting, now=now, wall=Micros(wall)) == reason:
            found.append(reason)
    seconds = f"{limits.seconds:g} s, {limits.idle_seconds:g} s"
    return f"{' '.join(found)}: {limits.size >> 20} MiB, {limits.records:,}, {seconds}"


def a_rate(make: Make) -> str:
    pace = make().pipeline().flow.pace
    pace.read(1_000_000)
    return "all" if pace.may_read(pace._at) else "bounded"


def a_spool(make: Make) -> str:
    """How much may wait on the disk."""
    source = make().pipeline()._source
    return f"{source._bytes_max >> 20:,} MiB" if isinstance(source, SpillingSource) else "none"


def a_late_row(make: Make) -> str:
    bench = make(more="window_seconds = 60", errors_in_row_max=1_000)
    bench.write(bench.row(0), bench.row(300))
    bench.run()
    bench.write(bench.row(1))
    return _fate(bench.run())


def an_equal_record(make: Make) -> str:
    bench = make()
    bench.write(*[bench.row()] * 2)
    return _fate(bench.run())


def _fate(done: FeedDone) -> str:
    tally = done.tally
    return ", ".join(filter(None, [str(tally) if tally.read else "", done.code]))
