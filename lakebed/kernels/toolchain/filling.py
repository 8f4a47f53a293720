"""Fills a cache of kernels while an image is built: `python -m lakebed.kernels.toolchain.filling`.

All kernels are compiled for the baseline of this machine's architecture, into the directory that
LAKEBED_KERNEL_CACHE names. A process that runs later, on any machine that has the baseline's
features, compiles nothing, and need not be able to write there.
"""

from __future__ import annotations

import os
import pkgutil
import platform
import sys
from importlib import import_module

from lakebed import kernels
from lakebed.errors import InvalidError
from lakebed.kernels.toolchain import compiling, processors


def fill() -> int:
    """Compile all kernels for the baseline, and keep them. Returns how many.

    Raises:
        InvalidError: there is no baseline for this machine, or the directory cannot be written.
    """
    target = processors.baseline()
    if target is None:
        raise InvalidError(
            "images are not made for this processor",
            processor=platform.machine(),
            hint="build them for linux/amd64 or linux/arm64",
        )
    os.environ[processors.NAME_VARIABLE] = target.name
    os.environ[processors.FEATURES_VARIABLE] = target.features
    assert "numba" not in sys.modules, "numba reads its variables when it is loaded"
    for module in pkgutil.iter_modules(kernels.__path__):
        import_module(f"{kernels.__name__}.{module.name}")
    return compiling.compile_all()


if __name__ == "__main__":
    fill()
