"""Files that are submitted one by one become jobs of the right size, each file once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakebed.bootstrap.batching import batch_files
from lakebed.bootstrap.local import open_local
from lakebed.errors import InvalidError, TableBusyError
from lakebed.ingest import batch_files as batch_files_module
from lakebed.ingest.run_batches import TRIES_MAX
from lakebed.lake import Lake
from lakebed.ports.job_tracker import NO_TABLE
from tests.unit.ingest.batch_story import BatchStory

AHEAD = 200 * 86_400 * 1_000_000
"""Microseconds."""


@pytest.fixture
def story(tmp_path: Path) -> Iterator[BatchStory]:
    story = BatchStory(tmp_path)
    yield story
    story.app.close()


def test_files_wait_until_the_oldest_is_old_enough_and_become_one_job(story: BatchStory) -> None:
    for key in "abc":
        assert story.submit(story.given(f"{key}.parquet", key)).added == 1
        assert story.run(90).batches_planned == 0
    assert story.ids == []
    assert story.pending() == ["a.parquet", "b.parquet", "c.parquet"]
    done = story.run(300)
    assert (done.batches_planned, done.batches_ingested) == (1, 1)
    assert story.ids == ["a", "b", "c"]
    assert story.pending() == []
    report = story.newest
    assert (report.batch, report.files, report.state, report.refused) == (1, 3, "committed", ())
    assert report.job == f"{story.id}-batch-1"
    assert story.run().is_nothing
    assert story.batches.tables() == []


def test_a_folder_is_expanded_but_for_names_that_are_none_of_its_rows(story: BatchStory) -> None:
    for name in ("in/a.parquet", "in/deep/b.csv", "in/_c.parquet", "in/.d/e.parquet"):
        story.given(name, "x")
    (story.folder / "in/deep/b.csv").write_text("id,n\ny,2\n")
    assert story.submit(str(story.folder / "in")).files == 2
    story.run(300)
    assert story.ids == ["x", "y"]


def test_a_relative_path_means_the_same_file_wherever_it_is_taken_in(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.given("a.parquet", "a")
    monkeypatch.chdir(story.folder)
    story.submit("a.parquet")
    monkeypatch.chdir("/")
    story.run(300)
    assert story.ids == ["a"]


def test_batches_are_as_large_as_the_table_says(tmp_path: Path) -> None:
    story = BatchStory(tmp_path, batch_files_max=2, batch_bytes_min=0, batch_files_min=2)
    story.submit(*(story.given(f"{key}.parquet", key) for key in "abcde"))
    assert story.run().batches_planned == 2
    assert [one.files for one in story.table.batches()] == [2, 2]
    assert story.ids == ["a", "b", "c", "d"]
    story.run(300)
    assert [one.files for one in story.table.batches()] == [1, 2, 2]
    assert story.ids == list("abcde")


# doubles


def test_a_file_that_is_sent_twice_is_taken_in_once_and_counted(story: BatchStory) -> None:
    name = story.given("a.parquet", "a")
    assert story.submit(name, name).files == 1
    assert story.submit(name) == story.submit(name)
    assert story.submit(name).doubles == 1
    story.run(300)
    assert (story.submit(name).added, story.submit(name).doubles) == (0, 1)
    story.run(300)
    assert story.ids == ["a"]


def test_the_same_path_with_new_content_is_a_new_file(story: BatchStory) -> None:
    name = story.given("a.parquet", "a")
    story.submit(name)
    story.run(300)
    story.given("a.parquet", "a2")
    assert story.submit(name).added == 1
    story.run(300)
    assert story.ids == ["a", "a2"]


def test_what_was_taken_in_is_forgotten_with_the_ids_of_jobs(tmp_path: Path) -> None:
    story = BatchStory(tmp_path, job_id_seconds_min=1_000)
    name = story.given("a.parquet", "a")
    story.submit(name)
    story.run(300)
    story.run(2_000)
    assert story.submit(name).added == 1


def test_a_batcher_whose_clock_is_months_ahead_forgets_nothing(story: BatchStory) -> None:
    name = story.given("a.parquet", "a")
    story.submit(name)
    story.run(300)
    story.submit(story.given("b.parquet", "b"))
    story.tick(300)
    batch_by(story, AHEAD)
    batch_by(story, AHEAD)
    assert story.submit(name).added == 0
    assert story.newest.state == "sent", "its job may still be done"
    story.run()
    assert story.ids == ["a", "b"]


def test_what_a_batcher_took_whose_clock_is_months_behind_is_known(tmp_path: Path) -> None:
    story = BatchStory(tmp_path, batch_bytes_min=1)
    name = story.given("a.parquet", "a")
    story.submit(name)
    batch_by(story, -AHEAD)
    assert story.submit(name).added == 0
    story.tick()
    assert story.newest.state == "sent", "its job may still be done"
    story.run()
    assert story.ids == ["a"]


def test_a_batch_that_a_right_clock_planned_is_known_though_a_wrong_one_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has had no commit for longer than jobs are known: log time says little."""
    story = BatchStory(tmp_path, batch_bytes_min=1)
    story.clock.advance(40 * 86_400)
    name = story.given("a.parquet", "a")
    story.submit(name)
    with monkeypatch.context() as patched:  # it dies when the batch is planned
        patched.setattr(batch_files_module.BatchFiles, "_finish_open", lambda *given: None)
        story.tick()
    batch_by(story, -AHEAD)
    assert story.submit(name).added == 0
    story.run()
    assert story.ids == ["a"]


