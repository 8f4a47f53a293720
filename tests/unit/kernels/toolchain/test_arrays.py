"""Arrays are where numpy says."""

import numpy as np
import numpy.typing as npt
import pytest

from lakebed.kernels.toolchain.arrays import address_of

FIRST = np.arange(12, dtype=np.int64)
READ_ONLY = np.frombuffer(b"only to be read", np.uint8)


@pytest.mark.parametrize(
    "array",
    [FIRST, FIRST[3:], FIRST[::2], FIRST.reshape(3, 4)[1], READ_ONLY, READ_ONLY[4:4]],
    ids=["whole", "rest", "gaps", "row", "read-only", "empty"],
)
def test_an_array_is_where_numpy_says(array: npt.NDArray[np.generic]) -> None:
    assert address_of(array) == array.ctypes.data
