"""Leaves that share files are read together."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

import lakebed
from lakebed.model.files import FilePart, StoredFile
from lakebed.model.names import FileName
from lakebed.model.ranges import KeyRange
from lakebed.sorted_files.reading import leaf_groups
from lakebed.sorted_files.reading.leaf_groups import read_together

LEAVES = 60


def leaf(least: str, end: str, *files: str, rows: int = 3) -> list[FilePart]:
    key_range = KeyRange(least.encode(), end.encode())
    return [
        FilePart(StoredFile(FileName(name.encode()), 9, 5, 1, 1), name, key_range, rows)
        for name in files
    ]


def pictured(leaves: Sequence[Sequence[FilePart]], *, each: bool = False) -> list[str]:
    """Return for each group its files, each with the key ranges that are read."""
    return [
        " ".join(
            one.part.path
            + "".join(f"[{r.min.decode()}{(r.max or b'').decode()})" for r in one.key_ranges)
            for one in group
        )
        for group in read_together(leaves, each=each)
    ]


def test_neighbours_with_the_same_files_are_one_group() -> None:
    leaves = [leaf("a", "b", "F", "G"), leaf("b", "c", "F", "G"), leaf("c", "d", "F")]
    assert pictured(leaves) == ["F[ad) G[ac)"]
    (group,) = read_together(leaves)
    assert [(one.part.key_range, one.part.rows) for one in group] == [
        (KeyRange(b"a", b"d"), 9),
        (KeyRange(b"a", b"c"), 6),
    ]


def test_what_lies_between_leaves_is_not_read() -> None:
    leaves = [leaf("a", "b", "F"), leaf("b", "c", "C"), leaf("d", "e", "F")]
    assert pictured(leaves) == ["F[ab)", "C[bc)", "F[de)"]
    assert pictured([leaves[0], leaf("b", "c", "C", "F"), leaf("d", "e", "F")]) == [
        "F[ac)[de) C[bc)"
    ]


def test_leaves_with_many_rows_or_files_of_their_own_stay_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = [leaf("a", "b", "F", "A", rows=60_000), leaf("b", "c", "F", "B", rows=60_000)]
    assert pictured(large) == ["F[ab) A[ab)", "F[bc) B[bc)"]
    same = [leaf("a", "b", "F", rows=60_000), leaf("b", "c", "F", rows=60_000)]
    assert pictured(same) == ["F[ac)"]
    monkeypatch.setattr(leaf_groups, "TOGETHER_PARTS_MAX", 2)
    small = [leaf("a", "b", "F", "A"), leaf("b", "c", "F", "B"), leaf("c", "d", "F")]
    assert pictured(small) == ["F[ab) A[ab)", "F[bd) B[bc)"]


def test_leaves_can_be_read_each_on_its_own() -> None:
    leaves = [leaf("a", "b", "F"), leaf("b", "c", "F")]
    assert pictured(leaves, each=True) == ["F[ab)", "F[bc)"]


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> lakebed.Table:
    lake = lakebed.connect(tmp_path_factory.mktemp("lake"))
    return lake.create_table(
        "t",
        lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"}),
        split_points=[3 * place for place in range(1, LEAVES)],
    )


def rows(ids: Sequence[int], name: str) -> pa.Table:
    return pa.table({"id": ids, "name": [f"{name}{id_}" for id_ in ids]})


def test_a_file_of_many_leaves_is_read_once(table: lakebed.Table) -> None:
    given = rows(range(3 * LEAVES), "a")
    table.ingest(given)
    told = table.explain()
    assert (told.leaves_reached, told.files_matching) == (LEAVES, LEAVES)
    assert (told.rows, told.row_groups_read) == (3 * LEAVES, 1)
    assert told.requests <= 2, "a tail and a row group"
    assert table.query().read_all().to_pydict() == given.to_pydict()


def test_leaves_of_which_each_second_one_has_files_of_its_own(table: lakebed.Table) -> None:
    table.ingest(rows(range(3 * LEAVES), "a"))
    table.change_settings(shared_file_rows_max=0)
    table.ingest(rows([i for i in range(3 * LEAVES) if i // 3 % 2], "b"))
    table.compact()  # those with two files get one of their own
    table.ingest(rows([1, 100], "c"))
    found = table.query().read_all().to_pydict()
    wanted = [(i, f"a{i}") for i in range(3 * LEAVES)]
    wanted += [(i, f"b{i}") for i in range(3 * LEAVES) if i // 3 % 2]
    wanted += [(1, "c1"), (100, "c100")]
    assert sorted(zip(found["id"], found["name"], strict=True)) == sorted(wanted)
    assert found["id"] == sorted(found["id"])
    told = table.explain()
    assert told.files_matching >= LEAVES
    keys = [5, 100, 3 * LEAVES - 1, 3 * LEAVES]
    some = table.query(keys=keys).read_all().to_pydict()
    assert some["id"] == [5, 5, 100, 100, 100, 179, 179]
    some = table.query(ranges={"id": (4, 11)}, columns=["id"]).read_all().to_pydict()
    assert some["id"] == [i for i in wanted_ids(wanted) if 4 <= i < 11]


def wanted_ids(wanted: Sequence[tuple[int, str]]) -> list[int]:
    return sorted(i for i, _ in wanted)
