"""Strategies of users: what they choose is done; what they get wrong harms one table, loudly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.chosen_strategy import checked_groups
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.errors import InvalidError, StrategyError
from lakebed.lake import Lake
from lakebed.model.names import FileName
from tests.unit.compaction.strategy_lakes import MergesTheOldestTwo, create, held, made
from tests.unit.tables.lakes import SCHEMA, ids, rows

pytestmark = pytest.mark.usefixtures("installed")


def test_what_a_strategy_chooses_is_merged_and_nothing_else(lake: Lake) -> None:
    table = made(lake, "small_first")
    table.ingest(rows([f"9-{m}" for m in range(60)]))
    lake.run()
    (status,) = lake.status("t")
    assert (status.files, status.rows) == (2, 90)  # 3 x 10 in two steps; 60 stays alone
    assert ids(table) == sorted(f"{n}-{m}" for n, c in ((0, 10), (1, 10), (2, 10), (9, 60))
                                for m in range(c))  # fmt: skip


def test_a_strategy_is_told_rows_bytes_age_and_settings(lake: Lake, clock: VirtualClock) -> None:
    table = made(lake, "seen", files=1)
    clock.advance(600)
    table.ingest(rows(["z"]))
    clock.advance(60)
    with pytest.raises(StrategyError) as raised:
        create(lake, table)
    assert "([(10, True, 660), (1, True, 60)], 2)" in str(raised.value)


def test_it_can_go_by_age(lake: Lake, clock: VirtualClock) -> None:
    table = made(lake, "by_age")
    assert create(lake, table) == 0
    clock.advance(3_600)
    table.ingest(rows(["z"]))
    assert create(lake, table) == 1
    assert [job is not None for job in held(table)] == [True, True, True, False]


def test_one_process_is_asked_about_all_leaves_and_one_bad_answer_spoils_all(lake: Lake) -> None:
    table = lake.create_table(
        "t", SCHEMA, settings={"compaction_strategy": "remembers"}, split_points=["2", "4"]
    )
    for n in range(2):
        table.ingest(rows([f"{leaf}{n}" for leaf in range(6)]))
    with pytest.raises(StrategyError, match="was not asked about"):
        create(lake, table)
    assert held(table) == [None] * len(held(table))


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        ("raises", "RuntimeError: it went wrong"),
        ("exits", "SystemExit"),
        ("dies", "ended, or said what is no answer"),
        ("writes", "ended, or said what is no answer"),
        ("strange", "no names"),
        ("a_number", "TypeError"),
        ("a_text", "was not asked about"),
        ("unknown", "was not asked about"),
        ("twice", "named a file twice"),
        ("in_two", "named a file twice"),
        ("alone", r"wrong size.*files=1"),
        ("empty", r"wrong size.*files=0"),
        ("lost", "cannot be loaded: AttributeError"),
    ],
)
def test_a_bad_strategy_is_told_by_name_and_nothing_is_claimed(
    lake: Lake, strategy: str, wanted: str
) -> None:
    table = made(lake, strategy)
    with pytest.raises(StrategyError, match=wanted) as raised:
        create(lake, table)
    assert raised.value.facts["strategy"] == strategy
    assert held(table) == [None, None, None]


def test_what_a_strategy_began_ends_with_it(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setenv("LAKEBED_TEST_FIFO", str(fifo))
    read_end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert create(lake, made(lake, "leaves_a_child")) == 0
        os.set_blocking(read_end, True)
        assert os.read(read_end, 1) == b""  # which comes when nobody can write any more
    finally:
        os.close(read_end)


@pytest.mark.parametrize("strategy", ["hangs", "spins"])
def test_one_that_takes_forever_is_ended(lake: Lake, strategy: str) -> None:
    table = made(lake, strategy)
    with pytest.raises(StrategyError, match="takes too long"):
        create(lake, table, seconds_max=0.5)
    assert held(table) == [None, None, None]


def test_a_bad_strategy_delays_no_other_table_and_nothing_else_of_its_own(lake: Lake) -> None:
    other, table = made(lake, "basic", "other", files=2), made(lake, "none", "bad", files=2)
    waiting = CreateCompactionJobs(
        queue=lake._app.queue,
        tracker=lake._app.tracker,
        clock=lake._app.clock,
        strategies=StrategyProcesses(),
    )
    assert waiting.run(table._opened, everything=True) == 1
    job = next(job for job in held(table) if job)
    (lost,) = lake._app.queue.receive(messages_max=10, hidden_seconds=60)
    lake._app.queue.delete(lost.receipt)
    table.change_settings(compaction_strategy="raises", redispatch_seconds=0)
    for n in range(2):
        table.ingest(rows([f"{n}"]))
    before = lake._app.tracker.last(table._opened.id, job)
    with pytest.raises(StrategyError) as raised:
        lake.run()
    assert raised.value.facts["table"] == "bad"
    assert other.query().read_all().num_rows == 20
    assert lake.status("other")[0].files == 1
    after = lake._app.tracker.last(table._opened.id, job)
    assert before is not None
    assert after is not None
    assert after.event == "committed"  # it was sent again, and done
    table.compact()
    assert lake.status("bad")[0].files == 1  # who asks for all asks no strategy


def test_more_groups_than_a_leaf_may_have_jobs_are_not_all_taken(lake: Lake) -> None:
    table = made(lake, "small_first", files=6, leaf_jobs_max=1)
    assert create(lake, table) == 1
    assert create(lake, table) == 0


def test_a_leaf_without_room_for_a_job_is_not_asked_about(lake: Lake) -> None:
    table = made(lake, "none", files=6, leaf_jobs_max=2)
    strategies = MergesTheOldestTwo()
    assert [create(lake, table, strategies=strategies) for _ in range(3)] == [1, 1, 0]
    assert strategies.asked == [6, 4]
    table.change_settings(leaf_jobs_max=1)  # fewer than there are
    assert create(lake, table, strategies=strategies) == 0
    table.change_settings(leaf_jobs_max=3)
    assert create(lake, table, strategies=strategies) == 1
    assert strategies.asked == [6, 4, 2]


def test_a_strategy_that_went_away_is_told_with_those_that_are_there(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(lake, "small_first")
    monkeypatch.setattr("sys.path", [p for p in __import__("sys").path if "site-" not in p or
                                     "site-packages" in p])  # fmt: skip
    with pytest.raises(StrategyError, match=r"no such strategy is installed.*known="):
        create(lake, table)


def test_settings_that_name_a_strategy_that_is_not_there_are_refused(lake: Lake) -> None:
    with pytest.raises(InvalidError, match="no such strategy is installed") as raised:
        made(lake, "smal_first")
    assert "did you mean 'small_first'?" in str(raised.value.hint)
    assert "basic" in str(raised.value.facts["known"])
    assert lake.tables() == []
    table = made(lake, "basic")
    with pytest.raises(InvalidError, match="no such strategy"):
        table.change_settings(compaction_strategy="best")
    assert table.settings.compaction_strategy == "basic"
    table.change_settings(compaction_strategy="by_age")
    table.change_settings(leaf_rows_max=100)


def test_groups_of_more_files_than_a_job_may_have_are_refused() -> None:
    names = {str(n): FileName(n.to_bytes(4, "big")) for n in range(501)}
    whole = checked_groups([list(names)[:500]], names, strategy="s")
    assert len(whole[0]) == 500
    with pytest.raises(StrategyError, match="wrong size"):
        checked_groups([list(names)], names, strategy="s")
    for answer in (None, {}, "ab", [("0", "1")], [[0, 1]], [["0", ["1"]]], [["0", None]]):
        with pytest.raises(StrategyError):
            checked_groups(answer, names, strategy="s")
