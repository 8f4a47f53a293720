"""The decorators of kernels: compiled when first called, kept as machine code in a cache on disk.

Nothing here loads numba, and so nothing that calls a kernel does, once the kernel is in the cache:
numba takes half a second and 90 MiB to get ready. `building` compiles, `native` loads and calls.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from lakebed.errors import InvalidError
from lakebed.kernels.toolchain.native import is_kept, load
from lakebed.kernels.toolchain.presence import checked
from lakebed.kernels.toolchain.processors import Processor, baseline, compiled_for

CACHE_VARIABLE = "LAKEBED_KERNEL_CACHE"
"""A directory that is read first, perhaps filled when an image was built; else the user's cache.
Who can write it can run code: what lies there is machine code."""

CHECKED = checked()
"""A constant to the compiler: checks that are off cost nothing."""

_VERSIONED = ("numba", "llvmlite", "numpy")
_KERNELS: list[tuple[FunctionType, Callable[[], object]]] = []
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Part:
    """A function for calls from kernels, compiled as a part of each."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    @functools.cached_property
    def for_numba(self) -> object:
        """Return what numba takes instead of it. Loads numba."""
        from lakebed.kernels.toolchain import building  # noqa: PLC0415  loads numba

        return building.part_of(with_parts(self._function))


class Instruction:
    """One of `instructions`, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    @functools.cached_property
    def for_numba(self) -> object:
        """Return what numba takes instead of it. Loads numba."""
        from lakebed.kernels.toolchain import instructions  # noqa: PLC0415  loads numba

        return getattr(instructions, self._name)


def part(function: _Function) -> _Function:
    """Return a function for calls from kernels."""
    return cast("_Function", Part(cast("FunctionType", function)))


def instruction(name: str) -> Any:
    """Return an instruction for calls from kernels."""
    return Instruction(name)


def kernel(function: _Function) -> _Function:
    """Return the function compiled, for calls from Python. It runs without the interpreter's lock.

    Its arguments are integers, arrays, and records: named tuples of both, which are passed on as
    their fields, without a copy. It returns an integer or nothing.
    """

    @functools.cache
    def loaded() -> Callable[..., Any]:
        return load(cast("FunctionType", function), cache_directories())

    @functools.wraps(function)
    def call(*args: object) -> object:
        return loaded()(*args)

    _KERNELS.append((cast("FunctionType", function), loaded))
    return cast("_Function", call)


def load_kept() -> None:
    """Load the kernels of all modules that are imported, if they are in the cache: before the first
    call waits for that. Compiles none."""
    for function, loaded in _KERNELS:
        if is_kept(function, cache_directories()):
            loaded()


def compile_all() -> int:
    """Put the kernels of all modules that are imported into the cache. Returns how many.

    Raises:
        InvalidError: the cache cannot be written.
    """
    own = cache_directories()[0]
    for function, loaded in _KERNELS:
        loaded()
        if not is_kept(function, [own]):
            hint = f"let {CACHE_VARIABLE} name a directory that can be written"
            raise InvalidError("kernels cannot be kept", directory=own, hint=hint)
    return len(_KERNELS)


def with_parts(function: FunctionType) -> FunctionType:
    """Return the function with what numba takes instead of each part and instruction."""
    names = set(function.__code__.co_names)
    given = {
        name: value.for_numba if name in names and isinstance(value, Part | Instruction) else value
        for name, value in function.__globals__.items()
    }
    made = FunctionType(function.__code__, given, function.__name__, function.__defaults__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def cache_directories() -> tuple[Path, ...]:
    """Return where kernels of these sources and this numba are looked for, in this order.

    First of the processor that this process compiles for: there are kept those that were in none.
    Then of the baseline, if the machine has its features: an image's are.
    """
    configured = os.environ.get(CACHE_VARIABLE)
    directory = Path(configured) if configured else _user_cache() / "lakebed" / "kernels"
    processors = [compiled_for()]
    common = baseline()
    if common is not None and common.supported():
        processors.append(common)
    return tuple(directory / name for name in _names(tuple(processors)))


def sources() -> list[Path]:
    """Return the files that machine code is made of: the loops, and what compiles them."""
    return sorted(Path(__file__).parents[1].rglob("*.py"))


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())


@functools.cache
def _names(processors: tuple[Processor, ...]) -> tuple[str, ...]:
    """Return the name of each processor's directory, without doubles: a digest of all that code
    depends on."""
    made_of = hashlib.sha256()
    for path in sources():
        made_of.update(path.read_bytes())
    for name in _VERSIONED:
        made_of.update(f"{name} {metadata.version(name)}\n".encode())
    found = []
    for processor in processors:
        digest = made_of.copy()
        digest.update(f"{processor.name} {processor.features}".encode())
        found.append(digest.hexdigest()[:16] + ("-checked" if CHECKED else ""))
    return tuple(dict.fromkeys(found))
