"""Leases and definitions of feeds on a disk: damage, power, processes, and secrets in files."""

import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.local import (
    FileSecrets,
    SqliteFeedRegistry,
    SqliteLeases,
    SqliteTableRegistry,
    sqlite_database,
)
from lakebed.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    StorageFullError,
    TableExistsError,
)
from lakebed.feed_errors import SecretMissingError
from lakebed.model.feeds.definitions import FeedFailure, NamedDefinition
from lakebed.model.feeds.endings import Ending, Endings, KnownIn
from lakebed.model.feeds.flushes import Flushes
from lakebed.model.names import ConnectionId, TableId, table_name
from lakebed.ports.leases import OwnerNumber, WorkerId
from lakebed.ports.table_registry import TableEntry
from tests.dsl.format_numbers import make_newer

ANN = WorkerId("ann")
FEED = NamedDefinition(kind="feed", name="orders", id="f1", body=b"{}")
PROCESSES, CLAIMS = 3, 20
spawn = multiprocessing.get_context("spawn")

OPENERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: SqliteLeases(root).claim("a", ANN, 0), "leases"),
    (lambda root: SqliteLeases(root).workers(), "leases"),
    (lambda root: SqliteFeedRegistry(root).put(FEED, 0), "feeds"),
    (lambda root: SqliteFeedRegistry(root).list("feed"), "feeds"),
]


@pytest.mark.parametrize(("opener", "name"), OPENERS)
def test_a_file_that_is_no_database_is_corrupt(
    tmp_path: Path, opener: Callable[[Path], object], name: str
) -> None:
    (tmp_path / f"{name}.sqlite").write_bytes(b"this is no database, whatever it says" * 100)
    with pytest.raises(CorruptError):
        opener(tmp_path)


@pytest.mark.parametrize(("opener", "name"), OPENERS)
def test_a_file_of_a_newer_format_is_refused(
    tmp_path: Path, opener: Callable[[Path], object], name: str
) -> None:
    opener(tmp_path)
    make_newer(tmp_path / f"{name}.sqlite")
    with pytest.raises(NewerFormatError):
        opener(tmp_path)


def edited(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE owner SET number = 1",
        "UPDATE owner SET worker = 'ben'",
        "UPDATE owner SET name = 'b'",
        "UPDATE worker SET counter = 99",
        "UPDATE worker SET report = x'00'",
    ],
)
def test_a_lease_that_was_changed_by_a_disk_is_damage(tmp_path: Path, statement: str) -> None:
    leases = SqliteLeases(tmp_path)
    leases.claim("a", ANN, 7)
    leases.beat(ANN, b"x")
    leases.close()
    edited(tmp_path / "leases.sqlite", statement)
    read = leases.owners if "owner" in statement else leases.workers
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        read()


@pytest.mark.parametrize(
    "change", ["version = 9", "wanted = 'running'", "body = x'00'", "reason = 'x'", "name = 'b'"]
)
def test_a_definition_that_was_changed_by_a_disk_is_damage(tmp_path: Path, change: str) -> None:
    registry = SqliteFeedRegistry(tmp_path)
    registry.put(FEED, 0)
    registry.note_failure("feed", "orders", FeedFailure("a", "b", 1))
    registry.close()
    edited(tmp_path / "feeds.sqlite", f"UPDATE definition SET {change}")
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        registry.list("feed")


def test_a_number_of_definitions_that_is_gone_is_damage(tmp_path: Path) -> None:
    registry = SqliteFeedRegistry(tmp_path)
    registry.put(FEED, 0)
    registry.close()
    edited(tmp_path / "feeds.sqlite", "DELETE FROM definition_number")
    with pytest.raises(CorruptError, match="number is gone"):
        registry.number()


def test_names_and_definitions_need_no_write_ahead_file(tmp_path: Path) -> None:
    """A bit of that file that flips takes all commits from there on away, without a word."""
    tables, feeds = SqliteTableRegistry(tmp_path), SqliteFeedRegistry(tmp_path)
    names = [table_name(f"t{number}") for number in range(20)]
    for name in names:
        tables.claim(name, TableId(name * 2))
    feeds.put(FEED, 0)
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in ("tables.sqlite", "feeds.sqlite"):
        shutil.copy(tmp_path / file, moved)
    assert [entry.name for entry in SqliteTableRegistry(moved).list()] == sorted(names)
    assert [entry.definition.name for entry in SqliteFeedRegistry(moved).list("feed")] == ["orders"]


