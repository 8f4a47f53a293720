"""Snapshots: written, proven, passed over when damaged; truncation only below them (H12 to H14)."""

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from lakebed.errors import (
    CacheDamagedError,
    LogRolledBackError,
    LogTruncatedError,
    NewerFormatError,
    UnavailableError,
)
from lakebed.model.names import TableId, TransactionNumber
from lakebed.model.paths import snapshot_path
from lakebed.ports.object_store import ObjectRanges
from lakebed.statestore import snapshots as snapshots_module
from lakebed.statestore.snapshots import LOG_BYTES_MIN, LOG_ENTRIES_MAX, Snapshots
from lakebed.statestore.table_state.layout import STATE_FORMAT, open_cache, open_memory
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory


@pytest.fixture
def story() -> TableStory:
    return TableStory("L | m | R")


@pytest.fixture
def snapshots(story: TableStory, tmp_path: Path) -> Snapshots:
    return Snapshots(TableId("t"), story.objects, scratch=tmp_path)


def put(story: TableStory, path: str, body: bytes) -> None:
    writer = story.objects.create(path)
    writer.write(body)
    writer.finish()


def body_of(story: TableStory, path: str) -> bytes:
    facts = story.objects.look(path)
    assert facts is not None
    return story.objects.read(path, [(0, facts.size)])[0]


def altered(story: TableStory, path: str, statement: str, folder: Path) -> bytes:
    """Return a snapshot's bytes after a statement was run in its database."""
    file = folder / "altered.sqlite"
    file.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body_of(story, path)))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(statement)
    return zstandard.compress(file.read_bytes())


def replace(story: TableStory, path: str, body: bytes) -> None:
    story.objects.delete([path])
    put(story, path, body)


def newest(snapshots: Snapshots) -> str:
    return snapshots.newest_first()[0][1]


def grown(story: TableStory, *names: str) -> None:
    for name in names:
        story.given_files(random.Random(name).choice("LR"), **{name: 1})


