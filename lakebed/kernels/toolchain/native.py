"""Kernels as machine code: loaded from the cache, or compiled and put there, and called.

Loading needs llvmlite, which links the code, and numba's small runtime, which allocates its arrays:
not numba. What cannot be read is compiled, what cannot be written is not kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import struct
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn, TypeGuard

import numpy as np
from llvmlite import binding

from lakebed.kernels.toolchain.arrays import address_of

ENTRY = "lakebed_kernel"
_DIGEST_BYTES = 32
_RUNTIME = "numba.core.runtime._nrt_python"
NUMBERS = (int, bool, np.uint64)
"""Arguments that are neither arrays nor records."""

_LOCK = threading.Lock()
_ENGINES: list[Any] = []
"""Engines that hold the code: for ever, as functions may be called at any time."""


def load(function: FunctionType, directories: Sequence[Path]) -> Callable[..., int | None]:
    """Return a kernel that can be called, from the first directory that holds it. Where none does,
    it is compiled and kept in the first."""
    with _LOCK:
        code = _found(function, directories)
        if code is None:
            from lakebed.kernels.toolchain import building  # noqa: PLC0415  loads numba

            code = building.build(function)
            _keep(_path(function, directories[0]), code)
        address = _linked(code)
    return _Kernel(function, address)


def is_kept(function: FunctionType, directories: Sequence[Path]) -> bool:
    """Return whether one of the directories holds a kernel, whole."""
    return _found(function, directories) is not None


def _found(function: FunctionType, directories: Sequence[Path]) -> bytes | None:
    """Return a kernel's code from the first directory that holds it."""
    found = (_kept(_path(function, directory)) for directory in directories)
    return next((code for code in found if code is not None), None)


def _path(function: FunctionType, directory: Path) -> Path:
    return directory / f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


class _Kernel:
    def __init__(self, function: FunctionType, address: int) -> None:
        hints = typing.get_type_hints(function)
        self._name = function.__name__
        self._has_result = hints.pop("return") is not type(None)
        self._records = [hint if is_record(hint) else None for hint in hints.values()]
        self._has_records = any(self._records)
        values = list(_values_of(hints.values()))
        self._types = [None if hint in NUMBERS else array_of(hint) for hint in values]
        words = ("Q" if hint is np.uint64 else "q" * _words_of(hint) for hint in values)
        self._words = struct.Struct("".join(words))
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(address)

    def __call__(self, *args: Any) -> int | None:
        words: list[int] = []
        for value, type_ in zip(self._values(args), self._types, strict=True):
            if type_ is None:
                words.append(value)
            else:
                kind, dimensions = type_
                right = value.dtype is kind or value.dtype == kind
                if not (right and value.ndim == dimensions and value.flags.c_contiguous):
                    self._refuse(value, type_)
                words += (address_of(value), *value.shape)
        result = ctypes.c_int64(0)
        failed = self._entry(self._words.pack(*words), ctypes.byref(result))
        if failed:
            raise AssertionError(f"a check failed in {self._name}")
        return result.value if self._has_result else None

    def _values(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the arguments, the fields of a record one after the other."""
        if not self._has_records:
            return args
        values: list[Any] = []
        for value, record in zip(args, self._records, strict=True):
            if record is None:
                values.append(value)
            elif type(value) is record:
                values += value
            else:
                found = type(value).__name__
                raise AssertionError(f"{self._name} takes a record {record.__name__}, not {found}")
        return values

    def _refuse(self, value: Any, type_: object) -> NoReturn:
        """Refuse what a kernel would read as something else, also where `assert` is left out."""
        found = (value.dtype, value.ndim)
        if found != type_:
            raise AssertionError(f"{self._name} takes arrays of {type_}, not {found}")
        raise AssertionError(f"{self._name} takes arrays without gaps")


def is_record(hint: object) -> TypeGuard[type[tuple[Any, ...]]]:
    """Return whether a type is that of a named tuple of numbers and arrays."""
    return isinstance(hint, type) and issubclass(hint, tuple)


def _values_of(hints: Iterable[object]) -> Iterator[object]:
    """Yield the types of arguments, of a record those of its fields."""
    for hint in hints:
        if is_record(hint):
            yield from typing.get_type_hints(hint).values()
        else:
            yield hint


def _words_of(hint: object) -> int:
    """Return how many numbers tell of an argument."""
    return 1 if hint in NUMBERS else 1 + array_of(hint)[1]


def array_of(hint: object) -> tuple[np.dtype[Any], int]:
    """Return the type and number of dimensions of an array, as it is annotated."""
    shape, element = typing.get_args(hint)
    (kind,) = typing.get_args(element)
    sizes = typing.get_args(shape)  # of `NDArray` Ellipsis is there, and below numpy 2.2 nothing
    return np.dtype(kind), 1 if not sizes or Ellipsis in sizes else len(sizes)


def _linked(code: bytes) -> int:
    """Return the address of the code's entry."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(ENTRY)
    assert address, "code has an entry"
    _ENGINES.append(engine)
    return address


@functools.cache
def _machine() -> Any:
    """Return the machine that code is linked for; make known what it may call."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, address in _runtime().c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    return binding.Target.from_default_triple().create_target_machine(jit=True)


def _runtime() -> Any:
    """Return numba's runtime, without what numba loads around it."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None, "numba is installed"
    assert spec.origin is not None, "numba lies in a directory"
    folder = Path(spec.origin).parent / "core" / "runtime"
    (path,) = [
        path for suffix in EXTENSION_SUFFIXES if (path := folder / f"_nrt_python{suffix}").exists()
    ]
    loader = ExtensionFileLoader(_RUNTIME, str(path))
    found = importlib.util.spec_from_file_location(_RUNTIME, path, loader=loader)
    assert found is not None, "an extension module"
    module = importlib.util.module_from_spec(found)
    loader.exec_module(module)
    return module


def _kept(path: Path) -> bytes | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    digest, code = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    """Put code into the cache, whole or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(hashlib.sha256(code).digest() + code)
        fresh.replace(path)
