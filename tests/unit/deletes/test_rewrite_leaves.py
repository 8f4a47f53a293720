"""Rows that are no whole ranges of keys go by rewriting the files that hold them (H41)."""

from typing import Any

import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.deletes.rewrite_leaves import RewriteLeaves
from lakebed.errors import CorruptError, InvalidError, JobIdReusedError, TableBusyError
from lakebed.model.names import JobId
from lakebed.statestore.log_entries.file_changes import ClaimFiles
from lakebed.statestore.open_table import start_of
from tests.unit.deletes.conftest import SCHEMA


def rows(table: lakebed.Table) -> list[tuple[str, int, int]]:
    found = table.to_arrow(columns=["city", "day", "n"]).to_pylist()
    return [(row["city"], row["day"], row["n"]) for row in found]


ALL = [(city, day, day) for city in "aemx" for day in range(10)]


def claim(table: lakebed.Table, leaf: int, count: int | None = None) -> JobId:
    """Let a compaction job hold some files of a leaf."""
    opened = table._opened
    with opened.head.reading() as state:
        start = start_of(state)
        partition = list(state.tree().leaves())[leaf]
        names = tuple(r.file.name for r, _ in state.references(partition))[:count]
    job = JobId(f"merge-{opened.fresh_id()}")
    opened.head.commit(opened.own(start, ClaimFiles(job, partition, names)))
    return job


@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ({"where": lakebed.field("n") > 6}, lambda c, d: d > 6),
        ({"where": pc.field("n") == 3}, lambda c, d: d == 3),
        ({"where": lakebed.field("note").is_null()}, lambda c, d: True),
        ({"where": lakebed.field("note") == "x"}, lambda c, d: False),
        ({"where": ~(lakebed.field("note") == "x")}, lambda c, d: False),
        ({"ranges": {"day": (2, 5)}}, lambda c, d: 2 <= d < 5),
        ({"keys": ["e"], "where": lakebed.field("n") < 4}, lambda c, d: c == "e" and d < 4),
        (
            {"keys": [(c, d) for c in "ax" for d in range(0, 20, 2)]},
            lambda c, d: c in "ax" and d % 2 == 0,
        ),
        ({"ranges": {"day": (99, None)}}, lambda c, d: False),
    ],
)
def test_just_the_rows_asked_for_go_and_all_others_stay(
    table: lakebed.Table,
    asked: dict[str, Any],
    gone: Any,  # noqa: ANN401 - as given
) -> None:
    before = table.count(**asked)
    done = table.delete(**asked)
    left = [row for row in ALL if not gone(row[0], row[1])]
    assert rows(table) == left
    assert (done.rows, done.exact) == (40 - len(left), True) == (before, True)
    assert not table.state().jobs
    number = table.state().number
    assert done.number == number
    assert table.delete(**asked).rows == 0
    assert table.state().number == number


def test_files_without_such_rows_are_not_touched(table: lakebed.Table) -> None:
    def parts() -> set[tuple[int, bytes]]:
        with table._opened.head.reading() as state:
            return {(r.partition, r.file.name) for r in state.all_references()}

    before = parts()
    table.delete(keys=["a"], where=lakebed.field("n") == 4)  # in one file of that leaf
    assert len(before & parts()) == len(before) - 1


