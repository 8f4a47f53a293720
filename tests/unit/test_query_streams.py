"""Streams of rows through the public API: what they leave behind, and what they may keep."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.reading import read_ahead
from lakebed.table import Table
from lakebed.tasks.failed_work import FailedWork

ROWS = 20_000


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """Forty row groups, of which few are read ahead."""
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", ROWS // 40)
    monkeypatch.setattr(read_ahead, "PIECE_BYTES", 1024)
    with lakebed.connect(tmp_path / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"v": "float64"})
        made = lake.create_table("t", schema)
        made.ingest(pa.table({"id": range(ROWS), "v": [n / 7 for n in range(ROWS)]}))
        monkeypatch.setattr(made._app.files, "_memory_bytes", 8 * 64 * 1024)
        yield made


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("lakebed-ahead")]


def test_a_stream_that_is_dropped_leaves_no_thread(table: Table) -> None:
    rows = table.query()
    assert rows.read_next_batch().num_rows
    del rows
    for thread in readers():
        thread.join(1)
    assert not readers()


def test_a_stream_that_is_closed_reads_nothing_more(table: Table) -> None:
    rows = table.query()
    rows.read_next_batch()
    rows.close()
    until = time.monotonic() + 5
    while readers() and time.monotonic() < until:
        time.sleep(0.01)
    assert not readers()


def test_a_limit_reads_little_of_a_large_table(table: Table) -> None:
    told = table.explain(limit=3)
    whole = table.explain()
    assert (told.rows, whole.rows) == (3, ROWS)
    assert told.bytes < whole.bytes


def test_a_key_takes_one_round_when_the_tail_is_known_and_none_when_pages_are(table: Table) -> None:
    rounds = [table.explain(keys=[key]).rounds for key in (0, ROWS // 2, ROWS // 2)]
    assert rounds == [2, 1, 0]
    absent = table.explain(keys=[ROWS])
    assert (absent.rows, absent.files_matching, absent.requests) == (0, 0, 0)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, (1 << 40) + 1])
@pytest.mark.parametrize("name", ["cache_bytes", "merge_bytes"])
def test_memory_has_a_size_that_makes_sense(tmp_path: Path, name: str, size: object) -> None:
    with pytest.raises(InvalidError, match=f"{name} is not a size of memory"):
        lakebed.connect(tmp_path / "lake", **{name: size})  # type: ignore[arg-type]  # bad input
    assert not (tmp_path / "lake").exists()


def test_a_compaction_keeps_its_memory_or_is_refused(tmp_path: Path) -> None:
    smallest = 1 << 20
    for attempt in range(2):
        with lakebed.connect(tmp_path / f"{attempt}", merge_bytes=smallest) as lake:
            table = lake.create_table("t", lakebed.schema_of(row_keys={"id": "int64"}))
            for _ in range(2):
                table.ingest(pa.table({"id": range(5_000)}))
            failures: list[FailedWork] = []
            table.compact(failed=failures.append)
            (told,) = lake.status("t")
        assert len(failures) == (attempt == 0)
        if attempt == 0:
            assert told.files == 2
            found = re.search(r"needs more memory .*smallest=(\d+)", told.jobs[0].reason or "")
            assert found, told.jobs
            smallest = int(found[1])
    assert (told.files, told.rows, told.jobs) == (1, 10_000, ())


def test_the_smallest_cache_finds_the_same_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": range(5_000), "v": [n / 7 for n in range(5_000)]})
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"v": "float64?"})
    with lakebed.connect(tmp_path / "lake", cache_bytes=1 << 20) as lake:
        table = lake.create_table("t", schema)
        for _ in range(3):
            table.ingest(rows)
        for key in range(0, 5_000, 501):
            assert table.query(keys=[key]).read_all().to_pydict() == {
                "id": [key] * 3,
                "v": [key / 7] * 3,
            }


def test_a_lookup_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        lake.create_table("t", lakebed.schema_of(row_keys={"id": "int64"})).ingest(
            pa.table({"id": [1, 2]})
        )
    code = (
        "import sys, lakebed\n"
        "with lakebed.connect(sys.argv[1]) as lake:\n"
        "    assert lake.table('t').query(keys=[2]).read_all().num_rows == 1\n"
        "unneeded = ('lakebed.inspection.', 'lakebed.backends.aws', 'lakebed.backends.memory.',\n"
        "    'pyarrow.acero', 'pyarrow.dataset', 'importlib.metadata', 'numba', 'boto3')\n"
        "print([name for name in sys.modules if name.startswith(unneeded)])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lake")]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "[]\n"
