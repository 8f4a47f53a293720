"""Event time from a file to sealed windows: rows are counted by window, late ones are stored, kept
apart or dropped, and a source that has no more holds nothing up (protocol R18, R19)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.feeds.run_feeds import FeedDone
from lakebed.model.feeds.windows import WINDOWS_MAX
from lakebed.observe.events import FEED_WINDOWS_SEALED
from lakebed.statestore.table_state.feed_records import connections
from lakebed.statestore.table_state.window_records import (
    Watermark,
    Window,
    watermark_of,
    windows_of,
)

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
TEXT = """
[feed.calls]
files = "{folder}/*.json"
decoder = {{ format = "json"{time} }}
[connection.calls]
feed = "calls"
table = "calls"
window_seconds = 60
disorder_seconds = 10
policy = "own"
[policy.own]
late = "{late}"
"""


class Calls:
    """A lake with a table of calls, fed from one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"at": "timestamp[us, UTC]"})
        self.table = self.lake.create_table("calls", schema)
        self.late = "accept"
        self.time = ', time = { path = "at", as = "iso" }'
        self.written = 0

    def write(self, *seconds: float) -> None:
        with (self.folder / "calls.json").open("a", encoding="utf-8") as file:
            for second in seconds:
                self.written += 1
                at = NOW + timedelta(seconds=second)
                file.write(f'{{"id": {self.written}, "at": "{at.isoformat()}"}}\n')

    def run(self) -> FeedDone:
        text = TEXT.format(folder=self.folder, late=self.late, time=self.time)
        (done,) = lakebed.Feeds(self.lake, text).run()
        assert not done.code, done.reason
        return done

    def known(self) -> tuple[Watermark, list[Window]]:
        head = self.lake._app.catalog.find("calls").head
        head.follow()
        with head.reading() as state:
            (connection,) = connections(state)
            return watermark_of(state, connection), list(windows_of(state, connection))

    def ids(self) -> list[int]:
        return self.table.query().read_all()["id"].to_pylist()


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    given = Calls(tmp_path)
    yield given
    given.lake.close()


def micros(second: float) -> int:
    return round((NOW + timedelta(seconds=second)).timestamp() * 1_000_000)


def test_rows_are_counted_by_window_and_the_watermark_seals_what_it_has_passed(
    calls: Calls,
) -> None:
    calls.write(1, 59, 61, 119, 131)
    calls.run()
    watermark, windows = calls.known()
    assert watermark.time == micros(121)
    assert [(w.start, w.rows, w.revision) for w in windows] == [
        (micros(0), 2, 1),
        (micros(60), 2, 1),
        (micros(120), 1, 0),
    ]


def test_each_sealed_window_is_said_once_by_the_entry_that_sealed_it(
    calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="lakebed"):
        for seconds in ((1, 59, 61, 119), (131,), (132, 61), (400,)):
            calls.write(*seconds)
            calls.run()
    said = [
        record.__dict__["facts"]
        for record in caplog.records
        if record.__dict__.get("event") == FEED_WINDOWS_SEALED
    ]
    counts = [(facts["windows_count"], facts["rows_count"]) for facts in said]
    assert counts == [(1, 2), (1, 2), (1, 2)]
    sealed = {w.sealed for w in calls.known()[1] if w.sealed is not None}
    assert {facts["number"] for facts in said} == sealed


def test_late_rows_that_are_accepted_make_a_revision(calls: Calls) -> None:
    calls.write(1, 200)
    calls.run()
    calls.write(2)
    calls.run()
    _, (first, *_) = calls.known()
    assert (first.rows, first.revision) == (2, 2)
    assert calls.ids() == [1, 2, 3]


def test_late_rows_that_are_diverted_are_in_the_quarantine_and_count_as_no_error(
    calls: Calls,
) -> None:
    calls.late = "divert"
    calls.write(1, 200)
    calls.run()
    calls.write(*range(2, 8), 210)
    done = calls.run()
    assert (done.tally.stored, done.tally.quarantined) == (1, 6)
    assert calls.ids() == [1, 2, 9]
    kept = calls.lake.table("calls_quarantine").query().read_all()
    assert kept["verdict"].to_pylist() == ["late"] * 6
    _, (first, *_) = calls.known()
    assert (first.rows, first.late, first.revision) == (1, 6, 1)


def test_late_rows_that_are_dropped_are_counted(calls: Calls) -> None:
    calls.late = "drop"
    calls.write(1, 200)
    calls.run()
    calls.write(2, 210)
    done = calls.run()
    assert (done.tally.stored, done.tally.discarded) == (1, 1)
    assert calls.ids() == [1, 2, 4]
    assert "calls_quarantine" not in calls.lake.tables()


def test_an_event_time_far_ahead_is_a_verdict_and_moves_no_watermark(calls: Calls) -> None:
    calls.write(1, 30 * 86_400)
    done = calls.run()
    assert done.tally.quarantined == 1
    assert calls.known()[0].time == micros(-9)
    (kept,) = calls.lake.table("calls_quarantine").query().read_all().to_pylist()
    assert kept["verdict"] == "time-out-of-bounds"


def test_windows_of_records_without_a_time_are_refused(calls: Calls) -> None:
    calls.time = ""
    calls.write(1)
    with pytest.raises(InvalidError, match=r"connection\.calls\.window_seconds"):
        calls.run()


def test_as_many_windows_as_a_round_may_have_make_one_file(calls: Calls) -> None:
    calls.write(*(-60 * window for window in range(WINDOWS_MAX)))
    assert calls.run().commits == 1
    (status,) = calls.lake.status("calls")
    assert status.files == 1
    assert sum(window.rows for window in calls.known()[1]) == WINDOWS_MAX


def test_more_windows_than_that_are_taken_by_several_rounds(calls: Calls) -> None:
    calls.write(*(60 * (window - 2 * WINDOWS_MAX) for window in range(2 * WINDOWS_MAX)))
    done = calls.run()
    assert done.commits > 2
    assert (done.tally.read, done.tally.stored) == (2 * WINDOWS_MAX, 2 * WINDOWS_MAX)
    assert calls.ids() == list(range(1, 2 * WINDOWS_MAX + 1))
    _, windows = calls.known()
    assert [window.rows for window in windows] == [1] * 2 * WINDOWS_MAX


def test_the_windows_of_several_files_are_counted_together(calls: Calls) -> None:
    for name, first in (("older", -2 * WINDOWS_MAX), ("newer", -WINDOWS_MAX)):
        calls.write(*(60 * window for window in range(first, first + WINDOWS_MAX)))
        (calls.folder / "calls.json").rename(calls.folder / f"{name}.json")
    done = calls.run()
    assert (done.tally.read, done.tally.stored) == (2 * WINDOWS_MAX, 2 * WINDOWS_MAX)
    assert calls.ids() == list(range(1, 2 * WINDOWS_MAX + 1))
