import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pytest

import lakebed.kernels
from tests.tidy.source import ROOT

pytest.importorskip("numba")

from lakebed.kernels.gathering import gather_64
from lakebed.kernels.toolchain.compiling import cache_directories, sources
from lakebed.kernels.toolchain.native import array_of, load

GATHER = """
import numpy as np
from lakebed.kernels.gathering import gather_64
values, out = np.array([5, 7], np.int64), np.zeros(3, np.uint64)
rows = np.array([1, 0, 1], np.int32)
gather_64(np.array([values.ctypes.data]), np.zeros(3, np.uint16), rows, out)
assert out.tolist() == [7, 5, 7]
"""
"""Calls one kernel, as the first in a fresh process."""


AROUND = {"toolchain", "zstd"}
"""Modules of the room without kernels."""


class Weights(NamedTuple):
    numbers: npt.NDArray[np.int64]
    table: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    factor: int
    negate: bool


class Pair(NamedTuple):
    first: int
    second: int


def weighed(before: int, weights: Weights, pair: Pair, out: npt.NDArray[np.int64]) -> int:
    for place in range(len(weights.numbers)):
        out[place] = weights.numbers[place] * weights.factor + before
    total = weights.table[1, 2] + 10 * pair.first + 100 * pair.second
    return -total if weights.negate else total


def run(code: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, cwd=ROOT, check=True
    )


def kept(cache: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p.is_file()}


def kernels() -> list[FunctionType]:
    found = []
    for name in sorted({m.name for m in pkgutil.iter_modules(lakebed.kernels.__path__)} - AROUND):
        module = importlib.import_module(f"lakebed.kernels.{name}")
        wrapped = [getattr(value, "__wrapped__", None) for value in vars(module).values()]
        found += [
            function
            for function in wrapped
            if isinstance(function, FunctionType) and function.__module__ == module.__name__
        ]
    return found


@pytest.mark.timeout(600)
def test_every_kernel_compiles_as_it_is_annotated_and_needs_nothing_from_elsewhere() -> None:
    names = {function.__name__ for function in kernels()}
    assert {"merge_rows", "sort_order", "encode_strings", "read_page_locations"} <= names
    for function in kernels():
        load(function, cache_directories())


def test_a_change_of_any_loop_or_of_the_toolchain_makes_new_machine_code() -> None:
    room = Path(lakebed.kernels.__path__[0])
    assert {room / "merging.py", room / "toolchain" / "building.py"} <= set(sources())
    assert set(sources()) == set(room.rglob("*.py"))


@pytest.mark.parametrize(
    ("hint", "dimensions"),
    [
        (npt.NDArray[np.int64], 1),
        (np.ndarray[Any, np.dtype[np.int64]], 1),  # what NDArray is below numpy 2.2
        (np.ndarray[tuple[int, int], np.dtype[np.int64]], 2),
    ],
)
def test_an_array_has_the_dimensions_of_its_annotation(hint: object, dimensions: int) -> None:
    assert array_of(hint) == (np.dtype(np.int64), dimensions)


def test_arrays_that_are_not_as_annotated_are_refused() -> None:
    out, rows = np.zeros(1, np.uint64), np.zeros(1, np.int32)
    numbers = np.zeros(1, np.int64)
    for wrong in (numbers.astype(np.int32), numbers.reshape(1, 1), np.zeros(4, np.int64)[::2]):
        with pytest.raises(AssertionError, match="gather_64 takes"):
            gather_64(wrong, np.zeros(1, np.uint16), rows, out)


def test_records_are_passed_as_their_fields_also_by_code_from_the_cache(tmp_path: Path) -> None:
    numbers, table = np.array([5, 7], np.int64), np.arange(6, dtype=np.int64).reshape(2, 3)
    for _ in range(2):
        kernel, out = load(cast("FunctionType", weighed), [tmp_path]), np.zeros(2, np.int64)
        assert kernel(1, Weights(numbers, table, 3, False), Pair(2, 3), out) == 325
        assert out.tolist() == [16, 22]
        assert kernel(0, Weights(numbers, table, -1, True), Pair(0, 0), out) == -5
        assert out.tolist() == [-5, -7]


def test_a_record_of_another_kind_or_with_other_fields_is_refused(tmp_path: Path) -> None:
    kernel, out = load(cast("FunctionType", weighed), [tmp_path]), np.zeros(2, np.int64)
    weights = Weights(out, out.reshape(1, 2), 1, False)
    for wrong in ((1, 2), weights, 3):
        with pytest.raises(AssertionError, match="weighed takes a record Pair, not "):
            kernel(0, weights, wrong, out)
    with pytest.raises(AssertionError, match="weighed takes arrays of"):
        kernel(0, weights._replace(table=out), Pair(1, 2), out)


def test_kept_kernels_are_loaded_before_they_are_called_and_others_not_compiled(
    tmp_path: Path,
) -> None:
    cache = str(tmp_path)
    loads = "from lakebed.kernels.toolchain.compiling import load_kept\nload_kept()\n"
    run(f"import lakebed.kernels.gathering\n{loads}", LAKEBED_KERNEL_CACHE=cache)
    assert kept(tmp_path) == {}
    run(GATHER, LAKEBED_KERNEL_CACHE=cache)
    (path,) = kept(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # what is damaged is left to the first call
    run(f"{loads}import sys\nassert 'numba' not in sys.modules\n", LAKEBED_KERNEL_CACHE=cache)
    path.write_bytes(whole)
    first, _, rest = GATHER.partition("values")
    forget = f"import shutil, sys\nshutil.rmtree({cache!r})\n"
    without = "assert 'numba' not in sys.modules\n"
    run(f"{first}{loads}{forget}values{rest}{without}", LAKEBED_KERNEL_CACHE=cache)


def test_calling_kept_kernels_does_without_numba(tmp_path: Path) -> None:
    run(GATHER, LAKEBED_KERNEL_CACHE=str(tmp_path))
    code = GATHER + "import sys\nassert 'numba' not in sys.modules\n"
    run(code, LAKEBED_KERNEL_CACHE=str(tmp_path))


def test_importing_kernels_compiles_nothing(tmp_path: Path) -> None:
    run("import lakebed.sorted_files.sorting.compiled_engine", LAKEBED_KERNEL_CACHE=str(tmp_path))
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
