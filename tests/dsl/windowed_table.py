"""A table that a feed fills, whose rows lie in windows of event time."""

import msgspec
import pytest

from lakebed.errors import LakebedError
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules
from lakebed.model.names import ConnectionId, Micros
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    Define,
)
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Change, PositionChange
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.table_state.feed_records import (
    Connection,
    connection_of,
)
from lakebed.statestore.table_state.window_records import (
    Watermark,
    Window,
    watermark_of,
    windows_of,
)
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

FEED = ConnectionId("feed")
SECOND = 1_000_000
RULES = WindowRules(10, idle_seconds=60, ahead_seconds_max=3_600)
DROP = msgspec.structs.replace(RULES, late="drop")


class WindowedTable:
    """A table that a feed fills, whose windows are ten seconds long. Times are seconds after its
    beginning."""

    def __init__(self, *splits: str, rules: WindowRules = RULES) -> None:
        self.story = TableStory()
        self.begin = Micros(self.story.clock.now() // (10 * SECOND) * 10 * SECOND)
        self.rules = rules
        self.positions: dict[str, bytes] = {}
        self.taken = 0
        self.story.when_committed(Define(FEED, 1, splits))

    def at(self, seconds: float) -> Micros:
        return Micros(self.begin + int(seconds * SECOND))

    def moved(self, *splits: str) -> list[PositionChange]:
        self.taken += 1
        before = self.positions
        return [next_position(f"{FEED}/{s}", before.get(s), self.taken) for s in splits]

    def commit(self, *changes: Change, positions: list[PositionChange]) -> int:
        made = self.story.transaction(*changes, positions=positions)
        number = self.story.head.commit(made)
        self.positions |= {p.name.removeprefix(f"{FEED}/"): p.value for p in positions}
        return number

    def take(self, split: str, *times: float, caught_up: bool = False, late: int = 0) -> int:
        """Commit rows with these event times. late: how many more were left out as late, all of
        the window that begins at 0."""
        starts = [self.at(time // 10 * 10) for time in times]
        counts = {start: WindowCount(start, starts.count(start)) for start in sorted(set(starts))}
        if late:
            known = counts.get(self.at(0), WindowCount(self.at(0)))
            counts[self.at(0)] = WindowCount(self.at(0), known.rows, late)
        windows = tuple(counts[start] for start in sorted(counts))
        newest = self.at(max(times)) if times else None
        said = SplitTime(split, newest, caught_up)
        changes: list[Change] = [Advance(FEED, 1, self.rules, (said,), windows)]
        if times or late:
            tally = Tally(read=len(times) + late, stored=len(times), discarded=late)
            changes.append(Count(FEED, 1, split, tally))
        if times:
            files = self.story.new_files("all", keys=None, **{f"f{self.taken}": len(times)})
            changes.append(AddFiles(files))
        return self.commit(*changes, positions=self.moved(split))

    def say(self, *splits: SplitTime) -> int:
        moved = self.moved(*(split.source_split for split in splits if not split.ended))
        return self.commit(Advance(FEED, 1, self.rules, splits), positions=moved)

    def refused(self, kind: type[LakebedError], change: Advance, *more: Change) -> str:
        """Try what is refused, and see that nothing was written."""
        before, state = self.story.log.appended, self.story.state.digest()
        splits = [split.source_split for split in change.splits if not split.ended]
        with pytest.raises(kind) as caught:
            self.commit(change, *more, positions=self.moved(*dict.fromkeys(splits)))
        assert type(caught.value) is kind
        assert self.story.log.appended == before
        assert self.story.state.digest() == state
        return str(caught.value)

    @property
    def connection(self) -> Connection:
        known = connection_of(self.story.state, FEED)
        assert known is not None
        return known

    @property
    def watermark(self) -> Watermark:
        return watermark_of(self.story.state, self.connection)

    def seconds(self) -> float | None:
        """The watermark, in seconds after the beginning."""
        time = self.watermark.time
        return None if time is None else (time - self.begin) / SECOND

    def windows(self) -> list[tuple[float | None, int, int, int | None, int, int | None]]:
        return [
            (None if w.start is None else (w.start - self.begin) / SECOND, *tail(w))
            for w in windows_of(self.story.state, self.connection)
        ]


def tail(window: Window) -> tuple[int, int, int | None, int, int | None]:
    return window.rows, window.late, window.sealed, window.revision, window.number
