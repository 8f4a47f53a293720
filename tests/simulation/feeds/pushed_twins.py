"""Twins of the parts that take what is pushed, each with exactly one rule broken."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from lakebed.errors import UnavailableError, UnknownOutcomeError
from lakebed.feeds.pacing import known_items
from lakebed.landing.push import receiver
from lakebed.landing.push.segment_source import SegmentReader, SegmentSource
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.push.segments import Framing, Segment
from lakebed.model.names import Micros
from lakebed.model.paths import SegmentName
from lakebed.ports.record_source import SourceSplit
from lakebed.statestore.log_entries import feed_changes
from lakebed.statestore.table_state import feed_records
from lakebed.statestore.table_state.feed_records import Connection
from lakebed.statestore.table_state.state import TableState
from tests.simulation import violation as v
from tests.simulation.feeds.fed_twins import FedTwin, Patch
from tests.simulation.feeds.pushed_world import PushedWorld

ALL = 10_000


def known_items_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: what was landed before is not looked up, and nothing refuses it."""

    def unlike(
        state: TableState, connection: Connection, items: Iterable[bytes], number: int
    ) -> None:
        fresh = set(items) - set(feed_records.taken_items(state, connection, items))
        put(state, connection, fresh, number)

    put = feed_changes.put_items
    monkeypatch.setattr(known_items, "taken_before", lambda *_: set())
    monkeypatch.setattr("tests.simulation.feeds.pushed_world.taken_before", lambda *_: ())
    monkeypatch.setattr(feed_changes.TakeItems, "check", lambda *_: None)
    monkeypatch.setattr(feed_changes, "put_items", unlike)


def answers_on_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9: a sender hears success, whatever becomes of its segment."""
    put = SegmentStore.put

    def hopeful(self: SegmentStore, segment: Segment) -> None:
        with suppress(UnavailableError, UnknownOutcomeError):
            put(self, segment)

    monkeypatch.setattr(SegmentStore, "put", hopeful)


def no_answer_is_a_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9: a put without an answer is not read back."""
    write = SegmentStore._write

    def hopeful(self: SegmentStore, name: SegmentName, encoded: bytes) -> None:
        with suppress(UnknownOutcomeError):
            write(self, name, encoded)

    monkeypatch.setattr(SegmentStore, "_write", hopeful)


def positions_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """R10: records are numbered by the time at which they are read."""
    begin_at = SegmentSource.open

    def late(
        self: SegmentSource, split: SourceSplit, begin: int, *, resume: bytes = b""
    ) -> SegmentReader:
        return begin_at(self, split, self._clock.now(), resume=resume)

    monkeypatch.setattr(SegmentSource, "open", late)


def what_lies_in_the_folder_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R11: after a commit, everything that is there is deleted."""

    def all_of_it(self: SegmentReader, end: int) -> None:
        self._done += list(self._segments.names(ALL))
        self._delete_done()

    monkeypatch.setattr(SegmentReader, "acknowledge", all_of_it)


def what_was_read_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R5, R11: segments are deleted when they have been read."""
    read = SegmentReader.read

    def greedy(self: SegmentReader, **given: Any) -> Any:  # noqa: ANN401 - as it takes
        records = read(self, **given)
        if records is not None:
            self.acknowledge(records.end)
        return records

    monkeypatch.setattr(SegmentReader, "read", greedy)


def bodies_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key names a request, whatever its body is: the second one is landed already, it says."""
    named = receiver.segment_of_key

    def by_key(key: bytes, framing: Framing, received: Micros, body: bytes) -> Segment:
        segment = named(key, framing, received, b"")
        return msgspec.structs.replace(segment, body=body)

    monkeypatch.setattr(receiver, "segment_of_key", by_key)


def times_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is repeated is another one, because it comes later."""
    named = receiver.segment_of_key

    def by_time(key: bytes, framing: Framing, received: Micros, body: bytes) -> Segment:
        segment = named(key, framing, received, b"%d" % received + body)
        return msgspec.structs.replace(segment, body=body)

    monkeypatch.setattr(receiver, "segment_of_key", by_time)


def _twin(patch: Patch, *checkers: str) -> FedTwin:
    return FedTwin(frozenset(checkers), (patch,), PushedWorld)


PUSHED_TWINS: dict[str, FedTwin] = {
    "known items taken again": _twin(known_items_are_taken_again, v.FED_ROWS),
    "answers on receipt": _twin(answers_on_receipt, v.FED_ROWS),
    "no answer is a put": _twin(no_answer_is_a_put, v.FED_ROWS),
    "positions of the clock": _twin(positions_of_the_clock, v.FED_LEDGER, v.FED_TILES),
    "deletes what lies in the folder": _twin(what_lies_in_the_folder_is_deleted, v.FED_ROWS),
    "deletes what was read": _twin(what_was_read_is_deleted, v.FED_ROWS),
    "bodies do not count": _twin(bodies_do_not_count, v.FED_ROWS),
    "times count": _twin(times_count, v.FED_ANSWERS),
}
