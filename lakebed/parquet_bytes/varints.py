"""Many integers at once as Thrift writes them: seven bits a byte, lowest first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def packed(values: Numbers) -> tuple[Bytes, Numbers]:
    """Return numbers that are not negative one behind the other, and where each ends."""
    sizes = np.ones(len(values), np.int64)
    most, shift = int(values.max(initial=0)), 7
    while most >> shift:
        sizes += values >> shift > 0
        shift += 7
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    at, rest, left = ends - sizes, values, sizes
    while len(at):
        more = left > 1
        out[at] = rest & 0x7F | more.astype(np.int64) << 7
        at, rest, left = at[more] + 1, rest[more] >> 7, left[more] - 1
    return out, ends


def unpacked(raw: bytes) -> tuple[Numbers, Numbers]:
    """Return the numbers that these bytes are, one behind the other, and where each ends. Of those
    of more than 56 bits the rest is left out, as are bytes behind the last that ends."""
    bytes_ = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(bytes_ < 0x80) + 1
    starts = np.concatenate(([0], ends))[:-1]
    values = np.zeros(len(ends), np.int64)
    here, left = np.arange(len(ends)), ends - starts
    for index in range(8):
        here = here[left[here] > index]
        values[here] |= (bytes_[starts[here] + index] & 0x7F).astype(np.int64) << 7 * index
    return values, ends
