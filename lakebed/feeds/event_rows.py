"""Judges decoded records by their event times: too far ahead, or late (protocol R18, R19)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Decoded
from lakebed.feeds.event_windows import are_ahead, are_late
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.feeds.windows import WindowRules
from lakebed.model.names import Micros

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTimes:
    """Verdicts of records, those of their event times among them.

    verdicts: of each record.
    diverted: which records are late, and are kept apart from the table.
    dropped: which are late, and are left out.
    """

    verdicts: npt.NDArray[np.uint8]
    diverted: Mask
    dropped: Mask


def judged_times(
    decoded: Decoded, rules: WindowRules | None, *, log_time: Micros, sealed: Micros | None
) -> JudgedTimes:
    """Return what becomes of records by their event times.

    rules: of the connection's windows; None: event time says nothing.
    log_time: read before the commit.
    sealed: as of the connection's watermark.
    """
    verdicts, nothing = decoded.verdicts, np.zeros(len(decoded.verdicts), np.bool_)
    if rules is None or not decoded.rows.num_rows:
        return JudgedTimes(verdicts=verdicts, diverted=nothing, dropped=nothing)
    record = decoded.record.to_numpy()
    ahead = record[_mask(are_ahead(decoded.time, rules, log_time=log_time))]
    late = nothing.copy()
    if rules.late != "accept":
        late[record[_mask(are_late(decoded.time, rules, sealed=sealed))]] = True
    verdicts = verdicts.copy()
    verdicts[ahead] = Verdict.TIME_OUT_OF_BOUNDS
    late[ahead] = False
    diverted = late if rules.late == "divert" else nothing
    dropped = late if rules.late == "drop" else nothing
    verdicts[diverted] = Verdict.LATE
    return JudgedTimes(verdicts=verdicts, diverted=diverted, dropped=dropped)


def _mask(rows: pa.BooleanArray) -> Mask:
    mask: Mask = rows.to_numpy(zero_copy_only=False)
    return mask
