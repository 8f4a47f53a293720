from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import (
    ingest,
    inputs,
    merge,
    merge_limited,
    merge_pass_through,
    merge_two_workers,
)
from benchmarks.figures import Figure
from benchmarks.peers import checking
from benchmarks.shapes import FILES, LEAVES, SHAPES, SLEEPER, Shape

ROWS = 2_500
"""Of each file: enough that each leaf gets rows."""

KEYS = SLEEPER.keys


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CACHE", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "run", "sets"),
    [
        ("merge", "sleeper", merge.run, 1),
        ("merge", "dup", merge.run, 1),
        ("merge", "wide", merge_limited.run, 2),
        ("ingest", "sleeper", ingest.run, 1),
        ("ingest", "wide", ingest.run, 1),
    ],
)
def test_a_small_benchmark_gives_figures_and_leaves_nothing_but_its_inputs(
    name: str,
    shape: str,
    run: Callable[[int, int, list[str]], list[Figure]],
    sets: int,
    tmp_path: Path,
) -> None:
    names = [figure.name for figure in run(ROWS, 1, [shape])]
    assert all(given.startswith(f"{name}.{shape}.") for given in names)
    assert len(set(names)) == len(names)
    assert len(list(tmp_path.iterdir())) == sets


@pytest.mark.slow
def test_two_workers_and_files_apart_are_measured() -> None:
    names = [figure.name for figure in merge_two_workers.run(ROWS, 1, ["narrow"])]
    kinds = [f"two_workers_{start}wall_ratio_to_datafusion" for start in ("", "cold_")]
    assert names == [f"merge.{part}{kind}" for part in ("narrow.", "") for kind in kinds]
    assert merge_pass_through.run(ROWS, 1)[0].name == "merge.pass_through.ratio_to_copy"


def test_files_apart_share_no_keys(tmp_path: Path) -> None:
    files = inputs.files_in(inputs.files_apart(3, ROWS))
    spans = [pq.read_table(file, columns=["key"]).column(0) for file in files]
    assert all(before[-1].as_py() < after[0].as_py() for before, after in pairwise(spans))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_rows_are_the_same_for_the_same_seed(shape: Shape) -> None:
    rows = shape.rows(3, ROWS)
    rows.validate(full=True)
    assert rows.equals(shape.rows(3, ROWS))
    assert not rows.equals(shape.rows(4, ROWS))


def test_a_fifth_of_the_nullable_values_are_null() -> None:
    assert 0.1 < SLEEPER.rows(3, ROWS).column("nullable_value").null_count / ROWS < 0.3


def test_each_key_of_dup_comes_about_ten_times() -> None:
    keys = pa.concat_tables(SHAPES["dup"].rows(seed, ROWS) for seed in range(FILES)).column("key")
    assert 8 < len(keys) / len(keys.unique()) < 12


@pytest.mark.parametrize("name", ["sleeper", "sys", "narrow", "wide"])
def test_leaves_have_about_as_many_rows_each(name: str) -> None:
    keys = SHAPES[name].rows(3, ROWS).column(0).to_pylist()
    points = SHAPES[name].split_points
    counts = Counter(bisect_right(points, key) for key in keys)
    assert sorted(counts) == list(range(LEAVES))
    assert max(counts.values()) < 2 * min(counts.values())


def test_what_another_process_made_first_is_kept(tmp_path: Path) -> None:
    made = inputs.unsorted_files(SLEEPER, 1, ROWS)

    def fill(folder: Path) -> None:
        (folder / "slower").touch()
        made.rename(tmp_path / "sleeper-1-other")

    assert inputs.kept("sleeper-1-other", fill) == tmp_path / "sleeper-1-other"
    assert [path.name for path in tmp_path.iterdir()] == ["sleeper-1-other"]
    assert [path.name for path in (tmp_path / "sleeper-1-other").iterdir()] == ["000.parquet"]


def test_the_check_notices_a_lost_a_changed_and_a_misplaced_row(tmp_path: Path) -> None:
    rows = SLEEPER.rows(1, ROWS).sort_by([(key, "ascending") for key in KEYS])
    right = _file(tmp_path, rows)
    wanted = checking.contents([right])
    assert checking.is_in_order(right, KEYS)
    halves = [_file(tmp_path, rows.slice(0, 900)), _file(tmp_path, rows.slice(900))]
    assert checking.contents(halves) == wanted
    assert checking.contents(halves[:1]) != wanted
    other = rows.set_column(2, rows.schema.field(2), pa.array(["x"] * ROWS))
    assert checking.contents([_file(tmp_path, other)]) != wanted
    swapped = _file(tmp_path, pa.concat_tables([rows.slice(900), rows.slice(0, 900)]))
    assert checking.contents([swapped]) == wanted
    assert not checking.is_in_order(swapped, KEYS)


def test_the_order_of_the_second_key_counts(tmp_path: Path) -> None:
    rows = pa.table({"key": ["a", "a", "b"], "timestamp": [2, 1, 0]})
    assert not checking.is_in_order(_file(tmp_path, rows), KEYS)
    assert checking.is_in_order(_file(tmp_path, rows), KEYS[:1])
    assert checking.is_in_order(_file(tmp_path, rows.take([1, 0, 2])), KEYS)


def test_an_output_that_was_found_right_is_known_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = SLEEPER.rows(1, ROWS).sort_by([(key, "ascending") for key in KEYS])
    right, wrong = _file(tmp_path, rows), _file(tmp_path, rows.slice(1))
    check = checking.Check(checking.contents([right]), KEYS)
    for _ in range(2):
        with pytest.raises(AssertionError, match="ours lost rows"):
            check([wrong], "ours")
    check([right], "ours")
    monkeypatch.setattr(checking, "contents", None)
    check([right], "ours")


def _file(folder: Path, rows: pa.Table) -> Path:
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, file)
    return file
