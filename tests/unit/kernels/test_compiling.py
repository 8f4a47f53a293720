import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

pytest.importorskip("numba")

GATHER = """
import numpy as np
from lakebed.kernels.gathering import gather_64
values, out = np.array([5, 7], np.int64), np.zeros(3, np.uint64)
rows = np.array([1, 0, 1], np.int32)
gather_64(np.array([values.ctypes.data]), np.zeros(3, np.uint16), rows, out)
assert out.tolist() == [7, 5, 7]
"""
"""Calls one kernel, as the first in a fresh process."""


def run(code: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, cwd=ROOT, check=True
    )


def kept(cache: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p.is_file()}


def test_importing_kernels_compiles_nothing(tmp_path: Path) -> None:
    run("import lakebed.sorted_files.compiled_engine", LAKEBED_KERNEL_CACHE=str(tmp_path))
    assert not kept(tmp_path)


def test_a_kernel_is_compiled_once_for_all_processes(tmp_path: Path) -> None:
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))
    before = kept(tmp_path)
    assert before
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))
    assert kept(tmp_path) == before


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path / "file" / "cache"))


@pytest.mark.parametrize("rest", [0, 10, 100])
def test_a_cache_that_was_cut_off_is_compiled_anew(tmp_path: Path, rest: int) -> None:
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))
    for file in kept(tmp_path):
        os.truncate(file, rest)
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))


def test_checked_kernels_are_kept_apart_and_notice_a_row_that_is_not_there(tmp_path: Path) -> None:
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))
    plain = set(kept(tmp_path))
    wrong = GATHER.replace("np.zeros(3, np.uint16)", "np.ones(3, np.uint16)")
    with pytest.raises(subprocess.CalledProcessError):
        run(wrong, LAKEBED_KERNEL_CACHE=str(tmp_path), LAKEBED_KERNELS="checked")
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path), LAKEBED_KERNELS="checked")
    assert set(kept(tmp_path)) > plain
    assert {p.parent for p in kept(tmp_path)} > {p.parent for p in plain}
