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
        """Let a row of garbage name the file that is none, behind the back of the sums."""
        with closing(sqlite3.connect(self.cache)) as connection, connection:
            changed = connection.execute(
                "UPDATE garbage SET file = ? WHERE file = (SELECT max(file) FROM garbage)",
                (self.kept,),
            )
            assert changed.rowcount == 1


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManyFiles:
    monkeypatch.setattr(collect, "FILES_AT_ONCE", AT_ONCE)
    return ManyFiles(tmp_path)


@pytest.mark.parametrize(("of_a_proof", "proofs"), [(50_000, 1), (1_000, 3)])
def test_garbage_is_proven_once_for_many_groups(
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


def test_a_row_that_was_changed_after_the_proof_deletes_nothing(many: ManyFiles) -> None:
    many.objects.callbacks.append(many.damage)
    with pytest.raises(CacheDamagedError):
        many.collect.run(many.table)
    assert many.objects.size_of(file_path(TABLE, many.kept)) is not None