def test_names_are_assigned_all_or_none(tmp_path: Path) -> None:
    tables = SqliteTableRegistry(tmp_path)
    first, second, third = (TableId(letter * 32) for letter in "abc")
    tables.claim(table_name("one"), first, declared=True)
    tables.claim(table_name("two"), second)
    tables.claim(table_name("mine"), third)
    before = tables.list()
    swapped = [
        TableEntry(id=second, name=table_name("one"), online=False, watched="s3://b/f/"),
        TableEntry(id=first, name=table_name("two")),
    ]
    with pytest.raises(TableExistsError):
        tables.assign([*swapped, TableEntry(id=TableId("d" * 32), name=table_name("mine"))])
    assert tables.list() == before
    tables.assign(swapped)
    mine = TableEntry(id=third, name=table_name("mine"))
    assert tables.list() == [mine, *swapped]


def test_names_that_are_gone_are_no_answer(tmp_path: Path) -> None:
    tables, name = SqliteTableRegistry(tmp_path), table_name("t")
    assert tables.list() == []
    tables.claim(name, TableId("a" * 32))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f"{'a' * 32}.sqlite").touch()
    (tmp_path / "tables.sqlite").unlink()
    for ask in (tables.list, tables.formats, lambda: tables.find(name)):
        for _ in range(2):
            with pytest.raises(CorruptError, match="names of all tables are gone"):
                ask()
    tables.claim(table_name("again"), TableId("a" * 32))
    assert [entry.name for entry in tables.list()] == ["again"]


def test_names_are_given_while_a_reader_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_SECONDS", 0.1)
    tables = SqliteTableRegistry(tmp_path)
    tables.claim(table_name("first"), TableId("a" * 32))
    reader = sqlite3.connect(tmp_path / "tables.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM name").fetchall()
    tables.claim(table_name("second"), TableId("b" * 32))
    reader.close()
    tables.claim(table_name("third"), TableId("c" * 32))
    assert [entry.name for entry in tables.list()] == ["first", "second", "third"]


def test_a_full_disk_refuses_and_changes_nothing(tmp_path: Path) -> None:
    leases, registry = SqliteLeases(tmp_path), SqliteFeedRegistry(tmp_path)
    leases.claim("a", ANN, 0)
    registry.put(FEED, 0)
    for store in (leases, registry):
        with store._database.reading() as connection:
            connection.execute("PRAGMA max_page_count=1")
    large = NamedDefinition(kind="feed", name="orders", id="f1", body=b"x" * 100_000)
    for call in (
        lambda: [leases.claim(f"{n:0500}", ANN, 0) for n in range(100)],
        lambda: registry.put(large, 1),
    ):
        with pytest.raises(StorageFullError):
            call()
    found = registry.get("feed", "orders")
    assert found is not None
    assert (found.definition.version, registry.number()) == (1, 1)
    owner = leases.owner("a")
    assert owner is not None
    assert owner.number == 1


def claim_many(root: Path, worker: int) -> list[OwnerNumber]:
    leases = SqliteLeases(root)
    return [leases.claim("a", WorkerId(f"w{worker}"), 0) for _ in range(CLAIMS)]


def test_processes_that_race_for_one_source_split_get_numbers_of_their_own(tmp_path: Path) -> None:
    with spawn.Pool(PROCESSES) as pool:
        given = pool.starmap(claim_many, [(tmp_path, n) for n in range(PROCESSES)], chunksize=1)
    numbers = sorted(number for one in given for number in one)
    assert numbers == list(range(1, PROCESSES * CLAIMS + 1))


def test_a_secret_that_more_users_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kafka"
    path.write_text("hunter2")
    for mode in (0o640, 0o604, 0o620, 0o644, 0o601):
        path.chmod(mode)
        with pytest.raises(DeniedError, match="chmod 600") as raised:
            FileSecrets(tmp_path).read("kafka")
        assert "hunter2" not in str(raised.value)
    for mode in (0o600, 0o400):
        path.chmod(mode)
        assert FileSecrets(tmp_path).read("kafka").reveal() == "hunter2"


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    (path.parent / "other").write_text("hunter2")
    (path.parent / "other").chmod(0o600)
    path.symlink_to(path.parent / "other")


def make_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("make", [make_folder, make_link, make_pipe])
def test_what_is_no_plain_file_is_no_secret(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "kafka")
    with pytest.raises((InvalidError, DeniedError)) as raised:
        FileSecrets(tmp_path).read("kafka")
    assert isinstance(raised.value, LakebedError)
    assert "hunter2" not in str(raised.value)


def test_a_missing_secret_says_where_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(SecretMissingError, match="LAKEBED_SECRET_KAFKA_1"):
        FileSecrets(tmp_path / "gone").read("kafka-1")


