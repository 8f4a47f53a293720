"""Dead letters of one table that cannot be ended, and those behind them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.jobs import CompactionMessage, encode_message
from lakebed.model.names import JobId, TableId
from lakebed.ports.job_queue import Message
from tests.unit.tables.lakes import SCHEMA
from tests.unit.tables.test_failing_tables import SETTINGS, damage_the_log, files, filled, id_of


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    """Two tables of two files each, which are due to be merged."""
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        for name in ("bad", "zzz"):
            opened.create_table(name, SCHEMA, split_points=["5"], settings=SETTINGS)
            filled(opened, name, "0")
        yield opened


def test_dead_letters_of_a_damaged_table_hide_no_others(
    tmp_path: Path, lake: Lake, clock: VirtualClock
) -> None:
    lake.run(["zzz"], kinds=["compaction-creation"])
    queue = lake._app.queue
    (sent,) = queue.receive(messages_max=10, hidden_seconds=60)
    queue.delete(sent.receipt)
    stuck = encode_message(CompactionMessage(TableId(id_of(lake, "bad")), JobId("stuck")))
    for body in [*[stuck] * 10, sent.body]:
        queue.send([Message(body)])
        (message,) = queue.receive(messages_max=1, hidden_seconds=60)
        queue.give_up(message)
    damage_the_log(tmp_path / "lake", lake, "bad")
    with Lake(open_local(tmp_path / "lake", clock=clock)) as again:
        assert again.run(failed=lambda _: None).jobs_given_up == 1
        assert files(again, "zzz") == 1
        assert again._app.queue.depth()[1] == 10


def test_a_bug_that_one_dead_letter_meets_hides_no_other(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.run(["bad", "zzz"], kinds=["compaction-creation"])
    queue = lake._app.queue
    for message in queue.receive(messages_max=10, hidden_seconds=60):
        queue.give_up(message)
    history = lake._app.tracker.history

    def broken(table: TableId, job: JobId) -> object:
        assert table != id_of(lake, "bad"), "a bug"
        return history(table, job)

    monkeypatch.setattr(lake._app.tracker, "history", broken)
    with pytest.raises(AssertionError, match="a bug"):
        lake.run()
    assert [job.report for job in lake.status("zzz")[0].jobs] == []
    assert queue.depth()[1] == 1
