"""Ways to damage a lake. Each does one thing to it, and says which findings may tell of it."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import zstandard

from lakebed.statestore.log_entries.codec import decode_entry, encode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.table_state.sums import lay_out_sums
from tests.unit.inspection.damageable_lakes import DamageableDirectory, DamageableLake

Damage = Callable[[DamageableLake, random.Random], set[str]]
LocalDamage = Callable[[DamageableDirectory, random.Random], set[str]]


def a_file(lake: DamageableLake, rng: random.Random) -> str:
    """Return the path of a file that the state refers to."""
    names = [
        name.hex() for (name,) in rows(lake.cache, "SELECT DISTINCT file FROM file_references")
    ]
    name = rng.choice(sorted(names))
    return next(path for path in lake.paths("files/") if name in path)


def rows(database: Path, statement: str) -> list[tuple]:  # type: ignore[type-arg]  # SQLite's own
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


def change(database: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement, values).rowcount, "nothing was changed"


def flipped(body: bytes, rng: random.Random, *, start: int = 0) -> bytes:
    changed = bytearray(body)
    changed[rng.randrange(start, len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def a_flipped_bit_in_a_file(lake: DamageableLake, rng: random.Random) -> set[str]:
    path = a_file(lake, rng)
    lake.write(path, flipped(lake.read(path), rng))
    return {"file-damaged"}


def a_file_cut_off(lake: DamageableLake, rng: random.Random) -> set[str]:
    path = a_file(lake, rng)
    body = lake.read(path)
    lake.write(path, body[: rng.randrange(len(body))])
    return {"file-damaged"}


def bytes_after_a_file(lake: DamageableLake, rng: random.Random) -> set[str]:
    path = a_file(lake, rng)
    lake.write(path, lake.read(path) + rng.randbytes(rng.randrange(1, 9)))
    return {"file-damaged"}


def another_file_in_its_place(lake: DamageableLake, rng: random.Random) -> set[str]:
    path = a_file(lake, rng)
    others = [other for other in lake.paths("files/") if other != path]
    lake.write(path, lake.read(rng.choice(others)))
    return {"file-damaged"}


def a_file_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.remove(a_file(lake, rng))
    return {"file-missing"}


def a_name_of(lake: DamageableLake, base: int, rng: random.Random) -> str:
    folder = lake.paths("files/")[0].rpartition("/")[0]
    return f"{folder}/{base:010x}{rng.randbytes(11).hex()}.parquet"


def an_old_object(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.write(a_name_of(lake, 0, rng), b"x")
    return {"object-unreferenced"}


def a_new_object(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.write(a_name_of(lake, 99, rng), b"x")
    return {"object-pending"}


def a_stranger(lake: DamageableLake, rng: random.Random) -> set[str]:
    table = lake.paths("files/")[0].rpartition("/files/")[0]
    folder = rng.choice([f"{table}/files/", f"{table}/", "tables/nobody/files/", "", "logs/"])
    lake.write(f"{folder}stranger.txt", b"x")
    return {"object-stray"}


def a_flipped_bit_in_the_log(lake: DamageableLake, rng: random.Random) -> set[str]:
    number, body = rng.choice(lake.entries())
    lake.set_entry(number, flipped(body, rng, start=1))
    return {"log-damaged"}


def an_entry_that_adds_other_rows(lake: DamageableLake, rng: random.Random) -> set[str]:
    """Edit the log as its own code would write it, and take the cache away: the files tell."""
    for number, body in reversed(lake.entries()):
        entry = decode_entry(body, number)
        transaction = entry.transactions[0]
        added = transaction.changes[0]
        if not isinstance(added, AddFiles) or not added.files:
            continue
        files = list(added.files)
        place = rng.randrange(len(files))
        files[place] = msgspec.structs.replace(files[place], rows=files[place].rows + 1)
        changed = msgspec.structs.replace(transaction, changes=(AddFiles(tuple(files)),))
        edited = encode_entry(msgspec.structs.replace(entry, transactions=(changed,)))
        lake.set_entry(number, edited)
        break
    if rng.random() < 0.5:
        return {"cache-differs", "log-differs"}
    lake.drop_cache()
    return {"rows-differ"}


def an_entry_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    numbers = [number for number, _ in lake.entries()]
    lake.set_entry(rng.randint(numbers[0] + 1, numbers[-1]), None)
    return {"log-gap", "log-behind"}


def two_entries_swapped(lake: DamageableLake, rng: random.Random) -> set[str]:
    (first, one), (second, other) = rng.sample(lake.entries()[1:], 2)
    lake.set_entry(first, other)
    lake.set_entry(second, one)
    return {"log-damaged", "log-differs", "cache-differs", "log-time-backwards", "snapshot-differs"}


def a_flipped_bit_in_a_snapshot(lake: DamageableLake, rng: random.Random) -> set[str]:
    path = rng.choice(lake.paths("snapshots/"))
    body = changed = lake.read(path)
    while unpacked(changed) == unpacked(body):  # zstd leaves some bits without a meaning
        changed = flipped(body, rng)
    lake.write(path, changed)
    return {"snapshot-damaged"}


def unpacked(body: bytes) -> bytes | None:
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except zstandard.ZstdError:
        return None


def a_snapshot_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.remove(rng.choice(lake.paths("snapshots/")))
    return {"snapshot-lost"}


def both_snapshots_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    for path in lake.paths("snapshots/"):
        lake.remove(path)
    return {"no-base"}


def the_log_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.drop_log()
    if rng.random() < 0.5:
        lake.drop_cache()
    return {"name-without-log", "log-missing"}


def a_name_gone(lake: DamageableLake, rng: random.Random) -> set[str]:
    lake.drop_name()
    return {"name-lost"}


def rows_spilled(lake: DamageableLake, rng: random.Random) -> set[str]:
    (lake.spill / "99999999-0").mkdir()
    return {"spill-left"}


def a_scrambled_cache(lake: DamageableLake, rng: random.Random) -> set[str]:
    body = bytearray(lake.cache.read_bytes())
    start = rng.randrange(0, len(body) - 4_096, 4_096)
    body[start : start + 4_096] = rng.randbytes(4_096)
    lake.cache.write_bytes(body)
    return {"cache-damaged", "cache-differs"}


def refuse(path: Path) -> None:
    """Let the system refuse to open a file, to any user: it leads to itself."""
    path.unlink()
    path.symlink_to(path)


def a_file_that_is_refused(lake: DamageableDirectory, rng: random.Random) -> set[str]:
    refuse(lake.path / "objects" / a_file(lake, rng))
    return {"file-unreadable"}


def a_snapshot_that_is_refused(lake: DamageableDirectory, rng: random.Random) -> set[str]:
    refuse(lake.path / "objects" / rng.choice(lake.paths("snapshots/")))
    if rng.random() < 0.5:
        lake.drop_cache()
    return {"snapshot-unreadable"}


def a_log_that_is_refused(lake: DamageableDirectory, rng: random.Random) -> set[str]:
    for part in lake.path.glob("logs/*.sqlite-*"):
        part.unlink()
    (log,) = lake.path.glob("logs/*.sqlite")
    log.unlink()
    log.mkdir()
    if rng.random() < 0.5:
        lake.drop_cache()
    return {"table-unreadable"}


def a_cache_that_is_refused(lake: DamageableDirectory, _rng: random.Random) -> set[str]:
    cache = lake.cache
    cache.unlink()
    cache.mkdir()
    return {"cache-unreadable"}


def a_copy_of_a_log_beside_it(lake: DamageableDirectory, rng: random.Random) -> set[str]:
    (log,) = lake.path.glob("logs/*.sqlite")
    suffix = rng.choice([".copy.sqlite", ".copy.sqlite-wal", ".sqlite.bak", " (1).sqlite"])
    log.with_name(f"{log.stem}{suffix}").write_bytes(log.read_bytes())
    return {"log-stray"}


_REFERENCE = "(partition, file) = (SELECT partition, file FROM file_references ORDER BY {} LIMIT 1)"
_EDITS = {
    "UPDATE file_references SET min = x'01', max = x'00' WHERE {one}": {"reference-outside"},
    "UPDATE file_references SET max = min || x'00' WHERE {one}": set(),
    "INSERT INTO file_references SELECT partition, zeroblob(16), rows, exact, min, max, size,"
    " tail_offset, checksum, tail_checksum, NULL FROM file_references WHERE {one}": set(),
    "INSERT INTO file_references SELECT (SELECT root FROM head), file, rows, exact, min, max, size,"
    " tail_offset, checksum, tail_checksum, NULL FROM file_references WHERE {one}": {
        "reference-not-on-leaf"
    },
    "DELETE FROM file_references WHERE {one}": set(),
    "UPDATE file_references SET partition = (SELECT root FROM head) WHERE {one}": {
        "reference-not-on-leaf"
    },
    "UPDATE file_references SET partition = 9999 WHERE {one}": {"reference-not-on-leaf"},
    "UPDATE file_references SET size = size + 1 WHERE {one}": set(),
    "UPDATE file_references SET rows = rows + 1 WHERE {one}": set(),
    "UPDATE file_references SET rows = -1 WHERE {one}": {"reference-impossible"},
    "UPDATE file_references SET tail_offset = size WHERE {one}": {"reference-impossible"},
    "UPDATE file_references SET checksum = checksum + 1 WHERE {one}": set(),
    "UPDATE file_references SET exact = 1 - exact WHERE {one}": set(),
    "UPDATE file_references SET job = 77 WHERE {one}": {"claim-without-job"},
    "UPDATE file_references SET job = NULL WHERE job IS NOT NULL": {"job-without-claim"},
    "DELETE FROM jobs": {"claim-without-job"},
    "INSERT INTO jobs(id, partition, number, at) VALUES ('x', 1, 1, 1)": {"job-without-claim"},
    "INSERT INTO garbage SELECT file, 1, 1, size FROM file_references WHERE {one}": {
        "garbage-referenced"
    },
    "DELETE FROM garbage": set(),
    "UPDATE partitions SET point = x'00' WHERE left IS NOT NULL": {"tree-broken"},
    "DELETE FROM partitions WHERE left IS NULL": {"tree-broken"},
    "UPDATE partitions SET parent = NULL": {"tree-broken"},
    "UPDATE head SET floor = number + 1": {"number-impossible"},
    "UPDATE head SET partition_next = 1": {"number-impossible"},
    "UPDATE head SET root = 2": {"tree-broken"},
    "UPDATE head SET generation = generation + 1": set(),
    "UPDATE commits SET number = 9999": {"number-impossible"},
    "UPDATE commits SET digest = x'00'": set(),
    "DELETE FROM commits": set(),
    "DELETE FROM pins": set(),
    "DELETE FROM entry_times": set(),
}


def edited_rows_of_the_cache(lake: DamageableLake, rng: random.Random) -> set[str]:
    statement, codes = rng.choice(list(_EDITS.items()))
    order = f"file {rng.choice(['', 'DESC'])}, partition {rng.choice(['', 'DESC'])}"
    change(lake.cache, statement.format(one=_REFERENCE.format(order)))
    if rng.random() < 0.3:
        return {"cache-damaged"}
    with closing(sqlite3.connect(lake.cache)) as connection, connection:  # as a bug would
        connection.execute("DROP TABLE row_sums")
        connection.execute("DROP TABLE partition_sums")
        lay_out_sums(connection)
        lost = connection.execute(
            "SELECT 1 FROM file_references WHERE partition NOT IN (SELECT id FROM partitions)"
        )
        if lost.fetchone():
            return {"cache-damaged"}
    return codes or {"cache-differs"}


DAMAGES: tuple[tuple[Damage, int], ...] = (
    (a_flipped_bit_in_a_file, 40),
    (a_file_cut_off, 15),
    (bytes_after_a_file, 5),
    (another_file_in_its_place, 10),
    (a_file_gone, 10),
    (an_old_object, 5),
    (a_new_object, 5),
    (a_stranger, 8),
    (a_flipped_bit_in_the_log, 40),
    (an_entry_that_adds_other_rows, 12),
    (an_entry_gone, 10),
    (two_entries_swapped, 10),
    (a_flipped_bit_in_a_snapshot, 30),
    (a_snapshot_gone, 4),
    (both_snapshots_gone, 1),
    (the_log_gone, 4),
    (a_name_gone, 1),
    (rows_spilled, 1),
    (a_scrambled_cache, 15),
    (edited_rows_of_the_cache, 90),
)
"""Each kind of damage, and how often it is tried."""

LOCAL_DAMAGES: tuple[tuple[LocalDamage, int], ...] = (
    (a_file_that_is_refused, 2),
    (a_snapshot_that_is_refused, 4),
    (a_log_that_is_refused, 4),
    (a_cache_that_is_refused, 1),
    (a_copy_of_a_log_beside_it, 6),
)
"""Damages that only a directory can have."""
