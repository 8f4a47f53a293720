"""Event times of a batch, in columns: windows, late rows and rows in the future (R18, R19)."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.feed_errors import TooManyWindowsError
from lakebed.feeds.event_windows import are_ahead, are_late, newest_time, window_counts
from lakebed.model.feeds.windows import WindowCount, WindowRules, check_windows, window_start
from lakebed.model.names import Micros
from lakebed.statestore.table_state.window_records import Watermark

RULES = WindowRules(10, ahead_seconds_max=5)
MICROS = st.lists(st.integers(-30_000_000, 30_000_000), max_size=20)


def times(*micros: int) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", "UTC"))


@given(MICROS, MICROS)
def test_each_row_is_counted_in_the_window_that_it_lies_in(
    stored: list[int], late: list[int]
) -> None:
    drops = WindowRules(10, late="drop")
    windows = window_counts(times(*stored), drops, left_out=times(*late))
    check_windows(windows, drops)
    assert sum(window.rows for window in windows) == len(stored)
    for window in windows:
        assert window.rows == sum(window_start(Micros(at), 10) == window.start for at in stored)
        assert window.late == sum(window_start(Micros(at), 10) == window.start for at in late)


@given(MICROS, st.none() | st.integers(-30_000_000, 30_000_000))
def test_a_row_is_late_if_its_window_is_sealed(micros: list[int], sealed: int | None) -> None:
    known = Watermark(sealed=None if sealed is None else Micros(sealed))
    wanted = [known.is_sealed(window_start(Micros(at), 10) + 10_000_000) for at in micros]
    assert are_late(times(*micros), RULES, sealed=known.sealed).to_pylist() == wanted


def test_rows_ahead_of_log_time_are_found_and_the_newest_time_is_the_greatest() -> None:
    some = times(0, 7_000_000, 5_000_000, 5_000_001)
    assert are_ahead(some, RULES, log_time=Micros(0)).to_pylist() == [False, True, False, True]
    assert newest_time(some) == 7_000_000
    assert newest_time(some.slice(0, 0)) is None


def test_times_of_all_units_and_of_several_chunks_are_read() -> None:
    seconds = pa.chunked_array(
        [pa.array([5], pa.timestamp("s")), pa.array([15], pa.timestamp("s"))]
    )
    wanted = (WindowCount(Micros(0), 1), WindowCount(Micros(10_000_000), 1))
    assert window_counts(seconds, RULES) == wanted
    at = pa.array([datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)])
    assert window_counts(at, RULES) == (WindowCount(Micros(-10_000_000), 1),)
    assert window_counts(times(), RULES) == ()


def test_more_windows_than_a_commit_may_count_are_refused() -> None:
    many = pa.array(np.arange(10_001) * 10_000_000).cast(pa.timestamp("us"))
    with pytest.raises(TooManyWindowsError, match="too many windows"):
        window_counts(many, RULES)
    assert len(window_counts(many.slice(1), RULES)) == 10_000
