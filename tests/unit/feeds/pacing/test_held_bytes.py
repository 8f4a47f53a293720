"""Pipelines of one process hold no more records together than fit into its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebed.errors import UnavailableError
from lakebed.feeds.commit_round import CommitRound
from lakebed.model.feeds.held_bytes import MEMORY_MIB, MIB, HeldBytes
from tests.unit.feeds.test_pipeline import Given

LINE = b"x" * 9 + b"\n"


def test_there_is_room_until_all_together_hold_the_most() -> None:
    held = HeldBytes(100)
    held.hold("a", 60)
    held.hold("b", 30)
    assert held.room == 10
    assert not held.is_to_commit("a")
    held.hold("b", 50)
    assert held.room == 0
    assert held.is_to_commit("a")
    assert not held.is_to_commit("b")


def test_who_holds_nothing_takes_no_room() -> None:
    held = HeldBytes(100)
    held.hold("a", 100)
    held.hold("a", 0)
    assert held.room == 100
    assert not held.is_to_commit("a")


def test_less_memory_means_fewer_bytes() -> None:
    held = HeldBytes()
    assert held.bytes_max == 64 * MIB
    held.fit_into(MEMORY_MIB // 2)
    assert 0 < held.bytes_max < 16 * MIB


@pytest.fixture
def held() -> HeldBytes:
    return HeldBytes(60)


def test_the_pipeline_that_holds_the_most_commits_early_and_the_other_reads_on(
    tmp_path: Path, held: HeldBytes
) -> None:
    first, second = Given(tmp_path / "1"), Given(tmp_path / "2")
    pipelines = [given.another(held=held) for given in (first, second)]
    first.source.lines = {"a": LINE * 4}
    second.source.lines = {"b": LINE * 9}
    for _ in range(4):
        assert pipelines[0].turn().committed is None
    for _ in range(2):
        assert pipelines[1].turn().committed is None
    assert held.room == 0
    assert pipelines[1].turn().committed is None, "the other one holds more"
    assert pipelines[0].turn().committed is not None
    assert held.room == 40
    assert pipelines[1].turn().has_read


def test_what_is_forgotten_makes_room(
    tmp_path: Path, held: HeldBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Given(tmp_path)
    pipeline = given.another(held=held)

    def away(*_: object) -> None:
        raise UnavailableError("the store is away")

    monkeypatch.setattr(CommitRound, "run", away)
    given.source.lines = {"a": LINE * 9}
    for _ in range(5):
        pipeline.turn()
    assert held.room == 10
    with pytest.raises(UnavailableError):
        pipeline.turn()
    assert held.room == 60
