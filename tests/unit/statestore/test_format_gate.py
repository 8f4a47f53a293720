"""What the lake does not allow is not written, and told as what to do; what it allows is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from lakebed.backends.memory import MemoryTableRegistry, VirtualClock
from lakebed.errors import FormatGateError, InvalidError, UnavailableError
from lakebed.model.formats import NEWEST, OLDEST, Formats, formats_of
from lakebed.model.names import ConnectionId, TableId, TransactionNumber
from lakebed.statestore.format_gate import KEPT_SECONDS, FormatGate
from lakebed.statestore.log_entries import codec
from lakebed.statestore.log_entries.codec import ENTRY_FORMAT
from lakebed.statestore.log_entries.feed_changes import Define
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.older_layouts import ADDED, SUMS, TABLES, write_down
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.layout import STATE_FORMAT, open_cache
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory

SETTINGS = ChangeSettings({"job_files_max": 7})


@pytest.fixture
def needs_more(monkeypatch: pytest.MonkeyPatch) -> int:
    """A change of settings needs a newer entry than lakes of all ages allow."""
    monkeypatch.setitem(codec._FORMATS, ChangeSettings, OLDEST.entry + 1)
    return OLDEST.entry + 1


def story_of(formats: Formats) -> TableStory:
    story = TableStory()
    story.head.formats = lambda: formats
    return story


def test_the_newest_forms_are_those_of_the_code() -> None:
    assert Formats(entry=ENTRY_FORMAT, state=STATE_FORMAT) == NEWEST
    assert OLDEST.entry <= NEWEST.entry
    assert OLDEST.state <= NEWEST.state


def test_an_entry_that_is_not_allowed_is_not_written_and_harms_no_neighbour(
    needs_more: int,
) -> None:
    story = story_of(OLDEST)
    before = story.log.appended
    with pytest.raises(FormatGateError, match="lakebed upgrade finish") as caught:
        story.when_committed(SETTINGS)
    assert not isinstance(caught.value, InvalidError), "nobody's request is rejected for it"
    assert caught.value.facts == {"needs": needs_more, "to": OLDEST.entry}
    assert story.log.appended == before
    plain = AddFiles(story.new_files("all", a=1))
    refused, landed = story.head.commit_group(
        [story.transaction(SETTINGS, id_="more"), story.transaction(plain, id_="plain")]
    )
    assert isinstance(refused, FormatGateError)
    assert isinstance(landed, int)
    assert story.summary() == "all\n  a  1 rows"


def test_an_entry_that_is_allowed_carries_its_format(needs_more: int) -> None:
    story = story_of(Formats(entry=needs_more, state=1))
    number = story.head.commit(story.transaction(SETTINGS))
    ((_, body),) = story.log.log.read_after(TransactionNumber(number - 1))
    assert body[0] == needs_more


class Counted(MemoryTableRegistry):
    asked = 0

    def formats(self) -> Formats | None:
        self.asked += 1
        return super().formats()


def test_a_lake_without_a_record_is_of_before_there_was_one() -> None:
    registry, clock = Counted(), VirtualClock()
    gate = FormatGate(registry, clock)
    assert (gate(), gate()) == (OLDEST, OLDEST)
    registry.raise_formats(NEWEST)
    clock.advance(KEPT_SECONDS)
    assert (gate(), gate()) == (NEWEST, NEWEST)
    clock.advance(KEPT_SECONDS * 1_000)
    assert gate() == NEWEST
    assert registry.asked <= 3


def test_what_only_newer_releases_write_is_not_for_us() -> None:
    registry = MemoryTableRegistry()
    registry.raise_formats(Formats(entry=99, state=99))
    assert FormatGate(registry, VirtualClock())() == NEWEST
    assert formats_of({"entry": 99, "of a newer release": 5}) == Formats(
        entry=99, state=OLDEST.state
    )


def test_a_record_that_cannot_be_read_allows_nothing(needs_more: int) -> None:
    def busy() -> Formats:
        raise UnavailableError("the registry is busy")

    story = TableStory()
    story.head.formats = busy
    story.given_files("all", a=1)
    with pytest.raises(UnavailableError):
        story.when_committed(SETTINGS)
    assert story.summary() == "all\n  a  1 rows"


def test_a_snapshot_has_the_layout_that_the_lake_allows(tmp_path: Path) -> None:
    story = TableStory()
    story.given_files("all", a=1, b=2)
    snapshots = Snapshots(TableId("t"), story.objects, scratch=tmp_path, formats=lambda: OLDEST)
    snapshots.write(story.state)
    ((_, path),) = snapshots.newest_first()
    assert snapshots.prove(path)
    size = story.objects.size_of(path)
    assert size is not None
    (body,) = story.objects.read(path, [(0, size)])
    file = tmp_path / "unpacked.sqlite"
    file.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body))
    with closing(sqlite3.connect(file)) as found:
        assert found.execute("PRAGMA user_version").fetchone() == (OLDEST.state,)
        assert (tables_in(found) == set(TABLES)) is (OLDEST.state < STATE_FORMAT)


OF_LAYOUT = {1: {*TABLES}, **{n: {*TABLES, *SUMS, *ADDED[n]} for n in ADDED}}


@pytest.mark.parametrize("layout", OF_LAYOUT)
def test_a_newer_layout_is_written_down_and_read_as_the_same_state(
    tmp_path: Path, layout: int
) -> None:
    story = TableStory()
    story.given_files("all", a=1, b=2)
    file = tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as copy:
        story.state.connection.backup(copy)
        copy.execute("CREATE TABLE of_a_newer_layout(a INTEGER)")
        write_down(copy, STATE_FORMAT)
        assert "of_a_newer_layout" in tables_in(copy)
        write_down(copy, layout)
        assert tables_in(copy) == OF_LAYOUT[layout]
        if layout > 1:  # its sums are those of its own tables, as its program proves them
            summed = {name for (name,) in copy.execute("SELECT name FROM row_sums")}
            assert summed == OF_LAYOUT[layout] - {*SUMS}
    with closing(open_cache(file)) as connection:
        assert TableState(connection).digest() == story.state.digest()


def test_what_an_older_layout_has_no_table_for_is_never_left_out(tmp_path: Path) -> None:
    story = TableStory()
    story.when_committed(Define(ConnectionId("feed"), 1))
    allowed = Formats(entry=NEWEST.entry, state=2)
    snapshots = Snapshots(TableId("t"), story.objects, scratch=tmp_path, formats=lambda: allowed)
    with pytest.raises(FormatGateError, match="lakebed upgrade finish"):
        snapshots.write(story.state)
    assert not list(snapshots.newest_first())
    assert not list(tmp_path.iterdir())


def tables_in(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return {name for (name,) in connection.execute(query)}
