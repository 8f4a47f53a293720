"""The decorator of every kernel: compiled when first called, kept in a cache on disk.

numba's own cache raises at import where it finds no place that it can write, and forgets that a
kernel depends on the other modules it calls. Here the cache lies in a directory named after all
sources of this room; what cannot be read is compiled, what cannot be written is not kept.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

from lakebed.kernels.presence import checked

PLACE = "LAKEBED_KERNEL_CACHE"
"""A directory that is read first, perhaps filled when an image was built; else the user's cache.
Who can write it can run code: numba's files are pickles."""

CHECKED = checked()
"""A constant to the compiler: checks that are off cost nothing."""

_UNREADABLE = (OSError, EOFError, ValueError, AttributeError, ImportError, pickle.PickleError)
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def part(function: _Kernel) -> _Kernel:
    """Return the function compiled, for calls from kernels, which hold it when they are kept."""
    return cast("_Kernel", numba.njit(nogil=True, boundscheck=CHECKED)(function))


def kernel(function: _Kernel) -> _Kernel:
    """Return the function compiled, for calls from Python. It runs without the interpreter's lock.

    Each is called with one set of types only: numba's index of a cache is not safe for more when
    two processes write it.
    """
    compiled = part(function)
    compiled._cache = _Cache(function)  # type: ignore[attr-defined]  # noqa: SLF001  not public
    return compiled


def cache_directory() -> Path:
    """Return where compiled kernels of these sources are kept."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    place = Path(os.environ.get(PLACE) or usual / "lakebed" / "kernels")
    return place / (_sources() + ("-checked" if CHECKED else ""))


def _sources() -> str:
    """Return a digest of this room's modules."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


_DIRECTORY = cache_directory()


class _Locator(caching._CacheLocator):  # type: ignore[misc]  # noqa: SLF001  no public base
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def get_cache_path(self) -> str:
        return str(_DIRECTORY)

    def ensure_cache_path(self) -> None:
        """Make the directory; whether it can be written is learned by writing."""
        _DIRECTORY.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return _DIRECTORY.name

    def get_disambiguator(self) -> str:
        return self._function.__module__.rpartition(".")[2]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _Place(caching.CompileResultCacheImpl):  # type: ignore[misc]  # numba has no types
    _locator_classes = (_Locator,)


class _Cache(caching.FunctionCache):  # type: ignore[misc]  # numba has no types
    _impl_class = _Place

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)
        except _UNREADABLE:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except _UNREADABLE:
            return
