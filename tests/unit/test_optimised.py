"""Guards of data stay where `python -O` drops every `assert`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_guards_of_data_stay_without_asserts(tmp_path: Path) -> None:
    (tmp_path / "order").mkdir()
    done = subprocess.run(
        [sys.executable, "-O", "-m", "tests.unit.optimised", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.pop("debug") == "False"
    assert told.pop("day") == "[1, 1, 2, 2]"
    assert {name: said.partition(":")[0] for name, said in told.items()} == {
        "base": "AssertionError",
        "gap": "AssertionError",
        "log": "CorruptError",
        "open": "AssertionError",
        "order": "AssertionError",
        "position": "AssertionError",
        "sequence": "AssertionError",
        "time": "AssertionError",
        "tree": "AssertionError",
    }


KERNEL = """
import ctypes, numpy as np
from lakebed.kernels.merging import Rows
from lakebed.kernels.toolchain.native import _Kernel

def reads(rows: Rows) -> int: ...

entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(lambda _a, _b: 1)
kernel = _Kernel(reads, ctypes.cast(entry, ctypes.c_void_p).value)
dtype = kernel._types[0][0]
for rows in (np.zeros(2, np.float32), np.zeros(4, dtype)[::2], np.zeros(2, dtype)):
    try:
        kernel(rows)
    except AssertionError as error:
        print(str(error).partition(" of ")[0])
"""


def test_a_kernel_refuses_what_it_would_read_wrongly_without_asserts() -> None:
    pytest.importorskip("numba")
    command = [sys.executable, "-O", "-c", KERNEL]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines() == [
        "reads takes arrays",
        "reads takes arrays without gaps",
        "a check failed in reads",
    ]
