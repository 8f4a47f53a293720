"""A source as bad as sources are: offsets with holes, retention, splits that are made anew.

What it ever gave is known: the checkers compare tables with it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from lakebed.errors import UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import Records, SourceSplit

RawRecord = tuple[int, int]
"""The offset of a record, and a number that no other record of the world has."""
HOLE_CHANCE = 0.2


class SourceMishap(StrEnum):
    """What happens to a source."""

    AWAY = "a source does not answer"
    LISTING_LAGS = "a listing lacks a source split"
    HOLE = "offsets of a source have a hole"
    OLDEST_LOST = "a source loses its oldest records"
    NEXT_LOST = "a source has no longer what is read next"
    MADE_ANEW = "a source split is made anew"


class ModelSplit(msgspec.Struct):
    """One source split. offsets: of all records that there ever were. ids: of theirs. kept: index
    of the first that is still there. end: behind the last offset that was given out."""

    name: str
    offsets: list[int] = []
    ids: list[int] = []
    kept: int = 0
    end: int = 0
    is_there: bool = True

    @property
    def oldest(self) -> int:
        """The first offset that can be read."""
        return self.offsets[self.kept] if self.kept < len(self.offsets) else self.end

    def between(self, begin: int, end: int) -> Sequence[RawRecord]:
        """Return the records of a range, those that are gone among them."""
        some = slice(bisect_left(self.offsets, begin), bisect_left(self.offsets, end))
        return list(zip(self.offsets[some], self.ids[some], strict=True))


class ModelSource:
    """What all machines read from. name_of: names a source split by topic and incarnation.
    happened: how often each mishap did."""

    def __init__(
        self,
        rng: random.Random,
        name_of: Callable[[str, int], str] = lambda topic, made: f"{topic}@{made}",
    ) -> None:
        self._rng = rng
        self._name_of = name_of
        self._incarnations: dict[str, int] = {}
        self._last = 0
        self.splits: list[ModelSplit] = []
        self.topics: dict[str, ModelSplit] = {}
        self.happened: Counter[SourceMishap] = Counter()

    def between(self, name: str, begin: int, end: int) -> list[RawRecord]:
        """Return the records of a range of a source split, whatever has become of them."""
        splits = (split for split in self.splits if split.name == name)
        return [record for split in splits for record in split.between(begin, end)]

    def grow(self) -> None:
        """Begin a source split."""
        self._make(f"topic-{len(self.topics)}")

    def make_anew(self) -> None:
        """Delete a topic, and make another one under its name."""
        if self.topics:
            topic = self._rng.choice(sorted(self.topics))
            self.topics[topic].is_there = False
            self.happened[SourceMishap.MADE_ANEW] += 1
            self._make(topic)

    def _make(self, topic: str) -> None:
        self._incarnations[topic] = self._incarnations.get(topic, 0) + 1
        name = self._name_of(topic, self._incarnations[topic])
        first = self._rng.choice((0, 0, 1_000))
        self.topics[topic] = ModelSplit(name, end=first)
        self.splits.append(self.topics[topic])

    def produce(self, count: int) -> None:
        """Append records to some source split."""
        split = self.topics[self._rng.choice(sorted(self.topics))]
        for _ in range(count):
            if self._rng.random() < HOLE_CHANCE:
                self.happened[SourceMishap.HOLE] += 1
                split.end += self._rng.randrange(1, 4)
            self._last += 1
            split.offsets.append(split.end)
            split.ids.append(self._last)
            split.end += 1

    def forget_old(self) -> None:
        """Let retention take the oldest records of a source split."""
        split = self.topics[self._rng.choice(sorted(self.topics))]
        before = split.kept
        split.kept = min(len(split.offsets), split.kept + self._rng.randrange(1, 6))
        self.happened[SourceMishap.OLDEST_LOST] += split.kept > before


class ModelReader:
    """Reads one source split for one machine. happened: to the source."""

    def __init__(
        self,
        split: ModelSplit,
        begin: int,
        rng: random.Random,
        happened: Counter[SourceMishap],
    ) -> None:
        self._split = split
        self._next = begin
        self._rng = rng
        self._happened = happened

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[list[RawRecord]] | None:
        """Return some of the next records."""
        if self._rng.random() < 0.05:
            self._happened[SourceMishap.AWAY] += 1
            raise UnavailableError("the source does not answer")
        if self._next < self._split.oldest and self._split.between(self._next, self._split.oldest):
            self._happened[SourceMishap.NEXT_LOST] += 1
            raise PositionGoneError("records are gone", first=self._next, end=self._split.oldest)
        records = self._split.between(self._next, self._split.end)[: self._rng.randrange(1, 8)]
        if not records or self._rng.random() < 0.1:
            return None
        begin, self._next = self._next, records[-1][0] + 1
        return Records(
            begin=begin,
            end=self._next,
            count=len(records),
            size=10 * len(records),
            batch=list(records),
        )

    def behind(self) -> int:
        """Return how far it is to the end."""
        return self._split.end - self._next

    def acknowledge(self, end: int) -> None:
        """Do nothing: what the source believes is not asked."""

    def close(self) -> None:
        """Nothing is held."""


class ModelDoor:
    """The source as one machine sees it: a listing may lag."""

    def __init__(self, source: ModelSource, rng: random.Random, *, is_calm: bool = False) -> None:
        self._source = source
        self._rng = rng
        self._is_calm = is_calm

    def splits(self) -> list[SourceSplit]:
        """Return the source splits that are there, one of them perhaps left out."""
        found = list(self._source.topics.values())
        if not self._is_calm and len(found) > 1 and self._rng.random() < 0.2:
            self._source.happened[SourceMishap.LISTING_LAGS] += 1
            found.remove(self._rng.choice(found))
        return [SourceSplit(split.name, split.name) for split in found]

    def start(self, split: SourceSplit) -> int:
        """Begin with the oldest record that is there."""
        return self._named(split.name).oldest

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> ModelReader:
        """Return a reader."""
        return ModelReader(self._named(split.name), begin, self._rng, self._source.happened)

    def close(self) -> None:
        """Nothing is held."""

    def _named(self, name: str) -> ModelSplit:
        return next(s for s in reversed(self._source.splits) if s.name == name)
