"""Records that a policy leaves out while its source is too fast: by chance that follows from their
positions, or the newest. They leave with the commit that moves the position behind them, and are
counted there (protocol R14).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.feeds.made_rows import KnownBefore

Mask = npt.NDArray[np.bool_]


class LeftOut(msgspec.Struct, frozen=True):
    """Masks, by record."""

    sampled: Mask
    discarded: Mask

    @property
    def either(self) -> Mask:
        """All that are left out."""
        return self.sampled | self.discarded


def left_out(
    split: str, batch: pa.RecordBatch, known: KnownBefore[pa.RecordBatch], held: Mask
) -> LeftOut | None:
    """Return which records are left out; None: none is.

    held: which are in the quarantine: they stay there, and are counted as that (protocol R13).
    """
    count = batch.num_rows
    if (known.keep >= 1 and not known.discard_last) or known.in_table:
        return None
    sampled = ~held & (chances(split, batch["position"].to_numpy()) >= known.keep)
    discarded = np.zeros(count, np.bool_)
    if known.discard_last:
        discarded[max(0, count - known.discard_last) :] = True
        discarded &= ~held & ~sampled
    return LeftOut(sampled, discarded) if (sampled | discarded).any() else None


def chances(split: str, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each position, always the same ones: splitmix64 of the
    position (Steele, Lea and Flood, OOPSLA 2014), begun at a hash of the source split."""
    digest = hashlib.blake2b(split.encode("utf-8", "replace"), digest_size=8).digest()
    seed = np.uint64(int.from_bytes(digest, "big"))
    with np.errstate(over="ignore"):
        mixed = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + seed
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def discards_of(counts: Sequence[int], allowed: int) -> list[int]:
    """Return how many of the last records of each batch are discarded, the newest first. counts: of
    the batches, oldest first."""
    found = list[int]()
    for count in reversed(counts):
        found.append(min(count, max(0, allowed)))
        allowed -= count
    return found[::-1]
