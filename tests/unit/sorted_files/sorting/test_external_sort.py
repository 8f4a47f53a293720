import errno
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import InvalidError, StorageFullError
from lakebed.model.keys import encode_key
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.sorting import external_sort
from lakebed.sorted_files.sorting.external_sort import ExternalSorter
from tests.unit.sorted_files.lakes import SLEEPER, batch_of


def some_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "key": f"{rng.randrange(300)}" + "\x00" * rng.randrange(2),
            "timestamp": rng.randrange(5),
            "value": str(number),
            "note": rng.choice([None, "n"]),
        }
        for number in range(count)
    ]


def add_all(sorter: ExternalSorter, rows: list[dict[str, Any]], step: int) -> None:
    for at in range(0, len(rows), step):
        sorter.add(batch_of(SLEEPER, rows[at : at + step]))


def rows_of(sorter: ExternalSorter, key_range: KeyRange = EVERYTHING) -> list[dict[str, Any]]:
    return [row for batch in sorter.sorted_batches(key_range) for row in batch.to_pylist()]


def key_of(row: dict[str, Any]) -> tuple[bytes, int]:
    return row["key"].encode(), row["timestamp"]


def encoded(row: dict[str, Any]) -> bytes:
    return encode_key(SLEEPER.row_keys, [row["key"]])


@pytest.mark.parametrize("memory_bytes", [3 * 4_000, 3 * 40_000, 1 << 30])
@pytest.mark.parametrize("runs_max", [2, 3, 64])
def test_spilled_rows_come_as_sorted_as_rows_in_memory(
    tmp_path: Path, memory_bytes: int, runs_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_sort, "RUNS_MAX", runs_max)
    rows = some_rows(3000)
    directory = tmp_path / "made when needed"
    with ExternalSorter(SLEEPER, directory=directory, memory_bytes=memory_bytes) as sorter:
        add_all(sorter, rows, 100)
        found = rows_of(sorter)
        assert directory.exists() == (memory_bytes < 1 << 30)
        assert len(list(directory.rglob("*.arrow"))) <= 8 * runs_max
        assert [key_of(r) for r in found] == sorted(key_of(r) for r in rows)
        assert sorted(map(repr, found)) == sorted(map(repr, rows))
        cuts = [b"", *sorted({encoded(rows[n]) for n in range(7)}), None]
        key_ranges = [KeyRange(a or b"", b) for a, b in pairwise(cuts)]
        apart = [rows_of(sorter, key_range) for key_range in key_ranges]
        counts = [sum(r.contains(encoded(row)) for row in rows) for r in key_ranges]
        assert sorter.rows_in(key_ranges) == counts == [len(part) for part in apart]
        assert [key_of(row) for part in apart for row in part] == [key_of(r) for r in found]
        add_all(sorter, rows[:50], 7)
        assert sum(sorter.rows_in(key_ranges)) == 3050
    assert not directory.exists() or not any(directory.iterdir())


def test_an_empty_sorter_has_no_rows(tmp_path: Path) -> None:
    with ExternalSorter(SLEEPER, directory=tmp_path, memory_bytes=1) as sorter:
        sorter.add(batch_of(SLEEPER, []))
        assert sorter.rows_in([EVERYTHING, KeyRange(b"a", b"b")]) == [0, 0]
        assert rows_of(sorter) == []


def test_a_null_or_long_key_is_refused_when_it_is_added(tmp_path: Path) -> None:
    row = some_rows(1)[0]
    with ExternalSorter(SLEEPER, directory=tmp_path, memory_bytes=1 << 20) as sorter:
        with pytest.raises(InvalidError, match="too long"):
            sorter.add(batch_of(SLEEPER, [{**row, "key": "x" * 1024}]))
        columns = pa.schema([c.with_nullable(True) for c in arrow_schema(SLEEPER)])
        null = pa.RecordBatch.from_pylist([{**row, "key": None}], schema=columns)
        with pytest.raises(InvalidError, match="null"):
            sorter.add(pa.RecordBatch.from_arrays(null.columns, schema=arrow_schema(SLEEPER)))
        assert rows_of(sorter) == []


def test_a_full_disk_is_told_as_such_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with ExternalSorter(SLEEPER, directory=tmp_path, memory_bytes=3 * 4000) as sorter:
        add_all(sorter, some_rows(60), 60)
        monkeypatch.setattr(external_sort.pa, "OSFile", full)
        with pytest.raises(StorageFullError):
            add_all(sorter, some_rows(3000), 100)
    assert not any(tmp_path.iterdir())


def test_a_batch_larger_than_the_memory_is_taken_in_pieces(tmp_path: Path) -> None:
    rows = some_rows(2000)
    with ExternalSorter(SLEEPER, directory=tmp_path, memory_bytes=3 * 5000) as sorter:
        sorter.add(batch_of(SLEEPER, rows))
        assert [key_of(r) for r in rows_of(sorter)] == sorted(map(key_of, rows))


def test_rows_that_are_not_sorted_where_they_lie_are_not_in_memory_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_of(row_keys={"key": "int64"}, values={"flag": "bool", "text": "string"})
    memory, row, copied = 8 << 20, 1_000, list[int]()
    before, spill = pa.total_allocated_bytes(), ExternalSorter._spill_runs

    def looked_at(sorter: ExternalSorter) -> None:
        copied.append(pa.total_allocated_bytes() - before)
        spill(sorter)

    monkeypatch.setattr(ExternalSorter, "_spill_runs", looked_at)
    with ExternalSorter(schema, directory=tmp_path, memory_bytes=memory) as sorter:
        for at in range(0, 3 * memory // row, 100):
            keys = [-key for key in range(at, at + 100)]
            texts = [f"{key}".zfill(row) for key in keys]
            columns = [pa.array(keys), pa.array([True] * 100), pa.array(texts)]
            sorter.add(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
        batches = sorter.sorted_batches(EVERYTHING)
        found = [key for rows in batches for key in rows["key"].to_pylist()]
    assert found == sorted(found)
    assert len(copied) > 1
    assert max(copied) < memory // 4, "runs wait for each other in memory"
