"""A connection under a policy, fed by a stream of numbered records, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import pipeline_from, target_of
from lakebed.config.feeds import feed_file
from lakebed.decoding.raw_records import raw_records
from lakebed.feed_errors import (
    PositionGoneError,
)
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pipeline import Pipeline
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.statestore.table_state.feed_records import connections, ledger_of

TEXT = """
[feed.web]
files = "never/*.log"
decoder = {{ format = "json" }}
[connection.web]
feed = "web"
table = "web"
policy = "{policy}"
{more}
"""
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"fare": "int64?"})
BY_POSITION = lakebed.schema_of(
    row_keys={"_split": "string", "_position": "int64"},
    values={"_version": "int64", "id": "int64?", "fare": "int64?"},
)


class Stream:
    """A source of numbered records. Some are bad; the first ones may be gone."""

    def __init__(self) -> None:
        self.there = 0
        self.oldest = 0
        self.bad: Callable[[int], bytes | None] = lambda _: b""

    def splits(self) -> list[SourceSplit]:
        return [SourceSplit("only", "only")]

    def start(self, split: SourceSplit) -> int:
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> StreamReader:
        return StreamReader(self, begin)

    def close(self) -> None:
        """Nothing is held."""

    def value(self, position: int) -> bytes | None:
        bad = self.bad(position)
        return b'{"id": %d}' % position if bad == b"" else bad


class StreamReader:
    """Gives at most so many records a turn."""

    at_once = 100

    def __init__(self, source: Stream, begin: int) -> None:
        self._source, self._next = source, begin

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        if self._next < self._source.oldest:
            raise PositionGoneError("gone", first=self._next, end=self._source.oldest)
        begin, end = self._next, min(self._source.there, self._next + self.at_once)
        if begin == end:
            return None
        self._next = end
        values = [self._source.value(position) for position in range(begin, end)]
        batch = raw_records(
            value=pa.array(values, pa.binary()), position=pa.array(range(begin, end), pa.int64())
        )
        return Records(begin=begin, end=end, count=end - begin, size=batch.nbytes, batch=batch)

    def behind(self) -> int:
        return self._source.there - self._next

    def acknowledge(self, end: int) -> None:
        """Nothing is kept for it."""

    def close(self) -> None:
        """Nothing is held."""


class Fed:
    """A connection under a policy, a second a turn. comes: records a second."""

    def __init__(
        self, folder: Path, policy: str, more: str = "", schema: lakebed.Schema = SCHEMA
    ) -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.lake.create_table("web", schema)
        self.clock = VirtualClock()
        self.app = replace(self.lake._app, clock=self.clock)
        self.source = Stream()
        self.text = TEXT.format(policy=policy, more=more)
        _, (self.definition,) = definitions_in(feed_file(self.text))
        target = target_of(self.app, self.definition)
        self.pipeline: Pipeline[Any] = pipeline_from(
            self.app, self.definition, target, self.source, OwnsAll()
        )

    def go(self, seconds: int, *, comes: int) -> None:
        for _ in range(seconds):
            self.source.there += comes
            self.pipeline.turn()
            self.clock.advance(1)
        self.pipeline.turn(is_draining=True)

    def take(self, count: int) -> None:
        self.source.there += count
        for _ in range(count // StreamReader.at_once + 2):
            self.pipeline.turn()
        self.pipeline.turn(is_draining=True)

    def tally(self) -> Tally:
        head = self.app.catalog.find("web").head  # type: ignore[arg-type]  # a name
        head.follow()
        tally = Tally()
        with head.reading() as state:
            for one in connections(state):
                for _, _, of_hour in ledger_of(state, one):
                    tally = tally.plus(of_hour)
        tally.check()
        return tally

    def rows(self) -> int:
        return self.lake.table("web").query().read_all().num_rows

    def has_quarantine(self) -> bool:
        return "web_quarantine" in self.lake.tables()


Making = Callable[..., Fed]
