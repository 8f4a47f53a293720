from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import checking, ingest, merge, shapes
from benchmarks.figures import Figure

ROWS = 2_500
"""Of each file: enough that each leaf gets a file of its own."""

KEYS = ("key", "timestamp")


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (shapes, merge, ingest):
        monkeypatch.setattr(module, "CACHE", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "run"), [("merge", merge.run), ("ingest", ingest.run)])
def test_a_small_benchmark_gives_figures_and_leaves_nothing_but_its_inputs(
    name: str, run: Callable[[int, int], list[Figure]], tmp_path: Path
) -> None:
    names = [figure.name for figure in run(ROWS, 1)]
    assert all(given.startswith(f"{name}.sleeper.") for given in names)
    assert len(set(names)) == len(names)
    assert len(list(tmp_path.iterdir())) == 1


def test_rows_are_the_same_for_the_same_seed() -> None:
    rows = shapes.sleeper_rows(3, ROWS)
    assert rows.equals(shapes.sleeper_rows(3, ROWS))
    assert not rows.equals(shapes.sleeper_rows(4, ROWS))
    assert 0.1 < rows.column("nullable_value").null_count / ROWS < 0.3


def test_the_check_notices_a_lost_a_changed_and_a_misplaced_row(tmp_path: Path) -> None:
    rows = shapes.sleeper_rows(1, ROWS).sort_by([(key, "ascending") for key in KEYS])
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
    assert checking.is_in_order(_file(tmp_path, rows.take([1, 0, 2])), KEYS)


def _file(folder: Path, rows: pa.Table) -> Path:
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, file)
    return file
