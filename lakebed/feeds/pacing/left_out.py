"""Records that a policy leaves out: while its source is too fast, by chance that follows from their
positions, or the newest; at any time, those that are equal to the one before. They leave with the
commit that moves the position behind them, and are counted there (protocol R14).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.feeds.made_rows import KnownBefore
from lakebed.model.feeds.tallies import Tally

Mask = npt.NDArray[np.bool_]
DIGEST_BYTES = 16


class LeftOut(msgspec.Struct, frozen=True):
    """Masks, by record: each is in one of them, or in none.

    equal: to the one before, of those that are in no other.
    """

    sampled: Mask
    discarded: Mask
    equal: Mask

    @property
    def any(self) -> Mask:
        """Return the mask of all records that are left out."""
        return self.sampled | self.discarded | self.equal


def left_out(
    split: str,
    batch: pa.RecordBatch,
    known: KnownBefore[pa.RecordBatch],
    held: Mask,
    *,
    drops_equal: bool,
) -> LeftOut | None:
    """Return which records are left out; None: none is.

    held: which are in the quarantine: they stay there, and are counted as that (protocol R13).
    drops_equal: whether those are that are equal to the one before.
    """
    is_fast_enough = known.keep >= 1 and not known.discard_last
    if (is_fast_enough and not drops_equal) or known.in_table:
        return None
    count = batch.num_rows
    sampled = discarded = equal = np.zeros(count, np.bool_)
    if known.keep < 1:
        sampled = ~held & (chances(split, batch["position"].to_numpy()) >= known.keep)
    if known.discard_last:
        is_last = np.arange(count) >= count - known.discard_last
        discarded = is_last & ~held & ~sampled
    if drops_equal:  # of those that are not left out: one of them stays
        rest = ~(sampled | discarded)
        equal = np.zeros(count, np.bool_)
        equal[rest] = are_as_before(batch.filter(pa.array(rest)), known.last)
        equal &= ~held
    return LeftOut(sampled, discarded, equal)


def last_of(batch: pa.RecordBatch, left: LeftOut, count: int, before: bytes) -> bytes:
    """Return a digest of the last record that was compared.

    count: of those that were taken.
    before: the digest before them.
    """
    compared = np.flatnonzero(~(left.sampled | left.discarded)[:count])
    return digest_of_record(batch, int(compared[-1])) if len(compared) else before


def are_as_before(records: pa.RecordBatch, last: bytes) -> Mask:
    """Return which records have the key and the value of the one before. last: its digest, of the
    first one; empty: it has none."""
    found = np.zeros(records.num_rows, np.bool_)
    if records.num_rows:
        found[0] = bool(last) and digest_of_record(records, 0) == last
        found[1:] = _equal_to_next(records["value"]) & _equal_to_next(records["key"])
    return found


def digest_of_record(records: pa.RecordBatch, index: int) -> bytes:
    """Return a digest of a record's key and value, which are there, empty, or not."""
    hashed = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name in ("key", "value"):
        part = records[name][index].as_py()  # bounded: one record of a batch
        hashed.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return hashed.digest()


def _equal_to_next(column: pa.Array) -> Mask:
    """Return of each value but the first whether the one before is the same, or absent too."""
    before, after = column[:-1], column[1:]
    same = pc.fill_null(pc.equal(before, after), fill_value=False)
    both_null = pc.and_(pc.is_null(before), pc.is_null(after))
    found: Mask = pc.or_(same, both_null).to_numpy(zero_copy_only=False)
    return found


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


def allowed_of(fraction: float, hour: Tally, count: int, *, may_turn: bool) -> int:
    """Return how many of some records may be discarded, so that never a greater share is of their
    hour, nor of the next one.

    hour: what became of records of their source split in this hour.
    may_turn: whether the hour may be another one when they are committed: nothing is known of that.
    """
    allowed = int(fraction * (hour.read + count)) - hour.discarded
    return max(0, min(allowed, int(fraction * count)) if may_turn else allowed)


def discards_of(counts: Sequence[int], allowed: int) -> list[int]:
    """Return how many of the last records of each batch are discarded, the newest first. counts: of
    the batches, oldest first."""
    found = list[int]()
    for count in reversed(counts):
        found.append(min(count, max(0, allowed)))
        allowed -= count
    return found[::-1]
