"""Changes come in the order of commits, with the rows that they took in or away, at least once
(H42)."""

import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.errors import (
    ConflictError,
    FollowerBehindError,
    FormatGateError,
    InvalidError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from lakebed.model.formats import Formats
from lakebed.statestore.write_snapshot import truncate_log
from tests.unit.tables.lakes import SCHEMA, rows

HOUR, DAY = 3_600, 86_400
Told = tuple[str, str, list[str]]


@pytest.fixture
def table(lake: Lake) -> lakebed.Table:
    return lake.create_table("t", SCHEMA, settings={"garbage_seconds_min": HOUR})


def told(changes: object) -> list[Told]:
    found = []
    for change in changes:  # type: ignore[attr-defined]  # any of them
        read = change.read().read_all()
        ids = read.column(read.column_names[0]).to_pylist()
        assert len(ids) == change.rows
        found.append((change.kind, change.job, ids))
    return found


def collected(lake: Lake, table: lakebed.Table, clock: VirtualClock, hours: int = 2) -> None:
    table.compact()
    clock.advance(hours * HOUR)
    lake.run()


def empty_log(table: lakebed.Table) -> int:
    for job in ("z1", "z2"):
        table.ingest(rows(["z"]), job=job)
        table.write_snapshot()
    log = table._app.logs.open(table._opened.id)
    return truncate_log(table._opened, table._snapshots(), log)


def test_each_commit_of_rows_is_a_change_and_a_compaction_is_none(table: lakebed.Table) -> None:
    first = table.ingest(rows("ba"), job="one")
    table.ingest(rows("c"), job="two")
    table.compact()
    table.change_settings(job_files_max=5)
    table.clear()
    table.ingest(rows("d"), job="three")
    changes = list(table.changes())
    assert told(changes)[0] == ("rows", "one", ["a", "b"])
    assert [(kind, ids) for kind, _, ids in told(changes)] == [
        ("rows", ["a", "b"]),
        ("rows", ["c"]),
        ("clear", []),
        ("rows", ["d"]),
    ]
    assert [change.number for change in changes] == sorted(change.number for change in changes)
    assert changes[0].number == first.number
    assert told(table.changes(after=first.number))[0] == ("rows", "two", ["c"])
    assert told(table.changes(after=changes[-1].number)) == []
    with pytest.raises(InvalidError, match="lies ahead"):
        list(table.changes(after=99))


def test_rows_have_the_fields_that_they_were_taken_in_with(table: lakebed.Table) -> None:
    table.ingest(rows("a"), job="one")
    table.rename_field("n", "count")
    last = table.ingest(rows("b").rename_columns(["id", "count"]), job="two").number
    names = [change.read().schema.names for change in table.changes()]
    assert names == [["id", "n"], ["id", "count"]]
    (change,) = table.changes(after=last - 1)
    assert change.read().schema.names == ["id", "count"]


def test_what_was_collected_or_emptied_is_told(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("a"), job="one")
    table.ingest(rows("b"), job="two")
    collected(lake, table, clock)
    (first, _) = table.changes()
    with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
        first.read().read_all()
    assert empty_log(table)
    with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
        list(table.changes())


def test_a_follower_reads_what_it_did_not_acknowledge_however_late(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("a"), job="before")
    written = table.write_snapshot()
    follower = table.follow("mirror")
    for job in ("one", "two", "three"):
        table.ingest(rows(job), job=job)
    one, *_ = follower
    follower.acknowledge(one)
    collected(lake, table, clock)
    table.clear()
    collected(lake, table, clock, hours=5 * 24)
    assert empty_log(table) == written, "no further than the follower needs it"
    again = table.follow("mirror")
    assert again.position == one.number
    found = told(again)
    assert [job for _, job, _ in found if job][:2] == ["two", "three"]
    assert found[0][2] == sorted("two")
    assert [kind for kind, _, _ in found] == ["rows", "rows", "clear", "rows", "rows"]
    assert not lake.fsck("t").findings
    last = list(again)[-1]
    again.acknowledge(last)
    assert told(table.follow("mirror")) == []
    assert lake.run().files_collected > 0


def test_a_follower_begins_where_it_is_told(table: lakebed.Table) -> None:
    first = table.ingest(rows("a"), job="one").number
    table.tag("then")
    table.ingest(rows("b"), job="two")
    assert [job for _, job, _ in told(table.follow("all", after=0))] == ["one", "two"]
    assert [job for _, job, _ in told(table.follow("some", after=first))] == ["two"]
    assert [job for _, job, _ in told(table.follow("tagged", after="then"))] == ["two"]
    assert told(table.follow("new")) == []
    with pytest.raises(InvalidError, match="the follower is there"):
        table.follow("all", after=first)
    table.drop_follower("all")
    with pytest.raises(InvalidError, match="no such follower"):
        table.drop_follower("all")


def test_two_processes_under_one_name_are_told(table: lakebed.Table) -> None:
    one, two = table.follow("mirror"), table.follow("mirror")
    table.ingest(rows("a"), job="one")
    table.ingest(rows("b"), job="two")
    first, second = one
    one.acknowledge(first)
    with pytest.raises(ConflictError, match="another process follows"):
        two.acknowledge(second)
    one.acknowledge(first)
    one.acknowledge(second)
    assert table.follow("mirror").position == second.number


def test_a_follower_that_reads_nothing_falls_behind_and_begins_anew(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.follow("mirror")
    table.ingest(rows("a"), job="one")
    (change,) = table.follow("mirror")
    table.compact()
    table.clear()
    for _ in range(2):
        clock.advance(8 * DAY)
        lake.run()
        clock.advance(HOUR)
        lake.run()
    with pytest.raises(FollowerBehindError, match="then follow from that version's number"):
        table.follow("mirror")
    with pytest.raises(VersionExpiredError):
        change.read().read_all()
    newest = lake.status("t")[0].number
    assert table.follow("mirror", after=newest).position == newest


def test_a_follower_that_is_alive_stays_where_nothing_changes(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    follower = table.follow("mirror")
    before = lake.status("t")[0].number
    follower.renew()
    assert lake.status("t")[0].number == before, "an entry now and then, not with each look"
    for _ in range(20):
        clock.advance(DAY // 2)
        assert list(follower) == []
        follower.renew()
        lake.run()
    assert table.follow("mirror").position == follower.position
    table.ingest(rows("a"), job="one")
    clock.advance(3 * DAY)
    list(follower)
    follower.renew()
    assert [job for _, job, _ in told(follower)] == ["one"], "what was given comes again"


def test_an_entry_with_several_commits_is_done_when_the_last_is_acknowledged(
    lake: Lake, table: lakebed.Table
) -> None:
    follower = table.follow("mirror")
    for job in ("one", "two"):
        table.ingest(rows(job), job=job, queued=True)
    lake.commit_queued()
    first, second = follower
    assert first.number == second.number
    follower.acknowledge(first)
    assert len(list(table.follow("mirror"))) == 2
    follower.acknowledge(second)
    assert list(table.follow("mirror")) == []


def mirrored(copy: lakebed.Table, changes: object) -> None:
    """Do to a copy what was done to a table."""
    for change in changes:  # type: ignore[attr-defined]  # any of them
        match change.kind:
            case "rows":
                copy.ingest(change.read().read_all(), job=f"of-{change.number}")
            case "delete" if change.ranges:
                copy.delete(ranges=change.ranges)
            case "delete":
                keys = change.read().read_all().column("id").to_pylist()
                copy.delete(keys=keys)
            case "clear":
                copy.clear()


def test_a_delete_of_ranges_says_which_and_gives_their_rows(table: lakebed.Table) -> None:
    last = table.ingest(rows("abcdef"), job="one").number
    table.delete(ranges=[{"id": ("b", "d")}, {"id": ("e", "f")}], job="gone")
    (change,) = table.changes(after=last)
    assert (change.kind, change.job, change.rows) == ("delete", "gone", 3)
    assert change.ranges == [{"id": lakebed.Range("b", "d")}, {"id": lakebed.Range("e", "f")}]
    assert change.read().read_all().column("id").to_pylist() == ["b", "c", "e"]


def test_a_delete_by_values_gives_the_rows_that_went_and_nothing_of_those_that_stay(
    table: lakebed.Table,
) -> None:
    last = table.ingest(rows("abcd"), job="one").number
    wanted = table.query(keys=["c", "d"]).read_all()
    table.delete(where=lakebed.field("n") >= 0, keys=["c", "d"])
    changes = list(table.changes(after=last))
    assert [(change.kind, change.rows, change.ranges) for change in changes] == [("delete", 2, [])]
    assert changes[0].read().read_all() == wanted


def test_a_copy_that_follows_deletes_is_equal(lake: Lake, table: lakebed.Table) -> None:
    copy = lake.create_table("copy", SCHEMA)
    table.ingest(rows("abcdefgh"))
    table.delete(ranges={"id": (None, "b")})
    table.compact()
    table.delete(where=lakebed.field("n") >= 0, keys=["c", "e"])
    table.ingest(rows("c"))
    table.delete(ranges={"id": ("g", None)})
    mirrored(copy, table.changes())
    assert copy.query().read_all() == table.query().read_all()
    assert copy.query().read_all().column("id").to_pylist() == ["b", "c", "d", "f"]
    table.delete(all=True)
    (change,) = list(table.changes())[-1:]
    assert change.ranges == [{}]
    mirrored(copy, [change])
    assert copy.count() == 0


def test_deleted_rows_stay_readable_for_a_follower_and_go_afterwards(
    lake: Lake, table: lakebed.Table, clock: VirtualClock
) -> None:
    table.ingest(rows("abcd"))
    follower = table.follow("mirror")
    table.delete(where=lakebed.field("n") >= 0, keys=["b"])
    table.delete(ranges={"id": ("c", "d")})
    collected(lake, table, clock)
    changes = list(follower)
    assert [read for _, _, read in told(changes)] == [["b"], ["c"]]
    kept = sum(1 for _ in table._app.objects.list(""))
    follower.acknowledge(changes[-1])
    collected(lake, table, clock)
    assert sum(1 for _ in table._app.objects.list("")) < kept
    with pytest.raises(VersionExpiredError):
        changes[0].read().read_all()


def test_a_cap_of_queries_is_none_of_followers(table: lakebed.Table) -> None:
    last = table.ingest(rows("abcd"), job="one").number
    table.change_settings(scan_bytes_max=1)
    table.delete(ranges={"id": ("b", "d")})
    change = next(c for c in table.changes(after=last) if c.kind == "delete")
    assert change.read().read_all().column("id").to_pylist() == ["b", "c"]


def test_a_process_that_believes_in_old_forms_does_not_delete_in_silence(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.ingest(rows("abcd"), job="one")
    follower = table.follow("mirror")
    monkeypatch.setattr(table._opened.head, "formats", lambda: Formats(entry=5, state=3))
    with pytest.raises(FormatGateError):
        table.delete(keys=["a", "b"], where=lakebed.field("id") == "b")
    assert list(follower) == []
    assert table.count() == 4
