"""Loads, copies, stores and calls, inside kernels, at addresses: signed 64-bit numbers.

Nothing here knows where a buffer ends: who calls has made sure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lakebed.kernels.toolchain.compiling import instruction

load_u64: Callable[[int], np.uint64] = instruction("load_u64")
load_i64: Callable[[int], int] = instruction("load_i64")
load_i32: Callable[[int], int] = instruction("load_i32")
load_i16: Callable[[int], int] = instruction("load_i16")
load_u16: Callable[[int], int] = instruction("load_u16")
load_i8: Callable[[int], int] = instruction("load_i8")
load_u8: Callable[[int], int] = instruction("load_u8")
big_endian: Callable[[np.uint64], np.uint64] = instruction("big_endian")
"""The bytes of a word turned around: words then compare as their bytes do."""

copy_16: Callable[[int, int], None] = instruction("copy_16")
copy_32: Callable[[int, int], None] = instruction("copy_32")
store_u8: Callable[[int, int], None] = instruction("store_u8")
store_32: Callable[[int, int], None] = instruction("store_32")
store_64: Callable[[int, int], None] = instruction("store_64")

leading_zeros: Callable[[np.uint64], int] = instruction("leading_zeros")
trailing_zeros: Callable[[np.uint64], int] = instruction("trailing_zeros")

prefetch: Callable[[int], None] = instruction("prefetch")
"""Begin to load the bytes at an address into the caches; any address will do."""

call_5: Callable[[int, int, int, int, int, int], int] = instruction("call_5")
"""Call the C function at an address, of five numbers of 64 bits, that returns one."""

folds_crc32: Callable[[], bool] = instruction("folds_crc32")
"""Return whether `fold_crc32` can be called on the target processor: known when compiled."""
fold_crc32: Callable[[int, int, int], tuple[np.uint64, np.uint64]] = instruction("fold_crc32")
"""Fold bytes into 16 of the same CRC-32: of a CRC-32 register, an address, and how many times 64
bytes lie there, at least once."""
