"""Ways to damage a lake. Each does one thing to a copy, and says which findings may tell of it."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import zstandard

from lakebed.statestore.codec import decode_entry, encode_entry
from lakebed.statestore.file_changes import AddFiles

Damage = Callable[[Path, random.Random], set[str]]
ANY_OF_LOG = {"log-damaged", "log-gap", "cache-differs", "snapshot-differs"}


def one(path: Path, pattern: str, chance: random.Random) -> Path:
    return chance.choice(sorted(path.glob(pattern)))


def a_file(path: Path, chance: random.Random) -> Path:
    """Return a file that the state refers to."""
    names = [
        name.hex() for (name,) in rows(cache(path), "SELECT DISTINCT file FROM file_references")
    ]
    return one(path, f"objects/tables/*/files/{chance.choice(sorted(names))}.parquet", chance)


def cache(path: Path) -> Path:
    return next(path.glob("cache/*.sqlite"))


def log(path: Path) -> Path:
    return next(path.glob("logs/*.sqlite"))


def rows(database: Path, statement: str) -> list[tuple]:  # type: ignore[type-arg]  # SQLite's own
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


def change(database: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement, values).rowcount, "nothing was changed"


def flip(file: Path, chance: random.Random) -> None:
    body = bytearray(file.read_bytes())
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    file.write_bytes(body)


def a_flipped_bit_in_a_file(path: Path, chance: random.Random) -> set[str]:
    flip(a_file(path, chance), chance)
    return {"file-damaged"}


def a_file_cut_off(path: Path, chance: random.Random) -> set[str]:
    file = a_file(path, chance)
    body = file.read_bytes()
    file.write_bytes(body[: chance.randrange(len(body))])
    return {"file-damaged"}


def bytes_after_a_file(path: Path, chance: random.Random) -> set[str]:
    with a_file(path, chance).open("ab") as file:
        file.write(chance.randbytes(chance.randrange(1, 9)))
    return {"file-damaged"}


def another_file_in_its_place(path: Path, chance: random.Random) -> set[str]:
    file = a_file(path, chance)
    others = [f for f in sorted(path.glob("objects/tables/*/files/*")) if f != file]
    shutil.copy(chance.choice(others), file)
    return {"file-damaged"}


def a_file_gone(path: Path, chance: random.Random) -> set[str]:
    a_file(path, chance).unlink()
    return {"file-missing"}


def an_old_object(path: Path, chance: random.Random) -> set[str]:
    folder = next(path.glob("objects/tables/*/files"))
    (folder / f"{0:010x}{chance.randbytes(11).hex()}.parquet").write_bytes(b"x")
    return {"object-unreferenced"}


def a_new_object(path: Path, chance: random.Random) -> set[str]:
    folder = next(path.glob("objects/tables/*/files"))
    (folder / f"{99:010x}{chance.randbytes(11).hex()}.parquet").write_bytes(b"x")
    return {"object-pending"}


def a_stranger(path: Path, chance: random.Random) -> set[str]:
    table = next(path.glob("objects/tables/*"))
    place = chance.choice(
        [table / "files", table, table.parent / "nobody" / "files", path / "objects"]
    )
    place.mkdir(parents=True, exist_ok=True)
    (place / "stranger.txt").write_bytes(b"x")
    return {"object-stray"}


def a_flipped_bit_in_the_log(path: Path, chance: random.Random) -> set[str]:
    number, body = chance.choice(rows(log(path), "SELECT number, body FROM entry"))
    body = bytearray(body)
    body[chance.randrange(1, len(body))] ^= 1 << chance.randrange(8)
    change(log(path), "UPDATE entry SET body = ? WHERE number = ?", bytes(body), number)
    return {"log-damaged"}


def an_entry_that_adds_other_rows(path: Path, chance: random.Random) -> set[str]:
    """Edit the log as its own code would write it, and take the cache away: the files tell."""
    entries = rows(log(path), "SELECT number, body FROM entry ORDER BY number")
    for number, body in reversed(entries):
        entry = decode_entry(body, number)
        transaction = entry.transactions[0]
        added = transaction.changes[0]
        if not isinstance(added, AddFiles) or not added.files:
            continue
        files = list(added.files)
        place = chance.randrange(len(files))
        files[place] = msgspec.structs.replace(files[place], rows=files[place].rows + 1)
        changed = msgspec.structs.replace(transaction, changes=(AddFiles(tuple(files)),))
        edited = encode_entry(msgspec.structs.replace(entry, transactions=(changed,)))
        change(log(path), "UPDATE entry SET body = ? WHERE number = ?", edited, number)
        break
    if chance.random() < 0.5:
        return {"cache-differs"}
    shutil.rmtree(path / "cache")
    return {"rows-differ"}


def an_entry_gone(path: Path, chance: random.Random) -> set[str]:
    newest = rows(log(path), "SELECT max(number) FROM entry")[0][0]
    oldest = rows(log(path), "SELECT min(number) FROM entry")[0][0]
    change(log(path), "DELETE FROM entry WHERE number = ?", chance.randint(oldest + 1, newest))
    return {"log-gap"}


def two_entries_swapped(path: Path, chance: random.Random) -> set[str]:
    numbers = [n for (n,) in rows(log(path), "SELECT number FROM entry ORDER BY number")][1:]
    first, second = chance.sample(numbers, 2)
    bodies = dict(rows(log(path), "SELECT number, body FROM entry"))
    change(log(path), "UPDATE entry SET body = ? WHERE number = ?", bodies[first], second)
    change(log(path), "UPDATE entry SET body = ? WHERE number = ?", bodies[second], first)
    return {"log-damaged", "cache-differs", "log-time-backwards", "snapshot-differs"}


def a_flipped_bit_in_a_snapshot(path: Path, chance: random.Random) -> set[str]:
    file = one(path, "objects/tables/*/snapshots/*", chance)
    body = file.read_bytes()
    while unpacked(file.read_bytes()) == unpacked(body):  # zstd leaves some bits without a meaning
        file.write_bytes(body)
        flip(file, chance)
    return {"snapshot-damaged"}


def unpacked(body: bytes) -> bytes | None:
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except zstandard.ZstdError:
        return None


def a_snapshot_gone(path: Path, chance: random.Random) -> set[str]:
    one(path, "objects/tables/*/snapshots/*", chance).unlink()
    return {"snapshot-lost"}


def both_snapshots_gone(path: Path, chance: random.Random) -> set[str]:
    for snapshot in path.glob("objects/tables/*/snapshots/*"):
        snapshot.unlink()
    return {"no-base"}


def the_log_gone(path: Path, chance: random.Random) -> set[str]:
    for file in path.glob("logs/*"):
        file.unlink()
    if chance.random() < 0.5:
        shutil.rmtree(path / "cache")
    return {"name-without-log", "log-gap"}


def a_name_gone(path: Path, chance: random.Random) -> set[str]:
    change(path / "tables.sqlite", "DELETE FROM name")
    return {"name-lost"}


def an_unfinished_object(path: Path, chance: random.Random) -> set[str]:
    (path / "unfinished" / "99999999-0").write_bytes(b"half")
    return {"unfinished-upload"}


def rows_spilled(path: Path, chance: random.Random) -> set[str]:
    (path / "spill" / "99999999-0").mkdir()
    return {"spill-left"}


def a_scrambled_cache(path: Path, chance: random.Random) -> set[str]:
    for file in (path / "cache").glob("*.sqlite"):
        body = bytearray(file.read_bytes())
        start = chance.randrange(0, len(body) - 4_096, 4_096)
        body[start : start + 4_096] = chance.randbytes(4_096)
        file.write_bytes(body)
    return {"cache-damaged", "cache-differs"}


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


def edited_rows_of_the_cache(path: Path, chance: random.Random) -> set[str]:
    statement, codes = chance.choice(list(_EDITS.items()))
    order = f"file {chance.choice(['', 'DESC'])}, partition {chance.choice(['', 'DESC'])}"
    change(cache(path), statement.format(one=_REFERENCE.format(order)))
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
    (an_unfinished_object, 1),
    (rows_spilled, 1),
    (a_scrambled_cache, 15),
    (edited_rows_of_the_cache, 90),
)
"""Each kind of damage, and how often it is tried."""
