"""CRC-32s of kernels are zlib's."""

import random
import zlib

import numpy as np
import pytest

pytest.importorskip("numba")

from lakebed.kernels.checksums import crc32, joined_crc32
from lakebed.kernels.toolchain.compiling import kernel

SIZES = [*range(18), 63, 64, 65, 127, 128, 129, 191, 200, 1000, 4097]


@kernel
def checksum(before: int, at: int, size: int) -> int:
    """Return the CRC-32 of some bytes."""
    return crc32(before, at, size)


@kernel
def joined(first: int, second: int, size: int) -> int:
    """Return the CRC-32 of bytes by those of their parts."""
    return joined_crc32(first, second, size)


@pytest.mark.parametrize("size", SIZES)
def test_the_checksum_of_bytes_behind_others_is_zlibs(size: int) -> None:
    raw = random.Random(size).randbytes(7 + size)
    place = np.frombuffer(raw, np.uint8).ctypes.data
    assert checksum(0, place + 7, size) == zlib.crc32(raw[7:])
    assert checksum(zlib.crc32(raw[:7]), place + 7, size) == zlib.crc32(raw)


@pytest.mark.parametrize("size", SIZES)
def test_checksums_of_parts_join(size: int) -> None:
    raw = random.Random(size).randbytes(9 + size)
    assert joined(zlib.crc32(raw[:9]), zlib.crc32(raw[9:]), size) == zlib.crc32(raw)
