"""Finds whether the compiled loops can be used here. Asking loads numba only where none are
kept."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os

from lakebed.observe import events

SWITCH = "LAKEBED_KERNELS"
"""`off`: the plain path everywhere. `always`: kernels for jobs of any size. `checked`: they are
compiled with a check of every row and index."""


def available() -> bool:
    """Return whether kernels can be called. Where numba is absent or unfit, the log says so
    once."""
    return os.environ.get(SWITCH) != "off" and _loads()


def always() -> bool:
    """Return whether small jobs are to use kernels too, for tests and for workers that live
    long."""
    return os.environ.get(SWITCH) == "always"


def checked() -> bool:
    """Return whether kernels are compiled with checks, for tests and for hunting a bug."""
    return os.environ.get(SWITCH) == "checked"


@functools.cache
def _loads() -> bool:
    try:
        compiling = importlib.import_module("lakebed.kernels.toolchain.compiling")
        importlib.import_module("llvmlite.binding")
        if not any(directory.is_dir() for directory in compiling.cache_directories()):
            importlib.import_module("numba")
    except (ImportError, OSError) as error:  # absent; of another numpy; a library that is missing
        problem = "not installed" if isinstance(error, ModuleNotFoundError) else str(error)
        events.emit(events.KERNELS_ABSENT, problem=problem)
        return False
    return True