def test_a_snapshot_and_the_rest_of_the_log_say_what_the_whole_log_says(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b")
    story.when_claimed("one", *claimed(story))
    snapshots.write(story.state)
    story.when_given_up("one")
    grown(story, "c")
    replayed = story.another_head()
    replayed.follow()
    story.log.log.truncate(TransactionNumber(4))
    started = story.another_head(snapshots=snapshots)
    started.follow()
    assert started.state.digest() == replayed.state.digest() == story.state.digest()


def claimed(story: TableStory) -> tuple[str, str]:
    leaf = next(leaf for leaf in "LR" if story.state.references(story.partitions[leaf]))
    names = {file.name: name for name, file in story.files.items()}
    return leaf, names[story.state.references(story.partitions[leaf])[0][0].file.name]


def test_a_log_that_starts_later_is_read_from_a_snapshot(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b")
    behind = story.another_head(snapshots=snapshots)
    behind.follow()
    grown(story, "c", "d")
    snapshots.write(story.state)
    grown(story, "e")
    story.log.truncate(TransactionNumber(5))
    behind.follow()
    assert behind.state.digest() == story.state.digest()


def test_a_log_that_is_truncated_while_it_is_read_is_read_from_a_snapshot(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b", "c")
    snapshots.write(story.state)
    grown(story, "d")

    def strip() -> None:
        story.log.truncate(TransactionNumber(4))

    behind = story.another_head()
    story.log.reads = [2, strip]
    with pytest.raises(UnavailableError):
        behind.follow()
    assert behind.state.head().number == 2
    other = story.another_head(state=behind.state, snapshots=snapshots)
    other.follow()
    assert other.state.digest() == story.state.digest()


def test_a_log_that_starts_later_than_every_snapshot_in_sight_is_read_again_later(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b")
    story.log.truncate(TransactionNumber(3))
    for source in (None, snapshots):
        with pytest.raises(UnavailableError, match="log starts later"):
            story.another_head(snapshots=source).follow()


def test_writing_the_same_state_again_does_nothing(story: TableStory, snapshots: Snapshots) -> None:
    assert snapshots.write(story.state) == 1
    before = newest(snapshots)
    assert snapshots.write(story.state) == 1
    assert [path for _, path in snapshots.newest_first()] == [before]


def test_snapshots_of_replicas_have_one_name(story: TableStory, snapshots: Snapshots) -> None:
    grown(story, "a", "b", "c")
    other = story.another_head()
    other.follow()
    snapshots.write(story.state)
    snapshots.write(other.state)
    assert len(snapshots.newest_first()) == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "not zstd", "not sqlite", "gone"])
def test_a_damaged_snapshot_is_passed_over(
    story: TableStory, snapshots: Snapshots, damage: str
) -> None:
    snapshots.write(story.state)
    grown(story, "a")
    snapshots.write(story.state)
    path = newest(snapshots)
    body = body_of(story, path)
    middle = len(body) // 2
    flipped = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
    bodies = {
        "cut": body[:-3],
        "flipped": flipped,
        "empty": zstandard.compress(b""),
        "not zstd": b"rubbish",
        "not sqlite": zstandard.compress(b"rubbish" * 1000),
    }
    if damage == "gone":
        listed = snapshots.newest_first()
        snapshots.newest_first = lambda: listed  # type: ignore[method-assign]  # as one that lags
        story.objects.delete([path])
    else:
        replace(story, path, bodies[damage])
    assert not snapshots.prove(path)
    state = story.another_head().state
    assert snapshots.load_newest(state)
    assert state.head().number == 1


def test_a_snapshot_whose_contents_are_others_is_not_proven(
    story: TableStory, snapshots: Snapshots, tmp_path: Path
) -> None:
    grown(story, "a")
    snapshots.write(story.state)
    path = newest(snapshots)
    assert snapshots.prove(path)
    replace(story, path, altered(story, path, "UPDATE file_references SET rows = 2", tmp_path))
    assert not snapshots.prove(path)


def test_a_newer_snapshot_is_refused_and_nothing_is_changed(
    story: TableStory, snapshots: Snapshots, tmp_path: Path
) -> None:
    snapshots.write(story.state)
    grown(story, "a")
    snapshots.write(story.state)
    path = newest(snapshots)
    newer = f"PRAGMA user_version={STATE_FORMAT + 1}"
    replace(story, path, altered(story, path, newer, tmp_path))
    head = story.another_head(snapshots=snapshots)
    before = head.state.digest()
    with pytest.raises(NewerFormatError, match="upgrade"):
        head.follow()
    assert head.state.digest() == before


@pytest.mark.parametrize("number", [-5, 0, STATE_FORMAT + 1])
def test_no_snapshot_is_written_of_a_state_whose_number_was_changed(
    story: TableStory, snapshots: Snapshots, number: int
) -> None:
    story.state.connection.execute(f"PRAGMA user_version={number}")
    with pytest.raises(CacheDamagedError, match="it says format"):
        snapshots.write(story.state)
    assert snapshots.newest_first() == []


def test_a_snapshot_with_a_number_below_all_formats_is_passed_over(
    story: TableStory, snapshots: Snapshots, tmp_path: Path
) -> None:
    snapshots.write(story.state)
    path = newest(snapshots)
    replace(story, path, altered(story, path, "PRAGMA user_version=-5", tmp_path))
    assert not snapshots.prove(path)
    assert not snapshots.load_newest(TableState(open_memory()))


def test_a_snapshot_that_is_not_newer_is_not_loaded(
    story: TableStory, snapshots: Snapshots
) -> None:
    snapshots.write(story.state)
    assert not snapshots.load_newest(story.state)


def test_the_log_is_emptied_only_below_the_second_newest_proven_snapshot(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b")
    snapshots.write(story.state)  # 3
    assert snapshots.truncate(story.log) == 0
    grown(story, "c")
    snapshots.write(story.state)  # 4
    grown(story, "d")
    snapshots.write(story.state)  # 5
    replace(story, newest(snapshots), b"damaged")
    assert snapshots.truncate(story.log) == 3
    with pytest.raises(LogTruncatedError):
        list(story.log.read_after(TransactionNumber(1)))
    assert len(list(story.log.read_after(TransactionNumber(2)))) == 3
    fresh = story.another_head(snapshots=snapshots)
    fresh.follow()
    assert fresh.state.digest() == story.state.digest()


def test_two_snapshots_are_kept(story: TableStory, snapshots: Snapshots) -> None:
    for name in "abcd":
        grown(story, name)
        snapshots.write(story.state)
    assert snapshots.truncate(story.log) == 4
    assert [number for number, _ in snapshots.newest_first()] == [5, 4]
    assert snapshots.truncate(story.log) == 4


def test_a_snapshot_is_due_by_entries_or_bytes_of_the_log_and_never_for_idle_tables(
    story: TableStory, snapshots: Snapshots
) -> None:
    assert not snapshots.is_due(story.log)
    snapshots.write(story.state)
    number = story.state.head().number
    for more in range(LOG_ENTRIES_MAX):
        story.log.log.append(TransactionNumber(number + 1 + more), b"x")
    assert not snapshots.is_due(story.log)
    story.log.log.append(TransactionNumber(number + 1 + LOG_ENTRIES_MAX), b"x")
    assert snapshots.is_due(story.log)
    large = type(story.log.log)(story.clock)
    large.append(TransactionNumber(1), b"")
    large.append(TransactionNumber(2), bytes(LOG_BYTES_MIN))
    assert not snapshots.is_due(large)
    large.append(TransactionNumber(3), b"x")
    assert snapshots.is_due(large)


def test_other_objects_among_snapshots_are_passed_over(
    story: TableStory, snapshots: Snapshots
) -> None:
    snapshots.write(story.state)
    put(story, "tables/t/snapshots/notes", b"hello")
    assert len(snapshots.newest_first()) == 1


def test_a_cache_begins_with_the_newest_good_snapshot(
    story: TableStory, snapshots: Snapshots, tmp_path: Path
) -> None:
    grown(story, "a")
    snapshots.write(story.state)
    put(story, snapshot_path(TableId("t"), TransactionNumber(9), bytes(16)), b"damaged")
    path = tmp_path / "cache.sqlite"
    state = TableState(open_cache(path, begin=snapshots.begin_cache))
    assert state.head().number == 2
    assert state.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    head = story.another_head(state=state, snapshots=snapshots)
    grown(story, "b")
    head.follow()
    assert state.digest() == story.state.digest()


def test_a_cache_without_any_snapshot_begins_empty(
    story: TableStory, snapshots: Snapshots, tmp_path: Path
) -> None:
    path = tmp_path / "cache.sqlite"
    state = TableState(open_cache(path, begin=snapshots.begin_cache))
    assert state.head().number == 0
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".new") == []


def test_pieces_of_a_large_snapshot_are_asked_for_each_on_its_own(
    story: TableStory, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(story, "a", "b")
    snapshots.write(story.state)
    asked: list[list[tuple[int, int]]] = []
    read_many = story.objects.read_many

    def noted(wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        asked.append([span for _, spans in wanted for span in spans])
        assert all(len(spans) == 1 for _, spans in wanted), "neighbours would come together"
        return read_many(wanted)

    monkeypatch.setattr(snapshots_module, "PIECE_BYTES", 300)
    monkeypatch.setattr(story.objects, "read_many", noted)
    started = story.another_head(snapshots=snapshots)
    started.follow()
    assert started.state.digest() == story.state.digest()
    assert len(asked[0]) == snapshots_module.PIECES_AT_ONCE
    flat = [span for spans in asked for span in spans]
    assert all(before[1] == after[0] for before, after in pairwise(flat))


def test_a_log_behind_its_snapshots_is_refused_until_they_are_taken_away(
    story: TableStory, snapshots: Snapshots
) -> None:
    grown(story, "a", "b")
    old = {n: body for n, body in story.log.log.read_after(TransactionNumber(0)) if n < 3}
    snapshots.write(story.state)
    grown(story, "c")
    story.log.log._bodies = old
    fresh = story.another_head(snapshots=snapshots)
    for _ in range(2):
        with pytest.raises(LogRolledBackError):
            fresh.follow()
    story.objects.delete([path for _, path in snapshots.newest_first()])
    reader = story.another_head(snapshots=snapshots)
    reader.follow()
    assert reader.state.head().number == 2
