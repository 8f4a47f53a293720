"""A user's strategy may think for long: others read and commit meanwhile, and what it chose is held
against the state of then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakebed.lake import Lake
from lakebed.ports.compaction_strategies import LeafFile
from lakebed.table import Table
from tests.unit.compaction.strategy_lakes import MergesTheOldestTwo, create, held, made
from tests.unit.tables.lakes import ids, rows

pytestmark = pytest.mark.usefixtures("installed")


class Thinks(MergesTheOldestTwo):
    """A strategy that takes its time. meanwhile: what goes on until it answers."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def _ask(self, files: Sequence[LeafFile]) -> object:
        self._meanwhile()
        return super()._ask(files)


def test_others_commit_and_read_while_a_strategy_thinks(lake: Lake) -> None:
    table = made(lake, "none")

    def others() -> None:
        table.ingest(rows(["z"]))
        assert "z" in ids(table)

    with ThreadPoolExecutor(1) as thread:
        thinks = Thinks(lambda: thread.submit(others).result(timeout=30))
        assert create(lake, table, strategies=thinks) == 1
    assert thinks.asked == [3]  # by the figures from before
    assert [job is not None for job in held(table)] == [True, True, False, False]


def compact(table: Table) -> None:
    table.compact()


def clear(table: Table) -> None:
    table.clear()


def choose_another(table: Table) -> None:
    table.change_settings(compaction_strategy="by_age")


def choose_ours(table: Table) -> None:
    table.change_settings(compaction_strategy="basic", job_files_max=3)


@pytest.mark.parametrize(
    ("meanwhile", "created"), [(compact, 0), (clear, 0), (choose_another, 0), (choose_ours, 1)]
)
def test_what_a_strategy_chose_is_held_against_the_state_of_then(
    lake: Lake, meanwhile: Callable[[Table], None], created: int
) -> None:
    table = made(lake, "none")
    before = len(table.query().read_all()) if meanwhile is not clear else 0
    assert create(lake, table, strategies=Thinks(lambda: meanwhile(table))) == created
    assert sum(job is not None for job in held(table)) == 3 * created
    lake.run()
    assert len(table.query().read_all()) == before


def test_a_leaf_that_lost_one_file_keeps_what_else_was_chosen_for_it(lake: Lake) -> None:
    table = made(lake, "none", files=4)
    oldest = MergesTheOldestTwo()

    class BothPairs(Thinks):
        def _ask(self, files: Sequence[LeafFile]) -> object:
            self._meanwhile()
            return [[file.name for file in some] for some in (files[:2], files[2:])]

    both = BothPairs(lambda: create(lake, table, strategies=oldest))
    assert create(lake, table, strategies=both) == 1
    jobs = held(table)
    assert jobs[0] == jobs[1] != jobs[2] == jobs[3]
