"""A run collects very many files; each is deleted for a row that was proven, as it was then."""

import random
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.memory import MemoryObjectStore
from lakebed.errors import CacheDamagedError
from lakebed.garbage import collect
from lakebed.garbage.collect import CollectGarbage
from lakebed.model.names import TableId, TableName
from lakebed.model.paths import file_path
from lakebed.ports.clock import Clock
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state import proven_state
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory

TABLE = TableId("t")
FILES, AT_ONCE = 3_000, 100
"""More than a state that is proven whole when it is opened, in thirty groups."""


class ObservedObjects(MemoryObjectStore):
    """Objects that call back once, when some were deleted."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.callbacks: list[Callable[[], None]] = []

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        super().delete(paths)
        while self.callbacks:
            self.callbacks.pop()()


class ManyFiles:
    """A table with thousands of files that are garbage, and one that is not."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache.sqlite"
        self.story = story = TableStory()
        story.given_files("all", **{f"f{number}": 1 for number in range(FILES)})
        story.when_cleared()
        story.given_files("all", kept=1)
        story.when_committed(ChangeSettings({"garbage_seconds_min": 0}))
        self.objects = ObservedObjects(story.clock)
        self.kept = story.file("kept")
        self.objects.create(file_path(TABLE, self.kept)).finish()
        head = story.another_head(state=TableState(open_cache(self.cache)))
        self.table = OpenTable(id_=TABLE, name=TableName("t"), head=head, rng=random.Random(1))
        self.collect = CollectGarbage(objects=self.objects)

    def damage(self) -> None:
        """Let a row of garbage name the file that is none."""
        self._changed("file", self.kept)

    def damage_number(self, number: int) -> None:
        """Let a row of garbage have lost its last reference by another entry."""
        self._changed("number", number)

    def _changed(self, column: str, value: object) -> None:
        """Change a row behind the back of the sums."""
        with closing(sqlite3.connect(self.cache)) as connection, connection:
            changed = connection.execute(
                f"UPDATE garbage SET {column} = ? WHERE file = (SELECT max(file) FROM garbage)",
                (value,),
            )
            assert changed.rowcount == 1


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManyFiles:
    monkeypatch.setattr(collect, "FILES_AT_ONCE", AT_ONCE)
    return ManyFiles(tmp_path)


@pytest.mark.parametrize(("of_a_proof", "proofs"), [(50_000, 2), (1_000, 4)])
def test_garbage_is_proven_for_the_horizon_and_once_for_many_groups(
    many: ManyFiles, monkeypatch: pytest.MonkeyPatch, of_a_proof: int, proofs: int
) -> None:
    proven: list[str] = []
    verify_table = proven_state.verify_table

    def counted(connection: sqlite3.Connection, table: str) -> None:
        proven.append(table)
        verify_table(connection, table)

    monkeypatch.setattr(proven_state, "verify_table", counted)
    monkeypatch.setattr(collect, "FILES_OF_A_PROOF", of_a_proof)
    assert many.collect.run(many.table) == FILES
    assert proven.count("garbage") == proofs
    with many.story.head.reading() as state:
        assert state.garbage() == []


@pytest.mark.parametrize("past_the_log", [-1, 1_000])
def test_a_damaged_row_raises_no_horizon(many: ManyFiles, past_the_log: int) -> None:
    many.table.head.follow()
    number = many.story.head.state.head().number
    many.damage_number(number + past_the_log)
    with pytest.raises(CacheDamagedError):
        many.collect.run(many.table)
    many.story.head.follow()
    assert many.story.head.state.head().number == number


def test_a_row_that_was_changed_after_the_proof_deletes_nothing(many: ManyFiles) -> None:
    many.objects.callbacks.append(many.damage)
    with pytest.raises(CacheDamagedError):
        many.collect.run(many.table)
    assert many.objects.size_of(file_path(TABLE, many.kept)) is not None