@pytest.mark.parametrize("behind", [1, 5 * 3_600])
def test_a_clock_that_is_behind_sends_no_job_before_its_time(tmp_path: Path, behind: int) -> None:
    story = BatchStory(tmp_path, batch_bytes_min=1, redispatch_seconds=6 * 3_600)
    story.submit(story.given("a.parquet", "a"))
    story.tick()
    batch_by(story, -behind)
    assert story.lose_messages() == 1


def test_a_job_that_a_clock_months_ahead_sent_in_vain_is_sent_again(tmp_path: Path) -> None:
    story = BatchStory(tmp_path, batch_bytes_min=1)
    story.submit(story.given("a.parquet", "a"))
    batch_by(story, AHEAD)
    assert story.lose_messages() == 1
    story.tick()
    story.run()
    assert story.ids == ["a"]


def batch_by(story: BatchStory, ahead: int) -> None:
    """Let a machine make batches whose clock is wrong."""
    wrong = open_local(story.folder.parent / "lake", clock=story.clock.machine(ahead))
    batch_files(wrong).run(Lake(wrong).table("trips")._opened)
    wrong.close()


# refusals when files are submitted


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone.parquet", "no such file"),
        ("empty.csv", "is empty"),
        ("noise.bin", "format"),
        ("no_files", "nothing in the folder"),
        ("https", "slash"),
    ],
)
def test_what_cannot_be_taken_in_is_refused_and_nothing_is_submitted(
    story: BatchStory, name: str, says: str
) -> None:
    (story.folder / "empty.csv").touch()
    (story.folder / "noise.bin").write_bytes(b"\0\1")
    (story.folder / "no_files").mkdir()
    good = story.given("a.parquet", "a")
    wrong = "s3:/bucket/key.csv" if name == "https" else str(story.folder / name)
    with pytest.raises(InvalidError, match=says):
        story.submit(good, wrong)
    assert story.pending() == []


def test_a_file_that_may_not_be_read_is_refused(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = story.given("a.parquet", "a")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InvalidError, match=r"a\.parquet cannot be read: Permission denied"):
        story.submit(name)
    assert story.pending() == []


def test_many_that_are_wrong_are_told_at_once(story: BatchStory) -> None:
    for number in range(30):
        (story.folder / f"{number:02}.csv").touch()
    with pytest.raises(InvalidError, match=r"count=30.*00\.csv is empty.*09\.csv") as caught:
        story.submit(str(story.folder))
    assert "10.csv" not in str(caught.value)


def test_ten_thousand_files_of_one_folder_are_submitted(story: BatchStory) -> None:
    for number in range(10_000):
        (story.folder / f"{number:05}.csv").write_text("id,n\n")
    assert story.submit(str(story.folder)).added == 10_000
    assert story.submit(str(story.folder)).doubles == 10_000
    assert len(story.batches.pending(story.id, files_max=20_000)) == 10_000
    assert story.tick(300) == batch_files_module.BATCHES_AT_ONCE


# refusals when batches are taken in