def test_files_that_a_job_holds_are_rewritten_as_that_job(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    claim(table, 0)
    assert table.delete(where=lakebed.field("n") == 4).rows == 4
    assert not table.state().jobs
    assert rows(table) == [row for row in ALL if row[2] != 4]
    lake.run()
    assert rows(table) == [row for row in ALL if row[2] != 4]


def test_a_late_merge_of_what_was_rewritten_brings_nothing_back(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = claim(table, 0)
    app = table._app
    merge = app.files.merge_into_file

    def meanwhile(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as given
        written = merge(*given, **named)
        monkeypatch.undo()
        table.delete(where=lakebed.field("n") == 4)
        return written

    monkeypatch.setattr(app.files, "merge_into_file", meanwhile)
    assert not app.run_job.run(table._opened, job)
    assert rows(table) == [row for row in ALL if row[2] != 4]


def latest(lake: lakebed.Lake) -> lakebed.Table:
    processing = lakebed.Processing(latest=lakebed.Latest("n"))
    return lake.create_table("orders", SCHEMA, processing=processing)


def test_rows_that_fold_are_judged_as_queries_show_them(lake: lakebed.Lake) -> None:
    table = latest(lake)
    for n, note in enumerate(["open", "paid", "open"]):
        table.ingest([{"city": "a", "day": 1, "n": n, "note": note}])
    for n, note in enumerate(["open", "paid"]):
        table.ingest([{"city": "b", "day": 1, "n": n, "note": note}])
    done = table.delete(where=lakebed.field("note") == "open")
    assert done.rows == 1
    assert rows(table) == [("b", 1, 1)]
    table.compact()
    assert rows(table) == [("b", 1, 1)]


def test_a_leaf_that_folds_is_rewritten_though_jobs_hold_parts_of_it(lake: lakebed.Lake) -> None:
    table = latest(lake)
    for n, note in enumerate(["paid", "open", "open"]):
        table.ingest([{"city": "a", "day": 1, "n": n, "note": note}])
    claim(table, 0, 2)
    assert table.delete(where=lakebed.field("note") == "open").rows == 1
    assert rows(table) == []


def test_rows_that_stand_for_a_delete_stay(lake: lakebed.Lake) -> None:
    schema = lakebed.schema_of(
        row_keys={"k": "string"}, values={"n": "int64", "gone": "bool?", "v": "int64?"}
    )
    processing = lakebed.Processing(latest=lakebed.Latest("n", delete="gone"))
    table = lake.create_table("keyed", schema, processing=processing)
    table.ingest(
        [{"k": "a", "n": 5, "gone": True, "v": 1}, {"k": "b", "n": 5, "gone": None, "v": 1}]
    )
    assert table.delete(where=lakebed.field("v") == 1).rows == 1
    table.ingest([{"k": "a", "n": 4, "gone": False, "v": 2}])
    assert table.count() == 0


def test_sums_are_judged_whole(lake: lakebed.Lake) -> None:
    schema = lakebed.schema_of(row_keys={"k": "string"}, values={"n": "int64"})
    table = lake.create_table("sums", schema, processing=lakebed.Processing(aggregate={"n": "sum"}))
    for _ in range(3):
        table.ingest([{"k": "a", "n": 2}, {"k": "b", "n": 1}])
    assert table.delete(where=lakebed.field("n") == 2).rows == 0
    assert table.delete(where=lakebed.field("n") == 6).rows == 1
    assert table.to_arrow().to_pylist() == [{"k": "b", "n": 3}]


def test_fields_are_those_of_now(table: lakebed.Table) -> None:
    table.rename_field("n", "number")
    with pytest.raises(InvalidError, match="renamed to 'number'"):
        table.delete(where=lakebed.field("n") == 4)
    assert table.delete(where=lakebed.field("number") == 4).rows == 4
    table.add_field("more", "int64?")
    assert table.delete(where=lakebed.field("more").is_null()).rows == 36


def test_the_same_request_is_done_once(table: lakebed.Table) -> None:
    asked = lakebed.field("n") == 4
    done = table.delete(where=asked, job="fix")
    assert (done.rows, table.state().number) == (4, done.number)
    table.ingest([{"city": "a", "day": 100, "n": 4, "note": "later"}])
    again = table.delete(where=asked, job="fix")
    assert (again.number, again.repeated, again.rows) == (done.number, True, 0)
    assert table.count(where=asked) == 1
    with pytest.raises(JobIdReusedError):
        table.delete(where=lakebed.field("n") == 5, job="fix")


def test_who_is_always_too_late_says_so_and_what_is_gone_stays_gone(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves = RewriteLeaves._leaves

    def overtaken(self: Any, opened: Any, region: Any, ask: Any) -> Any:  # noqa: ANN401 - as given
        found = leaves(self, opened, region, ask)
        if found and found[0].own.min:  # the second leaf: another job takes what is free
            with opened.head.reading() as state:
                held = [job.id for job in state.jobs()]
            for job in held:
                table._app.give_up.run(opened, job, reason="test")
            claim(table, 1)
        return found

    monkeypatch.setattr(RewriteLeaves, "_leaves", overtaken)
    monkeypatch.setattr("lakebed.deletes.rewrite_leaves.WAIT_SECONDS", 0.0)
    monkeypatch.setattr("lakebed.deletes.rewrite_leaves.TRIES_MAX", 3)
    with pytest.raises(TableBusyError, match="deleted=2"):
        table.delete(where=lakebed.field("n") == 4)
    monkeypatch.undo()
    assert table.delete(where=lakebed.field("n") == 4).rows == 2
    assert table.count(where=lakebed.field("n") == 4) == 0


def test_a_damaged_file_is_told_and_holds_no_claim(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = table._app

    def broken(*_: object, **__: object) -> Any:  # noqa: ANN401 - as given
        raise CorruptError("damaged")

    monkeypatch.setattr(app.files, "write", broken)
    with pytest.raises(CorruptError):
        table.delete(where=lakebed.field("n") == 4)
    assert not table.state().jobs
    assert rows(table) == ALL


def test_rows_that_come_while_it_works_stay_and_all_before_go(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = table._app.files.write

    def meanwhile(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as given
        monkeypatch.undo()
        table.ingest([{"city": "a", "day": 99, "n": 4, "note": "meanwhile"}])
        return write(*given, **named)

    monkeypatch.setattr(table._app.files, "write", meanwhile)
    assert table.delete(where=lakebed.field("n") == 4).rows == 4
    assert [row for row in rows(table) if row[2] == 4] == [("a", 99, 4)]


def test_a_leaf_that_is_split_meanwhile_is_rewritten_all_the_same(
    lake: lakebed.Lake, table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.change_settings(leaf_rows_max=8)
    write = table._app.files.write

    def meanwhile(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as given
        monkeypatch.undo()
        assert table._app.split_leaves.run(table._opened)
        return write(*given, **named)

    monkeypatch.setattr(table._app.files, "write", meanwhile)
    table.delete(where=lakebed.field("n") == 4)
    assert rows(table) == [row for row in ALL if row[2] != 4]
    table.compact()
    assert rows(table) == [row for row in ALL if row[2] != 4]
