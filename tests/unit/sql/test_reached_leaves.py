"""What a statement reads of a table's state: leaves that it reaches, at one version; the log once;
and of the rows no more than are asked for, with parameters, too."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.errors import TableMissingError
from lakebed.lake import Lake
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.reading.scanning import beside_each_other
from lakebed.statestore.head import TableHead
from lakebed.statestore.table_state.state import TableState

ROWS = 800_000
"""More than are read ahead of who asks, however long that takes: of batches of 2,000 rows, Arrow's
scanner and the engine's buffer of 1 MiB hold some 570,000."""
LEAVES = 8
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"v": "float64"})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """Four hundred row groups in eight leaves; batches begin with 100 rows."""
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", ROWS // 400)
    monkeypatch.setattr(beside_each_other, "ROWS_FIRST", 100)
    with lakebed.connect(tmp_path / "lake") as made:
        points = [ROWS * n // LEAVES for n in range(1, LEAVES)]
        made.create_table("t", SCHEMA, split_points=points).ingest(rows(range(ROWS)))
        yield made


def rows(ids: Sequence[int]) -> pa.Table:
    numbers = pa.array(ids, pa.int64())
    return pa.table({"id": numbers, "v": pc.divide(numbers, 7.0)})


def counted(monkeypatch: pytest.MonkeyPatch, of: type, name: str) -> list[str]:
    """Count the calls of a method."""
    calls: list[str] = []
    method = getattr(of, name)

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
        calls.append(name)
        return method(*args, **kwargs)

    monkeypatch.setattr(of, name, call)
    return calls


def test_a_point_reads_one_leaf_of_the_state_and_the_log_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves = counted(monkeypatch, TableState, "references")
    logs = counted(monkeypatch, TableHead, "_follow")
    found = lake.sql("select v from t where id = ?", [ROWS // 2 + 1]).read_all()
    assert found.num_rows == 1
    assert (len(leaves), len(logs)) == (1, 1)
    leaves.clear()
    assert lake.sql("select count(*) n from t").read_all()["n"].to_pylist() == [ROWS]
    assert len(leaves) == LEAVES


def test_fragments_are_of_the_leaves_that_a_filter_may_keep_rows_of(lake: Lake) -> None:
    data = lake["t"].dataset()
    assert len(list(data.get_fragments())) == LEAVES
    near = pc.field("id") < ROWS // LEAVES + 10
    fragments = list(data.get_fragments(filter=near))
    assert len(fragments) == 2
    kept = sum(fragment.scanner(filter=near).count_rows() for fragment in fragments)
    assert kept == ROWS // LEAVES + 10


def test_a_version_stays_when_rows_come_and_leaves_are_merged(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake["t"]
    data = table.dataset()
    assert data.count_rows() == ROWS
    table.ingest(rows(range(ROWS, ROWS + 500)))
    table.ingest(rows(range(-5, 0)))
    table.compact()
    logs = counted(monkeypatch, TableHead, "_follow")
    assert data.count_rows(pc.field("id") >= ROWS - 3) == 3, "of the past state of its number"
    assert logs, "another number than that of the newest state is looked up"
    assert data.count_rows() == ROWS
    assert sum(one.scanner().count_rows() for one in data.get_fragments()) == ROWS
    assert table.count() == ROWS + 505


def test_a_commit_of_another_process_is_seen_by_the_next_statement(
    lake: Lake, tmp_path: Path
) -> None:
    text = "select count(*) n from t where id >= ?"
    assert lake.sql(text, [ROWS]).read_all()["n"].to_pylist() == [0]
    with lakebed.connect(tmp_path / "lake") as other:
        other["t"].ingest(rows([ROWS]))
        assert lake.sql(text, [ROWS]).read_all()["n"].to_pylist() == [1]
        other.drop_table("t")
    with pytest.raises(TableMissingError):
        lake.sql(text, [ROWS])


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("select id, v from t where id >= 0", ()),
        ("select id, v from t where id >= ?", [0]),
        ("select id, v + $more from t where v >= $least", {"more": 1, "least": 0.0}),
    ],
)
def test_the_first_rows_come_before_the_last_are_read(
    lake: Lake, text: str, given: Sequence[object] | dict[str, object]
) -> None:
    seen: list[int] = []
    stream = lake.sql(text, given, on_progress=seen.append)
    assert max(seen, default=0) < ROWS // 2, "nothing was asked for yet"
    first = stream.read_next_batch()
    assert first.num_rows > 0
    assert max(seen) < ROWS, "a part of the table is enough"
    assert first.num_rows + sum(batch.num_rows for batch in stream) == ROWS
    assert max(seen) == ROWS
