"""Times of events, from numbers and texts to microseconds since 1970. None is ever made up: what
cannot be read has no time."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.config.decoders import UNITS, TimeOf
from lakebed.decoding.masks import Mask, bools, cast_or_null
from lakebed.decoding.time_texts import Pattern, micros_of_texts

_FRACTION: Final = pa.decimal128(38, 9)
MICROS: Final = pa.timestamp("us", tz="UTC")
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FIRST_SECOND, _END_SECOND = 946_684_800, 4_102_444_800
"""2000 and 2100, between which `auto` looks for a unit."""
_LEAST_SECOND, _MOST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999: Arrow and Python write no others."""


class Times:
    """Reads times that are written in one way."""

    def __init__(self, way: TimeOf) -> None:
        self._way = way
        is_number = way.as_ in UNITS or way.as_ == "auto"
        self._pattern = None if is_number else Pattern.of(way.as_)

    def read(self, raw: pa.Array) -> tuple[pa.Array, Mask]:
        """Return times, null where there is none or it cannot be read, and which are out of bounds:
        these are null, too."""
        if self._pattern is None:
            return _of_numbers(raw, self._way.as_)
        return _bounded(micros_of_texts(raw, self._pattern, self._way.zone))


def _of_numbers(raw: pa.Array, unit: str) -> tuple[pa.Array, Mask]:
    if not pa.types.is_integer(raw.type):
        narrow, too_large = cast_or_null(raw, lambda part: part.cast(_FRACTION), _FRACTION)
        times, outside = _of_narrow(narrow, unit)
        return times, outside | too_large
    return _of_narrow(raw, unit)


def _of_narrow(raw: pa.Array, unit: str) -> tuple[pa.Array, Mask]:
    if unit != "auto":
        return _of_unit(raw, unit)
    kind = _bound_type(raw)
    times = pa.nulls(len(raw), pa.int64())
    for known in UNITS:
        scale = _PER_SECOND[known]
        is_unit = pc.and_(
            pc.greater_equal(raw, pa.scalar(_FIRST_SECOND * scale).cast(kind)),
            pc.less(raw, pa.scalar(_END_SECOND * scale).cast(kind)),
        )
        if pc.any(is_unit).as_py():  # bounded: one flag
            found, _ = _of_unit(pc.if_else(is_unit, raw, None), known)
            times = pc.coalesce(times, found.cast(pa.int64()))
    return times.cast(MICROS), bools(pc.and_(raw.is_valid(), times.is_null()))


def _of_unit(raw: pa.Array, unit: str) -> tuple[pa.Array, Mask]:
    """Return times of numbers of one unit. What is finer than microseconds is cut off, towards the
    past."""
    scale = _PER_SECOND[unit]
    least, most = _LEAST_SECOND * scale, _MOST_SECOND * scale
    bounds = [max(least, -(1 << 63)), min(most, (1 << 63) - 1)]
    inside = pc.and_(
        pc.greater_equal(raw, pa.scalar(bounds[0]).cast(_bound_type(raw))),
        pc.less_equal(raw, pa.scalar(bounds[1]).cast(_bound_type(raw))),
    )
    outside = bools(pc.and_(raw.is_valid(), pc.invert(inside)))
    kept = pc.if_else(inside, raw, None)
    whole = kept if pa.types.is_integer(raw.type) else pc.floor(kept).cast(pa.int64())
    values = whole.fill_null(0).to_numpy(zero_copy_only=False)
    micros = values // 1_000 if scale > 1_000_000 else values * (1_000_000 // scale)
    if scale < 1_000_000 and not pa.types.is_integer(raw.type):
        micros = micros + _fraction(kept, whole, 1_000_000 // scale)
    times = pa.array(micros, pa.int64(), mask=bools(kept.is_null()))
    return times.cast(MICROS), outside


def _bound_type(raw: pa.Array) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(raw.type) else pa.decimal128(19, 0)


def _fraction(kept: pa.Array, whole: pa.Array, micros: int) -> npt.NDArray[np.int64]:
    """Return the microseconds that stand behind the point."""
    nine = pc.subtract(kept.cast(pa.decimal128(37, 9)), whole.cast(pa.decimal128(19, 0)))
    words = np.frombuffer(nine.buffers()[1], np.int64)[2 * nine.offset :]
    billionths: npt.NDArray[np.int64] = words[: 2 * len(nine) : 2]  # below 2^63: the lower halves
    valid = bools(kept.is_valid())
    return np.where(valid, billionths, 0) * micros // 10**9


def _bounded(times: pa.Array) -> tuple[pa.Array, Mask]:
    """Return times without those that an offset led out of the years 1 to 9999."""
    micros = times.cast(pa.int64())
    inside = pc.and_(
        pc.greater_equal(micros, _LEAST_SECOND * 1_000_000),
        pc.less(micros, (_MOST_SECOND + 1) * 1_000_000),
    )
    outside = bools(pc.invert(inside))
    return (pc.if_else(inside, times, None) if outside.any() else times), outside


def own_times(times: pa.Array) -> pa.Array:
    """Return the times that a source gives records, as those of events."""
    found, _ = cast_or_null(times, lambda part: part.cast(MICROS), MICROS)
    return found
