"""Computes what the event times of a batch say: the greatest, those that are late or ahead, and how
many rows lie in each window (protocol R18, R19). Read from columns: no row becomes an object.

times: of rows, one timestamp each, in UTC, none of them null.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.feed_errors import TooManyWindowsError
from lakebed.model.feeds.windows import WINDOWS_MAX, WindowCount, WindowRules
from lakebed.model.names import MICROS_PER_SECOND, Micros

Times: TypeAlias = pa.Array | pa.ChunkedArray


def newest_time(times: Times) -> Micros | None:
    """Return the greatest event time; None: there is no row."""
    micros = _micros(times)
    return Micros(int(micros.max())) if len(micros) else None


def are_ahead(times: Times, rules: WindowRules, *, log_time: Micros) -> pa.BooleanArray:
    """Return which rows lie too far in the future: their verdict is `time-out-of-bounds`. log_time:
    read before the commit; that of its entry is never less."""
    return pa.array(_micros(times) > log_time + rules.ahead_seconds_max * MICROS_PER_SECOND)


def are_late(times: Times, rules: WindowRules, *, sealed: Micros | None) -> pa.BooleanArray:
    """Return which rows lie in sealed windows. sealed: of the connection's `Watermark`."""
    micros = _micros(times)
    if sealed is None:
        return pa.array(np.zeros(len(micros), np.bool_))
    return pa.array((micros // rules.window + 1) * rules.window <= sealed)


def window_counts(
    stored: Times, rules: WindowRules, *, left_out: Times | None = None
) -> tuple[WindowCount, ...]:
    """Return the rows of a commit by window.

    stored: event times of its rows.
    left_out: of those that were diverted or dropped, as they are late.

    Raises:
        TooManyWindowsError: there are more than one commit may count.
    """
    rows = _by_window(stored, rules)
    late = Counter[Micros]() if left_out is None else _by_window(left_out, rules)
    starts = sorted(rows.keys() | late.keys())
    return tuple(WindowCount(start, rows[start], late[start]) for start in starts)


def too_many_windows(count: int) -> TooManyWindowsError:
    """Return the error that says in how many windows rows lie."""
    hint = "use longer windows, or put fewer records into one object or message"
    return TooManyWindowsError("too many windows", count=count, max=WINDOWS_MAX, hint=hint)


def _by_window(times: Times, rules: WindowRules) -> Counter[Micros]:
    starts = pa.array(_micros(times) // rules.window * rules.window)
    counted = pc.value_counts(starts).flatten()
    count = len(counted[0])
    if count > WINDOWS_MAX:
        raise too_many_windows(count)
    found, rows = (column.to_pylist() for column in counted)  # bounded: by WINDOWS_MAX, just above
    return Counter(dict(zip(map(Micros, found), rows, strict=True)))


def _micros(times: Times) -> npt.NDArray[np.int64]:
    micros = pc.cast(pc.cast(times, pa.timestamp("us", times.type.tz)), pa.int64())
    if micros.null_count:
        raise AssertionError("a row without an event time got its verdict")
    if isinstance(micros, pa.ChunkedArray):
        micros = micros.combine_chunks()
    found: npt.NDArray[np.int64] = micros.to_numpy(zero_copy_only=False)
    return found