ENDING = Ending(
    id="f0", kind="connection", name="old", known_in=(KnownIn(ConnectionId("c"), TableId("t")),)
)
OLDER = """
    CREATE TABLE registry (number INTEGER NOT NULL) STRICT;
    INSERT INTO registry SELECT number FROM definition_number;
    DROP TABLE definition_number;
    PRAGMA user_version = 1;"""
ASKED: dict[str, Callable[[SqliteFeedRegistry], object]] = {
    "number": lambda registry: registry.number(),
    "get": lambda registry: registry.get("feed", "orders"),
    "list": lambda registry: registry.list("feed"),
    "flushes": lambda registry: registry.flushes(),
    "endings": lambda registry: registry.endings(),
    "lift": lambda registry: registry.lift(2),
    "change": lambda registry: registry.drop("feed", "orders", 1),
}


def filled(folder: Path) -> SqliteFeedRegistry:
    registry = SqliteFeedRegistry(folder)
    registry.put(FEED, 0)
    registry.want_flush("orders", 0)
    registry.change_endings([ENDING], (), 0)
    registry.close()
    return registry


def is_as_filled(registry: SqliteFeedRegistry) -> bool:
    (entry,) = registry.list("feed")
    assert (entry.definition.body, registry.number()) == (FEED.body, 1)
    return registry.flushes().of("orders") == 1 and registry.endings().waiting == (ENDING,)


@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
@pytest.mark.parametrize(
    "change",
    [
        "definition_number SET number = 0",
        "definition SET kind = 'policy'",
        "definition SET name = 'b'",
        "definition SET body = NULL",
        "flush SET wishes = x'7b7d'",
        "ending SET waiting = x'7b7d'",
    ],
)
def test_a_row_of_feeds_that_was_changed_is_damage_whatever_is_asked(
    tmp_path: Path, change: str, ask: Callable[[SqliteFeedRegistry], object]
) -> None:
    registry = filled(tmp_path)
    edited(tmp_path / "feeds.sqlite", f"UPDATE {change}")
    for _ in range(2):
        with pytest.raises(CorruptError, match="contradicts its checksum"):
            ask(registry)


@pytest.mark.parametrize("name", ["number", "lift", "change"])
def test_the_number_of_a_large_registry_proves_itself_whenever_it_is_used(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.backends.local.kept_database.PROVEN_BYTES_MAX", 0)
    registry = filled(tmp_path)
    assert is_as_filled(registry)
    registry.close()
    edited(tmp_path / "feeds.sqlite", "UPDATE definition_number SET number = 0")
    with pytest.raises(CorruptError, match="number contradicts its checksum"):
        ASKED[name](registry)


@pytest.mark.parametrize("has_wishes", [True, False])
def test_feeds_of_the_format_before_are_opened_and_proven_from_now_on(
    tmp_path: Path, has_wishes: bool
) -> None:
    registry = filled(tmp_path)
    dropped = "" if has_wishes else "DROP TABLE flush; DROP TABLE ending"
    with closing(sqlite3.connect(tmp_path / "feeds.sqlite")) as older:
        older.executescript(OLDER + dropped)
    (tmp_path / "feeds.made").unlink()
    if not has_wishes:
        assert (registry.flushes(), registry.endings()) == (Flushes(), Endings())
        registry.want_flush("orders", 0)
        registry.change_endings([ENDING], (), 0)
    assert is_as_filled(registry)
    registry.close()
    edited(tmp_path / "feeds.sqlite", "UPDATE definition_number SET number = 0")
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        registry.number()


def test_an_older_release_that_has_definitions_open_counts_no_change_unproven(
    tmp_path: Path,
) -> None:
    registry = filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "feeds.sqlite")) as older:
        older.executescript(OLDER)
        assert registry.number() == 1
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            older.execute("UPDATE registry SET number = number + 1")


def test_definitions_that_are_gone_are_no_answer(tmp_path: Path) -> None:
    assert SqliteFeedRegistry(tmp_path).list("feed") == []
    registry = filled(tmp_path)
    (tmp_path / "feeds.sqlite").unlink()
    for ask in ASKED.values():
        with pytest.raises(CorruptError, match=r"gone.*delete feeds\.made.*not said to go on"):
            ask(registry)
    (tmp_path / "feeds.made").unlink()
    assert registry.number() == 0


def test_a_column_of_the_number_whose_name_was_changed_is_damage(tmp_path: Path) -> None:
    registry = filled(tmp_path)
    path = tmp_path / "feeds.sqlite"
    path.write_bytes(path.read_bytes().replace(b"(number INTEGER", b"(numbar INTEGER"))
    with pytest.raises(CorruptError, match=r"it has no column definition_number\.number any more"):
        registry.number()
