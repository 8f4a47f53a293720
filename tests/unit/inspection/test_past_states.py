from pathlib import Path

import pytest

from lakebed.bootstrap.local import open_local
from lakebed.errors import InvalidError, LogTruncatedError
from lakebed.inspection.log_listing import entry_lines, list_log
from lakebed.inspection.past_state import draw_state
from lakebed.lake import Lake
from lakebed.statestore.log_entries.codec import encode_entry
from tests.golden import check_golden
from tests.golden.every_change import every_change
from tests.unit.inspection.lakes import SCHEMA, build, copied, rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("past") / "whole"
    build(path)
    return path


class OneEntry:
    """A log of one entry, in which every kind of change is."""

    def read_after(self, number: int) -> list[tuple[int, bytes]]:
        return [(1, encode_entry(every_change()))] if number < 1 else []


def test_every_kind_of_change_is_told_in_a_phrase() -> None:
    (entry,) = list_log(OneEntry(), entries_max=5).entries  # type: ignore[arg-type]  # it reads
    entry_without_size = [line.partition(" bytes")[0] for line in entry_lines(entry, "then")][1:]
    check_golden("log_listing.txt", "\n".join(entry_without_size) + "\n")


def test_the_log_is_listed_from_its_end_or_from_where_one_asks(tmp_path: Path) -> None:
    with Lake(open_local(tmp_path / "lake")) as lake:
        table = lake.create_table("t", SCHEMA)
        for seed in range(5):
            table.ingest(rows(seed, 10), job=f"job-{seed}")
        newest = table.log(entries_max=2)
        assert [entry.number for entry in newest.entries] == [5, 6]
        assert newest.oldest == 1
        assert newest.entries[-1].transactions[0].does == ("add 1 file, 10 rows in leaf 1",)
        assert [entry.number for entry in table.log(after=2, entries_max=2).entries] == [3, 4]
        assert table.log(after=6).entries == ()
        assert [entry.number for entry in table.log().entries] == [1, 2, 3, 4, 5, 6]


def test_each_state_of_the_past_holds_what_was_committed_until_then(tmp_path: Path) -> None:
    with Lake(open_local(tmp_path / "lake")) as lake:
        table = lake.create_table("t", SCHEMA)
        for seed in range(4):
            table.ingest(rows(seed, 10), job=f"job-{seed}")
            if seed == 1:
                assert table.write_snapshot() == 3
        for number in range(1, 6):
            shown = table.state(number=number, files_max=3)
            assert (shown.number, shown.files, shown.rows) == (number, number - 1, 10 * number - 10)
            assert len(shown.references) == min(3, number - 1)
        with table._opened.head.reading() as state:
            assert table.state().digest == state.digest().hex()
        with pytest.raises(InvalidError, match="its last is 5"):
            table.state(number=6)


def test_what_snapshots_and_log_have_forgotten_is_told(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    with Lake(open_local(path)) as lake:
        table = lake.table("t")
        oldest = table.log().oldest
        assert oldest > 2
        with pytest.raises(LogTruncatedError):
            table.log(after=0)
        with pytest.raises(InvalidError, match=f"the oldest is that of entry {oldest - 1}"):
            table.state(number=2)
        first, newest = table.state(number=oldest), table.state()
        assert first.number == oldest
        assert newest.jobs
        assert "garbage" in draw_state(newest, "then")
        assert table.write_snapshot() == newest.number
        assert table.write_snapshot() == newest.number
    with Lake(open_local(path)) as lake:
        assert lake.fsck(deep=True).findings == ()


def test_a_damaged_snapshot_is_passed_over(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    newest = max(path.glob("objects/tables/*/snapshots/*"))
    with Lake(open_local(path)) as lake:
        right = lake.table("t").state()
        newest.write_bytes(newest.read_bytes()[:-9])
        assert lake.table("t").state() == right
