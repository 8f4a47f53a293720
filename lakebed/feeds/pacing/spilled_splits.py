"""Source splits that are read ahead of their table: what lies in the spool, and what the pipeline
has got of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakebed.feeds.pacing.spilled_frames import Frame
from lakebed.ports.record_source import SourceSplit, SplitReader
from lakebed.ports.spool import FrameSpool

BatchT = TypeVar("BatchT")


@dataclass
class SpilledSplit(Generic[BatchT]):
    """A source split that is read ahead.

    base, base_resume: how far it is committed.
    next, resume: where `reader` reads on; it is None while it is not open.
    behind: what the source said last of what is beyond that.
    frames: that are not committed, oldest first.
    given: how many of them the pipeline has got.
    passed: ends of what it got past the spool, not committed, each with its `resume`.
    is_open: whether the pipeline reads it.
    """

    split: SourceSplit
    spool: FrameSpool
    base: int
    base_resume: bytes
    next: int = 0
    resume: bytes = b""
    reader: SplitReader[BatchT] | None = None
    behind: int | None = None
    frames: deque[Frame] = field(default_factory=deque)
    given: int = 0
    passed: deque[tuple[int, bytes]] = field(default_factory=deque)
    is_open: bool = True

    @property
    def waiting(self) -> int:
        """Positions that lie in the spool, and that the pipeline has not got."""
        if self.given == len(self.frames):
            return 0
        return self.frames[-1].end - self.frames[self.given].begin

    def begin_at(self, position: int, resume: bytes) -> None:
        """Begin again at a committed position, with those frames that go on from there."""
        self.base, self.base_resume, self.given = position, resume, 0
        self.passed.clear()
        while self.frames and self.frames[0].begin != position:
            self.spool.drop(self.frames.popleft().at)
        kept = deque[Frame]()
        while self.frames and self.frames[0].begin == position:
            kept.append(self.frames.popleft())
            position, resume = kept[-1].end, kept[-1].resume
        self.drop_frames()
        self.frames = kept
        self._go_to(position, resume)

    def committed(self, end: int) -> None:
        """Let go of what is committed."""
        while self.frames and self.frames[0].end <= end:
            frame = self.frames.popleft()
            self.spool.drop(frame.at)
            self.given = max(0, self.given - 1)
            self.base_resume = frame.resume
        while self.passed and self.passed[0][0] <= end:
            self.base_resume = self.passed.popleft()[1]
        self.base = end

    def back(self) -> None:
        """Drop what the pipeline has not got of the spool: it is read again."""
        if self.given < len(self.frames):
            first = self.frames[self.given]
            while len(self.frames) > self.given:
                self.spool.drop(self.frames.pop().at)
            self._go_to(first.begin, first.before)

    def drop_frames(self) -> None:
        """Let go of all that lies in the spool."""
        while self.frames:
            self.spool.drop(self.frames.popleft().at)
        self.given = 0

    def let_go(self) -> None:
        """Close the reader of the source."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()

    def _go_to(self, position: int, resume: bytes) -> None:
        if self.next != position:
            self.let_go()
        self.next, self.resume = position, resume