def test_a_file_that_was_changed_after_it_was_submitted_is_left_out(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"), story.given("b.parquet", "b"))
    story.tick(300)
    name = story.given("a.parquet", "changed")
    story.take_in()
    assert story.ids == ["b"]
    (refused,) = story.newest.refused
    assert refused.file == name
    assert "changed" in refused.reason
    assert story.newest.state == "committed"
    assert story.submit(name).added == 1
    story.run(300)
    assert story.ids == ["b", "changed"]


def test_a_folder_that_goes_is_left_out_with_one_look(story: BatchStory) -> None:
    names = [story.given(f"{key}.parquet", key) for key in "abcdefgh"]
    story.submit(*names)
    story.tick(300)
    for name in names[1:]:
        os.unlink(name)  # noqa: PTH108 - a text
    (done,) = story.take_in()
    assert done.rows == 1
    assert story.ids == ["a"]
    assert len(story.newest.refused) == 7


def test_a_file_of_bad_content_keeps_no_other_from_its_table(story: BatchStory) -> None:
    good = [story.given(f"{key}.parquet", key) for key in "ac"]
    bad = story.folder / "b.csv"
    bad.write_text("id,n\nx,1\ny,many\n")
    story.submit(*good, str(bad))
    story.run(300)
    assert story.ids == ["a", "c"]
    (refused,) = story.newest.refused
    assert refused.file == str(bad)
    assert "many" in refused.reason


def test_what_was_left_out_may_be_submitted_again_once_that_is_mended(story: BatchStory) -> None:
    name = story.folder / "b.csv"
    name.write_text("id,n,more\nx,1,2\n")
    story.submit(str(name))
    story.run(300)
    assert story.ids == []
    assert story.newest.state == "committed", "its id is used, whatever becomes of another run"
    story.run(1)
    story.table.add_field("more", "int64?")
    assert story.submit(str(name)).added == 1
    story.run(300)
    assert story.ids == ["x"]


def test_more_bad_files_than_one_run_finds_are_found_by_the_next(story: BatchStory) -> None:
    count = TRIES_MAX + 5
    for number in range(count):
        (story.folder / f"{number:03}.csv").write_text("id,n\nx,many\n")
    story.submit(str(story.folder), story.given("zz.parquet", "z"))
    (failed,) = story.run_failing(300)
    assert "one after the other" in str(failed.error)
    story.run(60)
    assert story.ids == ["z"]
    assert len(story.newest.refused) == count


def test_what_is_no_files_fault_refuses_all_with_the_reason(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.submit(story.given("a.parquet", "a"), story.given("b.parquet", "b"))
    stage = type(story.app.ingest._stage)
    run = stage.run

    def refuses(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is given
        if list(given[3]):
            raise InvalidError("an iterator raised", hint=None)
        return run(*given, **named)

    monkeypatch.setattr(stage, "run", refuses)
    story.run(300)
    assert [one.reason for one in story.newest.refused] == ["invalid: an iterator raised"] * 2
    assert story.newest.state == "committed"


def test_a_table_that_is_too_busy_gets_its_rows_later(
    story: BatchStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.submit(story.given("a.parquet", "a"))
    with monkeypatch.context() as patched:
        patched.setattr(
            type(story.app.ingest._stage),
            "run",
            lambda *_, **__: (_ for _ in ()).throw(TableBusyError("too many files")),
        )
        (failed,) = story.run_failing(300)
    assert (failed.table, failed.work) == ("trips", "batching")
    assert story.newest.state == "sent"
    assert "failed: table-busy" in story.newest.last
    story.run(60)
    assert story.ids == ["a"]


# tables


def test_files_of_a_dropped_table_are_forgotten_and_the_tracker_tells(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"), story.given("b.parquet", "b"))
    story.tick(300)
    story.submit(story.given("c.parquet", "c"))
    story.lake.drop_table("trips")
    assert story.take_in()[0].repeated
    story.run()
    assert story.batches.tables() == []
    (report,) = story.app.tracker.find(NO_TABLE, reports_max=9)
    assert report.event == "rejected"
    assert "table-missing: the table was dropped; 1 files waited" in report.reason


def test_a_table_that_is_being_renamed_is_not_taken_for_dropped(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"))
    story.lake.rename_table("trips", "rides")
    story.run(300)
    assert [row["id"] for row in story.lake["rides"].query().read_all().to_pylist()] == ["a"]


def test_offline_tables_are_batched_and_quarantined_ones_are_left_alone(story: BatchStory) -> None:
    story.submit(story.given("a.parquet", "a"))
    story.lake.quarantine("trips")
    assert story.run(300).batches_planned == 0
    story.lake.set_online("trips", online=True)
    story.lake.set_online("trips", online=False)
    assert story.run().batches_planned == 1
    assert story.ids == ["a"]


def test_a_table_is_batched_by_name(story: BatchStory) -> None:
    other = story.lake.create_table("trip", story.table.schema)
    for table in (story.table, other):
        table.submit(story.given("a.parquet", "a"))
    assert story.run(300, tables=["trip"]).batches_planned == 1
    assert story.ids == []
