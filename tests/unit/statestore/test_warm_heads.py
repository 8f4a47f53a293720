"""States that stay warm on the local disk, within a bound of bytes."""

import random
from pathlib import Path

from lakebed.backends.memory import MemoryObjectStore, MemoryTransactionLogs, VirtualClock
from lakebed.model.names import TableId
from lakebed.statestore.table_changes import create_table
from lakebed.statestore.warm_heads import WarmHeads
from tests.dsl import TableStory
from tests.dsl.table_story import SCHEMA


class Tables:
    """Many tables over one set of logs, with states on disk."""

    def __init__(self, folder: Path, bytes_max: int | None) -> None:
        self.clock = VirtualClock()
        self.logs = MemoryTransactionLogs(self.clock)
        (folder / "cache").mkdir()
        self.folder = folder
        self.objects = MemoryObjectStore(self.clock)
        self.story = TableStory()
        self.heads = self.warm(bytes_max)

    def warm(self, bytes_max: int | None) -> WarmHeads:
        return WarmHeads(
            folder=self.folder / "cache",
            scratch=self.folder,
            logs=self.logs,
            objects=self.objects,
            clock=self.clock,
            chance=random.Random(1),
            bytes_max=bytes_max,
        )

    def given_tables(self, *names: str) -> None:
        for name in names:
            creation = self.story.transaction(create_table(SCHEMA, {}, ()), base=0, generation=0)
            self.heads(TableId(name)).commit(creation)

    def cached(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "cache").glob("*.sqlite"))

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "cache").iterdir())


def test_states_stay_warm_until_others_need_the_room(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.given_tables("a", "b", "c")
    size = tables.bytes() // 3
    tables.heads.close()
    warm = tables.warm(2 * size)
    for name in ("a", "b", "a", "c", "a"):
        warm(TableId(name)).follow()
    assert tables.cached() == ["a", "c"]
    assert tables.bytes() <= 2 * size
    kept = warm(TableId("a"))
    assert warm(TableId("a")) is kept
    head = warm(TableId("b"))
    head.follow()
    assert head.state.head().number == 1
    assert tables.cached() == ["a", "b"]
    warm.close()


def test_what_a_former_process_left_counts(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.given_tables("a", "b", "c")
    tables.heads.close()
    warm = tables.warm(1)
    warm(TableId("b")).follow()
    assert tables.cached() == ["b"]
    warm.close()


def test_one_table_that_is_larger_than_the_bound_is_served(tmp_path: Path) -> None:
    tables = Tables(tmp_path, 1)
    tables.given_tables("a", "b")
    assert tables.cached() == ["b"]
    assert tables.heads(TableId("a")).state.head().number == 0
    tables.heads(TableId("a")).follow()
    assert tables.heads(TableId("a")).state.head().number == 1
    tables.heads.close()
