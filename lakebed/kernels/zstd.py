"""zstd for kernels: addresses of functions that they call, and what these work with.

The wheel of `zstandard` has a library for cffi that exports zstd's own C functions, beside the one
that Python uses. Where it is absent, or is of another version, functions of the same form lead back
to Python: slower, the same bytes.

Both give a negative number where something is wrong, as zstd's errors are when taken as signed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import weakref
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Protocol

import zstandard

_COMPRESSION_LEVEL = 100
"""The number of zstd's parameter."""
_FAILED = -1
_NUMBER = ctypes.c_int64
_NUMBERS_5 = (_NUMBER,) * 5


class Zstd(Protocol):
    """Functions of five numbers: context, address to write at, room there, address and size of what
    is read. They return how many bytes they wrote, or a negative number."""

    compress: int
    decompress: int

    def compressor(self, level: int) -> int:
        """Return this thread's context for `compress`: valid as long as the thread runs."""
        ...

    def decompressor(self) -> int:
        """Return this thread's context for `decompress`: valid as long as the thread runs."""
        ...


def room_for(size: int) -> int:
    """Return how many bytes so many become at most, compressed."""
    margin = max(0, (1 << 17) - size) >> 11
    return size + (size >> 8) + margin


@functools.cache
def zstd() -> Zstd:
    """Return zstd's functions in this process."""
    return _ByLibrary.found() or _ByPython()


class _Contexts(threading.local):
    """The contexts that this thread has made so far, by compression level; None: to decompress."""

    def __init__(self) -> None:
        self.made: dict[int | None, _Context] = {}


class _Context:
    """Memory of zstd's, given back when nothing refers to it."""

    def __init__(self, address: int, free: Any) -> None:
        self.address = address
        weakref.finalize(self, free, address).atexit = False


class _ByLibrary:
    """zstd's own functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.compress = _address(library.ZSTD_compress2)
        self.decompress = _address(library.ZSTD_decompressDCtx)
        self._create_compressor = ctypes.CFUNCTYPE(ctypes.c_void_p)(
            _address(library.ZSTD_createCCtx)
        )
        self._create_decompressor = ctypes.CFUNCTYPE(ctypes.c_void_p)(
            _address(library.ZSTD_createDCtx)
        )
        free = ctypes.CFUNCTYPE(_NUMBER, ctypes.c_void_p)
        self._free_compressor = free(_address(library.ZSTD_freeCCtx))
        self._free_decompressor = free(_address(library.ZSTD_freeDCtx))
        self._set = ctypes.CFUNCTYPE(_NUMBER, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(
            _address(library.ZSTD_CCtx_setParameter)
        )
        self._contexts = _Contexts()

    @classmethod
    def found(cls) -> _ByLibrary | None:
        """Return what the wheel's library exports; None: nothing that would do."""
        folder = Path(zstandard.__file__).parent
        for path in (folder / f"_cffi{suffix}" for suffix in EXTENSION_SUFFIXES):
            with contextlib.suppress(OSError, AttributeError):  # absent; it exports nothing
                library = ctypes.CDLL(str(path))
                major, minor, patch = zstandard.ZSTD_VERSION
                if library.ZSTD_versionNumber() == 10_000 * major + 100 * minor + patch:
                    return cls(library)
        return None

    def compressor(self, level: int) -> int:
        made = self._contexts.made
        if level not in made:
            made[level] = _Context(_allocated(self._create_compressor()), self._free_compressor)
            kept = self._set(made[level].address, _COMPRESSION_LEVEL, level)
            if kept < 0:
                raise AssertionError(f"zstd has no level {level}")
        return made[level].address

    def decompressor(self) -> int:
        made = self._contexts.made
        if None not in made:
            made[None] = _Context(_allocated(self._create_decompressor()), self._free_decompressor)
        return made[None].address


def _allocated(address: int | None) -> int:
    if address is None:
        raise MemoryError
    return address


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address, "a symbol has an address"
    return address


class _ByPython:
    """Functions that take the interpreter's lock and call `zstandard`. A context for `compress` is
    the level."""

    def __init__(self) -> None:
        form = ctypes.CFUNCTYPE(_NUMBER, *_NUMBERS_5)
        self._kept = form(_compress), form(_decompress)
        self.compress, self.decompress = map(_address, self._kept)

    def compressor(self, level: int) -> int:
        return level

    def decompressor(self) -> int:
        return 0


def _compress(level: int, to: int, room: int, at: int, size: int) -> int:
    return _written(zstandard.ZstdCompressor(level=level).compress(_bytes_at(at, size)), to, room)


def _decompress(_: int, to: int, room: int, at: int, size: int) -> int:
    try:
        body = _bytes_at(at, size)
        if zstandard.frame_content_size(body) > room:
            return _FAILED
        decompress = zstandard.ZstdDecompressor().decompress
        return _written(decompress(body, max_output_size=room, allow_extra_data=False), to, room)
    except zstandard.ZstdError:
        return _FAILED


def _bytes_at(at: int, size: int) -> bytes:
    return ctypes.string_at(at, size)


def _written(raw: bytes, to: int, room: int) -> int:
    if len(raw) > room:
        return _FAILED
    ctypes.memmove(to, raw, len(raw))
    return len(raw)
