"""Names the processor that machine code is for: the one at hand, or a baseline that many machines
have.

The variables of numba choose another processor; what it compiles for then is repeated here, because
directories of machine code are named after it.
"""

from __future__ import annotations

import os
import platform
from typing import NamedTuple

from llvmlite import binding

NAME_VARIABLE, FEATURES_VARIABLE = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"
"""Variables of the processor's name and features: numba compiles for them, where they are set, and
not for the machine that it runs on."""
_GENERIC = "generic"


class Processor(NamedTuple):
    """A processor as LLVM names it.

    features: those that code may use beside the name's own; LLVM's way to write them: `+avx2,+fma`.
    """

    name: str
    features: str

    def supported(self) -> bool:
        """Return whether the machine at hand has all features, and so runs code for this
        processor."""
        here = binding.get_host_cpu_features()
        wanted = (feature.lstrip("+") for feature in self.features.split(","))
        return all(here.get(feature, False) for feature in wanted)


_BASELINES = {
    # What `x86-64-v3` stands for is named again, so that it is looked for; with pclmul, which all
    # processors with AVX2 have: checksums need it. Intel since Haswell (2013), AMD since Zen.
    "x86_64": Processor(
        "x86-64-v3",
        "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+f16c,+fma,+fxsr,+lzcnt,+movbe,+pclmul,+popcnt,+sahf"
        ",+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
    # All that Graviton 2 and later, and no other name, have in common.
    "aarch64": Processor(_GENERIC, "+crc,+fp-armv8,+lse,+neon"),
}


def baseline() -> Processor | None:
    """Return the processor that images are compiled for on an architecture like this machine's;
    None: images are not made for it."""
    return _BASELINES.get(platform.machine())


def compiled_for() -> Processor:
    """Return what numba compiles for in this process: the machine at hand, as far as no variable
    names another processor."""
    name, features = (os.environ.get(variable) for variable in (NAME_VARIABLE, FEATURES_VARIABLE))
    if features is None:
        generic = name is not None and name.lower() == _GENERIC
        features = "" if generic else binding.get_host_cpu_features().flatten()
    return Processor(binding.get_host_cpu_name() if name is None else name, features)
