import gc
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import cast

import numpy as np
import pytest
import zstandard

pytest.importorskip("numba")

from lakebed.kernels import zstd as module
from lakebed.kernels.toolchain.memory import call_5
from lakebed.kernels.toolchain.native import load
from lakebed.kernels.zstd import Zstd, room_for, zstd

TEXT = b"what the sea gives back, it gives back in pieces. " * 400


def called(  # noqa: PLR0917  as kernels call it
    function: int, context: int, to: int, room: int, at: int, size: int
) -> int:
    return call_5(function, context, to, room, at, size)


Call = Callable[[int, int, int, int, int, int], int]


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Return a kernel that does nothing but call."""
    return cast("Call", load(cast("FunctionType", called), [tmp_path_factory.mktemp("kernels")]))


@pytest.fixture(params=["by the library", "by Python"])
def either(request: pytest.FixtureRequest) -> Zstd:
    if request.param == "by Python":
        return module._ByPython()
    found = module._ByLibrary.found()
    if found is None:
        pytest.skip("the wheel of zstandard has no library that exports zstd")
    return found


def compressed(found: Zstd, call: Call, raw: bytes, room: int) -> bytes | None:
    data, out = np.frombuffer(raw, np.uint8), np.zeros(room, np.uint8)
    to, at = out.ctypes.data, data.ctypes.data
    size = call(found.compress, found.compressor(1), to, room, at, len(raw))
    return None if size < 0 else out[:size].tobytes()


def decompressed(found: Zstd, call: Call, raw: bytes, room: int) -> bytes | None:
    data, out = np.frombuffer(raw, np.uint8), np.zeros(room, np.uint8)
    to, at = out.ctypes.data, data.ctypes.data
    size = call(found.decompress, found.decompressor(), to, room, at, len(raw))
    return None if size < 0 else out[:size].tobytes()


def test_both_write_the_bytes_that_python_writes(either: Zstd, call: Call) -> None:
    for raw in (b"", TEXT, np.random.default_rng(0).bytes(300_000)):
        wanted = zstandard.ZstdCompressor(level=1).compress(raw)
        assert compressed(either, call, raw, room_for(len(raw))) == wanted


def test_both_read_them_again(either: Zstd, call: Call) -> None:
    stored = zstandard.ZstdCompressor(level=3).compress(TEXT)
    assert decompressed(either, call, stored, len(TEXT)) == TEXT
    assert decompressed(either, call, stored, len(TEXT) + 9) == TEXT


def test_both_refuse_what_is_no_frame_or_does_not_fit(either: Zstd, call: Call) -> None:
    stored = zstandard.ZstdCompressor(level=3).compress(TEXT)
    assert decompressed(either, call, stored, len(TEXT) - 1) is None
    assert decompressed(either, call, stored[:-1], len(TEXT)) is None
    assert decompressed(either, call, TEXT, len(TEXT)) is None
    assert decompressed(either, call, stored + b"more", len(TEXT)) is None
    assert compressed(either, call, TEXT, 3) is None


def test_a_frame_that_does_not_tell_its_size_is_read_by_both(either: Zstd, call: Call) -> None:
    stored = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert decompressed(either, call, stored, len(TEXT)) == TEXT


def test_each_thread_has_contexts_of_its_own_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    found = module._ByLibrary.found()
    if found is None:
        pytest.skip("the wheel of zstandard has no library that exports zstd")
    freed = []
    free = found._free_decompressor

    def free_and_tell(address: int) -> None:
        freed.append(address)
        free(address)

    monkeypatch.setattr(found, "_free_decompressor", free_and_tell)
    own = found.decompressor()
    assert found.decompressor() == own
    others = []

    def work() -> None:
        others.append(found.decompressor())
        stored = zstandard.ZstdCompressor().compress(TEXT)
        assert decompressed(found, call, stored, len(TEXT)) == TEXT

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert own not in others
    assert freed == others


def test_python_does_it_where_the_library_is_absent_or_of_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as without:
        without.setattr(zstandard, "__file__", str(tmp_path / "__init__.py"))
        assert isinstance(zstd.__wrapped__(), module._ByPython)
    with monkeypatch.context() as another:
        another.setattr(zstandard, "ZSTD_VERSION", (1, 4, 9))
        assert isinstance(zstd.__wrapped__(), module._ByPython)
