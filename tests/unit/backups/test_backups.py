"""A backup is a lake: of one version of each table, whole, whatever happens while it is made."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lakebed.backends.local import object_store
from lakebed.backends.memory import VirtualClock
from lakebed.backups import copy_table
from lakebed.bootstrap.backups import LOCK
from lakebed.bootstrap.local import open_local
from lakebed.errors import ConflictError, InvalidError
from lakebed.lake import Lake
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowRules
from lakebed.model.formats import NEWEST
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.model.schema import schema_of
from lakebed.statestore.log_entries.feed_changes import Count, Define
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.open_table import start_of
from lakebed.statestore.version_pin import PIN_SECONDS
from lakebed.table import Table
from tests.dsl.table_story import next_position

SCHEMA = schema_of(row_keys={"id": "string"}, values={"n": "int64"})
EAGER = {"garbage_seconds_min": 0, "job_files_max": 2, "size_ratio": 1, "shared_file_rows_max": 1}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(open_local(tmp_path / "lake", clock=VirtualClock()))
    lake.create_table("t", SCHEMA, split_points=["g"], settings=EAGER)
    return lake


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def add(table: Table, *ids: str) -> None:
    table.ingest(pa.table({"id": ids, "n": range(len(ids))}), job="-".join(ids))


def ids(path: Path, table: str = "t") -> list[str]:
    """What a reader of a lake finds, whose parts `fsck` finds whole."""
    with Lake(open_local(path, create=False)) as lake:
        report = lake.fsck(deep=True)
        assert not [f for f in report.findings if f.severity == "damage"], report.findings
        return lake.table(table).query(columns=["id"]).read_all()["id"].to_pylist()


def entries(lake: Lake, table: str = "t") -> int:
    return int(lake.table(table)._opened.head.state.head().number)


def test_a_backup_is_a_lake_with_the_same_rows_and_settings(lake: Lake, backup: Path) -> None:
    add(lake.table("t"), "a", "h")
    lake.create_table("empty", SCHEMA)
    done = lake.backup(backup)
    assert [(t.table, t.files_copied, t.problem) for t in done.tables] == [
        ("empty", 0, None),
        ("t", 2, None),
    ]
    assert ids(backup) == ["a", "h"]
    assert ids(backup, "empty") == []
    with Lake(open_local(backup)) as copy:
        assert copy.table("t").settings == lake.table("t").settings
        assert copy.table("t").split_points == ["g"]


def test_a_backup_knows_how_far_feeds_are_and_what_they_have_sealed(
    lake: Lake, backup: Path
) -> None:
    opened, feed = lake.table("t")._opened, ConnectionId("feed")
    with opened.head.reading() as state:
        start, now = start_of(state), state.head().at
    said = SplitTime("0", Micros(now))
    advance = Advance(feed, 1, WindowRules(60), (said,))
    late = Count(feed, 1, "0", Tally(read=2, quarantined=2), 2)
    made = opened.own(start, Define(feed, 1, ("0", "1")), advance, late)
    position = next_position("feed/0", None, 7)
    opened.head.commit(msgspec.structs.replace(made, positions=(position,)))
    before = lake.table("t").write_snapshot()
    lake.backup(backup)
    with Lake(open_local(backup)) as copy:
        table, whole = copy.table("t"), lake.table("t")
        assert table.positions() == whole.positions() != []
        assert table.ledger() == whole.ledger() != []
        states = [one.state(number=before) for one in (table, whole)]
        assert states[0].connections == states[1].connections != ()
        assert states[0].digest == states[1].digest


def test_a_backup_allows_the_forms_that_the_lake_allows(lake: Lake, backup: Path) -> None:
    lake.backup(backup)
    with Lake(open_local(backup)) as copy:
        assert copy._app.registry.formats() == lake._app.registry.formats() == NEWEST


def test_again_copies_only_new_files_and_deletes_what_compaction_replaced(
    lake: Lake, backup: Path
) -> None:
    add(lake.table("t"), "a", "h")
    lake.backup(backup)
    add(lake.table("t"), "b")
    (done,) = lake.backup(backup).tables
    assert (done.files_copied, done.files_kept, done.files_deleted) == (1, 2, 0)
    lake.table("t").compact()
    (done,) = lake.backup(backup).tables
    assert (done.files_copied, done.files_kept, done.files_deleted) == (1, 1, 2)
    assert ids(backup) == ["a", "b", "h"]


def test_a_backup_has_what_tags_need(lake: Lake, backup: Path) -> None:
    table = lake.table("t")
    add(table, "a", "h")
    table.tag("then")
    add(table, "b")
    table.compact()
    lake.backup(backup)
    with Lake(open_local(backup)) as copy:
        then = copy.table("t").to_arrow(as_of="then")
        assert then["id"].to_pylist() == ["a", "h"]
    table.drop_tag("then")
    (done,) = lake.backup(backup).tables
    assert done.files_deleted == 1
    assert ids(backup) == ["a", "b", "h"]


def test_a_backup_of_an_idle_lake_writes_nothing(lake: Lake, backup: Path) -> None:
    add(lake.table("t"), "a")
    lake.backup(backup)
    before = entries(lake)
    (done,) = lake.backup(backup).tables
    assert entries(lake) == before
    assert (done.files_copied, done.problem) == (0, None)


@pytest.mark.parametrize("as_of", [None, 3], ids=["newest", "older"])
def test_an_export_since_the_last_backup_is_no_reason_for_another(
    lake: Lake, backup: Path, tmp_path: Path, as_of: int | None
) -> None:
    add(lake.table("t"), "a")
    add(lake.table("t"), "b")
    lake.backup(backup)
    lake.table("t").export(tmp_path / "out", as_of=as_of)
    before = entries(lake)
    lake.backup(backup)
    assert entries(lake) == before  # it has pinned nothing


def test_files_stay_until_they_are_copied_though_others_collect_garbage(
    lake: Lake, backup: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c", "d"):
        add(lake.table("t"), name)
    busy: list[int] = []

    def compact_and_collect(_table: str, done: int, _total: int) -> None:
        if done == 1:
            with Lake(open_local(tmp_path / "lake", clock=lake._app.clock)) as other:
                other.table("t").compact()
                busy.append(other.run().files_collected)

    assert lake.backup(backup, on_progress=compact_and_collect).failure is None
    assert ids(backup) == ["a", "b", "c", "d"]
    assert busy == [0]
    assert lake.run().files_collected == 4  # the pin was dropped


def test_a_pin_is_renewed_while_files_are_copied(lake: Lake, backup: Path) -> None:
    add(lake.table("t"), "a")
    add(lake.table("t"), "b")
    clock, untils = lake._app.clock, []

    def wait_half_a_day(*_: object) -> None:
        clock.sleep(43_200.0)
        with lake.table("t")._opened.head.reading() as state:
            untils.append([pin.until - state.head().at for pin in state.pins()])

    lake.backup(backup, on_progress=wait_half_a_day)
    first, second = untils
    assert 0 < first[0] <= PIN_SECONDS * 10**6
    assert second[0] == PIN_SECONDS * 10**6  # of an entry that the renewal wrote
    with lake.table("t")._opened.head.reading() as state:
        assert state.pins() == []


def test_snapshots_come_with_a_log_that_was_emptied(lake: Lake, backup: Path) -> None:
    table = lake.table("t")
    add(table, "a")
    lake.backup(backup)
    for name in ("b", "c"):
        add(table, name)
        table.write_snapshot()
    add(table, "d")
    log = lake._app.logs.open(table._opened.id)
    assert table._snapshots().truncate(log) == 5  # behind what the backup has
    lake.backup(backup)
    assert ids(backup) == ["a", "b", "c", "d"]
    with Lake(open_local(backup)) as copy:
        kept = copy._app.logs.open(table._opened.id)
        assert copy_table.oldest_kept(kept) == 5


def test_a_log_that_is_truncated_during_the_copy_is_copied_at_a_newer_version(
    lake: Lake, backup: Path
) -> None:
    table = lake.table("t")
    add(table, "a")

    def truncate(*_: object) -> None:
        if table._snapshots().newest_first() == []:
            for name in ("b", "c"):
                add(table, name)
                table.write_snapshot()
            table._snapshots().truncate(lake._app.logs.open(table._opened.id))

    lake.backup(backup, on_progress=truncate)
    assert ids(backup) == ["a", "b", "c"]


def test_restored_to_another_place_the_lake_goes_on(
    lake: Lake, backup: Path, tmp_path: Path
) -> None:
    add(lake.table("t"), "a", "h")
    lake.set_online("t", online=False)
    lake.backup(backup)
    with Lake(open_local(tmp_path / "new")) as new:
        done = new.restore(backup)
        assert (done.failure, new.tables(online=False)) == (None, ["t"])
        assert new.restore(backup).tables[0].files_copied == 0  # as after a kill: again
        add(new.table("t"), "a", "h")  # its id is known: it is done once
        add(new.table("t"), "b")
        new.run(["t"])
        with pytest.raises(InvalidError, match="another history"):
            raise new.restore(backup).failure or AssertionError
    assert ids(tmp_path / "new") == ["a", "b", "h"]
    assert ids(backup) == ["a", "h"]


def test_a_lake_that_was_set_back_is_not_copied_over_its_backup(
    lake: Lake, backup: Path, tmp_path: Path
) -> None:
    add(lake.table("t"), "a")
    lake.backup(backup)
    with Lake(open_local(tmp_path / "yesterday")) as yesterday:
        yesterday.restore(backup)
    add(lake.table("t"), "b")
    lake.backup(backup)
    with Lake(open_local(tmp_path / "yesterday")) as yesterday:
        for name in ("x", "y", "z"):
            add(yesterday.table("t"), name)
        done = yesterday.backup(backup)
        assert isinstance(done.failure, InvalidError)
        assert "another history" in str(done.tables[0].problem)
    assert ids(backup) == ["a", "b"]


def test_a_damaged_file_is_refused_and_other_tables_are_copied(lake: Lake, backup: Path) -> None:
    add(lake.create_table("whole", SCHEMA), "w")
    add(lake.table("t"), "a")
    lake.backup(backup)
    add(lake.table("t"), "b")
    add(lake.table("whole"), "x")
    assert lake._app.local is not None
    newest = max(
        (lake._app.local.directory.path / "objects").rglob("*.parquet"), key=newest_of("t", lake)
    )
    data = bytearray(newest.read_bytes())
    data[7] ^= 1
    newest.write_bytes(data)
    problems = {table.table: table.problem for table in lake.backup(backup).tables}
    assert problems["whole"] is None
    assert "corrupt" in str(problems["t"])
    assert newest.name in str(problems["t"])
    assert ids(backup) == ["a"]
    assert ids(backup, "whole") == ["w", "x"]


def newest_of(table: str, lake: Lake) -> Callable[[Path], tuple[bool, int]]:
    id_ = lake.table(table)._opened.id
    return lambda path: (id_ in str(path), path.stat().st_mtime_ns)


def test_names_follow_and_dropped_tables_stay_until_they_are_pruned(
    lake: Lake, backup: Path
) -> None:
    add(lake.table("t"), "a")
    add(lake.create_table("u", SCHEMA), "b")
    add(lake.create_table("gone", SCHEMA), "c")
    lake.backup(backup)
    lake.rename_table("t", "swap")
    lake.rename_table("u", "t")
    lake.rename_table("swap", "u")
    lake.drop_table("gone")
    add(lake.create_table("gone", SCHEMA), "d")
    (other,) = lake.backup(backup).only_in_copy
    assert (ids(backup, "t"), ids(backup, "u"), ids(backup, "gone")) == (["b"], ["a"], ["d"])
    assert other.startswith("gone-")
    assert ids(backup, other) == ["c"]
    lake.backup(backup, prune=True)
    with Lake(open_local(backup)) as copy:
        assert copy.tables() == ["gone", "t", "u"]


@pytest.mark.parametrize("where", ["lake", "lake/objects/b", "."])
def test_a_backup_inside_of_its_lake_is_refused(lake: Lake, tmp_path: Path, where: str) -> None:
    with pytest.raises(InvalidError, match="lie in each other"):
        lake.backup(tmp_path / where)


def test_two_copies_into_one_backup_at_once_are_refused(lake: Lake, backup: Path) -> None:
    lake.backup(backup)
    with (backup / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConflictError, match="another process"):
            lake.backup(backup)


def test_a_restore_over_another_table_of_the_name_is_refused(
    lake: Lake, backup: Path, tmp_path: Path
) -> None:
    lake.backup(backup)
    with Lake(open_local(tmp_path / "new")) as new:
        new.create_table("t", SCHEMA)
        with pytest.raises(InvalidError, match="another table of this name"):
            new.restore(backup)
    with (
        Lake(open_local(tmp_path / "other")) as other,
        pytest.raises(InvalidError, match="no lake"),
    ):
        other.restore(tmp_path / "nothing")


class KilledError(BaseException):
    """Stands for a kill: nothing in between catches it."""


@pytest.mark.parametrize("effect", range(1, 8))
def test_killed_at_any_effect_the_backup_is_a_version_and_goes_on(
    lake: Lake, backup: Path, effect: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(lake.table("t"), "a", "h")
    lake.backup(backup)
    lake.table("t").compact()
    for name in ("b", "c"):
        add(lake.table("t"), name)
        lake.table("t").write_snapshot()
    left = effect

    def dying(method: str) -> None:
        true = getattr(object_store.LocalObjectStore, method)

        def instead(self: object_store.LocalObjectStore, *args: object) -> object:
            nonlocal left
            if self._root == backup.resolve():
                left -= 1
                if left == 0:
                    raise KilledError
            return true(self, *args)

        monkeypatch.setattr(object_store.LocalObjectStore, method, instead)

    for method in ("create", "delete", "_link"):
        dying(method)
    killed = False
    try:
        lake.backup(backup)
    except KilledError:
        killed = True
    monkeypatch.undo()
    assert killed or effect > 5
    assert ids(backup) in (["a", "h"], ["a", "b", "c", "h"])
    lake.backup(backup)
    assert ids(backup) == ["a", "b", "c", "h"]
    with Lake(open_local(backup)) as copy:
        assert not [f for f in copy.fsck(deep=True).findings if f.code.startswith("object-")]


def test_a_copy_takes_consecutive_entries_only(tmp_path: Path) -> None:
    with Lake(open_local(tmp_path / "lake")) as lake:
        assert lake._app.local is not None
        log = lake._app.local.log_copy(lake.create_table("t", SCHEMA)._opened.id)
        with pytest.raises(Exception, match="not consecutive"):
            log.extend([(TransactionNumber(5), b"x")], oldest=TransactionNumber(1))
        assert [number for number, _ in log.read_after(TransactionNumber(0))] == [1]
