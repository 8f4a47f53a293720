"""States of older formats are opened and upgraded where they are, never dropped or called damaged.

`tests/golden/state_of_format_1.txt` was written by the program that made format 1.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from lakebed.backends.memory import MemoryTransactionLog
from lakebed.errors import CorruptError
from lakebed.model.names import TableId, TransactionNumber, entry_checksum
from lakebed.model.paths import snapshot_path
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.last_entry import last_checksum
from lakebed.statestore.table_state.layout import STATE_FORMAT, open_cache, open_memory
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory
from tests.golden import FOLDER, from_hex_lines

OLD_STATE = FOLDER / "state_of_format_1.txt"
TABLE = TableId("t")


def old_log() -> list[tuple[bytes, bytes]]:
    """Return the digests and bodies of the log that the old state was made from."""
    rows = (FOLDER / "old_log.txt").read_text(encoding="utf-8").splitlines()
    return [(bytes.fromhex(row.split()[0]), from_hex_lines(row.split()[1])) for row in rows]


def given_old_state(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD_STATE.read_text(encoding="utf-8"))
        connection.execute("PRAGMA user_version=1")
        connection.commit()


@pytest.fixture
def story() -> TableStory:
    """Return a table with the old log."""
    story = TableStory()
    story.log.log = MemoryTransactionLog(story.clock)
    for number, (_, body) in enumerate(old_log(), 1):
        story.log.log.append(TransactionNumber(number), body)
    return story


def schema_of(state: TableState) -> list[str]:
    rows = state.connection.execute("SELECT sql FROM sqlite_master ORDER BY name")
    return [str(text) for (text,) in rows]


def test_a_cache_of_format_1_is_upgraded_in_place(story: TableStory, tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    given_old_state(path)
    state = TableState(open_cache(path))
    digest, _ = old_log()[-1]
    assert (state.head().number, state.digest()) == (len(old_log()), digest)
    assert schema_of(state) == schema_of(TableState(open_memory()))
    assert last_checksum(state) is None
    assert state.connection.execute("PRAGMA user_version").fetchone() == (STATE_FORMAT,)
    again = TableState(open_cache(path))
    assert again.digest() == digest


def test_an_upgraded_cache_learns_the_checksum_of_the_next_entry(
    story: TableStory, tmp_path: Path
) -> None:
    path = tmp_path / "cache.sqlite"
    given_old_state(path)
    head = story.another_head(state=TableState(open_cache(path)))
    known = head.state.head()
    late = story.transaction(AddFiles(()), base=known.number, generation=known.generation)
    number = head.commit(late)
    assert number == len(old_log()) + 1
    ((_, body),) = story.log.log.read_after(TransactionNumber(number - 1))
    assert last_checksum(head.state) == entry_checksum(body)
    reader = story.another_head()
    reader.follow()
    assert last_checksum(reader.state) == entry_checksum(body)


def test_an_older_program_that_applies_an_entry_leaves_no_wrong_checksum(
    story: TableStory, tmp_path: Path
) -> None:
    head = story.another_head(state=TableState(open_cache(tmp_path / "cache.sqlite")))
    head.follow()
    assert last_checksum(head.state) is not None
    with head.state.writing():  # all that a program which knows format 1 writes
        head.state.write("UPDATE head SET number = number + 1")
    assert last_checksum(head.state) is None


def test_a_snapshot_of_format_1_is_proven_and_loaded(story: TableStory, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    given_old_state(copy)
    digest, _ = old_log()[-1]
    number = TransactionNumber(len(old_log()))
    path = snapshot_path(TABLE, number, digest)
    writer = story.objects.create(path)
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    writer.write(compressor.compress(copy.read_bytes()))
    writer.finish()
    snapshots = Snapshots(TABLE, story.objects, scratch=tmp_path)
    assert snapshots.prove(path)
    head = story.another_head(snapshots=snapshots)
    story.log.log.truncate(number)
    head.follow()
    assert (head.state.head().number, head.state.digest()) == (number, digest)
    assert schema_of(head.state) == schema_of(TableState(open_memory()))
    state = TableState(open_cache(tmp_path / "cache.sqlite", begin=snapshots.begin_cache))
    assert state.digest() == digest


def test_a_database_that_no_lakebed_laid_out_is_no_snapshot(
    story: TableStory, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE strange(x)")
        connection.commit()
    path = snapshot_path(TABLE, TransactionNumber(1), bytes(16))
    writer = story.objects.create(path)
    writer.write(zstandard.ZstdCompressor(write_checksum=True).compress(copy.read_bytes()))
    writer.finish()
    snapshots = Snapshots(TABLE, story.objects, scratch=tmp_path)
    assert not snapshots.prove(path)
    with pytest.raises(CorruptError, match="not a snapshot"):
        snapshots.load(path, TableState(open_memory()))
