"""Every object path, built and parsed here only.

tables/<table id>/files/<32 hex digits>.parquet               a sorted file, immutable
tables/<table id>/snapshots/<16 hex digits>-<32 hex digits>   state at a number, with its digest
tables/<table id>/runs/<32 hex digits>                        sorted rows on their way into files
tables/<table id>/commits/<10 hex digits>-<32 hex digits>     commits on their way; highest base
logs/<table id>/<16 hex digits>-<32 hex digits>               body of an entry, where the log's
                                                              store takes no large ones
lost/<table id>/<16 hex digits>/...                           what a repair of the log took out of
                                                              it; the number that it went on from
results/<table id>/<32 hex digits>/manifest.json              a query's result, by its job's id
results/<table id>/<32 hex digits>/<run>-<number>.parquet     rows of it; beside the lake's objects
feeds/<feed id>/segments/<32 hex digits>-<size>               what was pushed into a feed, and waits
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lakebed.errors import InvalidError
from lakebed.model.names import (
    BASE_BYTES,
    FILE_NAME_BYTES,
    ITEM_BYTES,
    ConnectionId,
    FileName,
    JobId,
    TableId,
    TransactionNumber,
    digest_of,
)

TABLES_PREFIX = "tables/"
_SEGMENT = re.compile(rf"([0-9a-f]{{{2 * ITEM_BYTES}}})-([1-9a-f][0-9a-f]{{0,9}})")
PATH_BYTES_MAX, PART_BYTES_MAX = 1024, 255
"""S3 allows 1,024 bytes for a key, file systems 255 for a name in a folder."""


class SegmentName(NamedTuple):
    """The item and the size of a segment, as its path gives them.

    size: of the object, so that who lists it can read it.
    """

    item: bytes
    size: int


def check_path(path: str) -> str:
    """Return `path` if every store can keep an object there.

    Raises:
        InvalidError: it is empty, absolute, too long, or has a part that is empty, "." or "..".
    """
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:  # lone surrogates
        parts = []
    if (
        not all(parts)
        or not parts
        or b"." in parts
        or b".." in parts
        or "\x00" in path
        or max(map(len, parts)) > PART_BYTES_MAX
        or sum(map(len, parts)) + len(parts) - 1 > PATH_BYTES_MAX
    ):
        hint = "use relative paths of short parts, none of them empty, '.' or '..'"
        raise InvalidError("not an object path", path=repr(path), hint=hint)
    return path


def table_prefix(table: TableId) -> str:
    """Return the prefix of all objects of a table."""
    return f"{TABLES_PREFIX}{table}/"


def table_of(path: str) -> TableId | None:
    """Return the table that an object belongs to, or None if the path is not one of ours."""
    parts = path.split("/")
    return TableId(parts[1]) if len(parts) > 2 and parts[0] == "tables" and parts[1] else None


def files_prefix(table: TableId) -> str:
    """Return the prefix of a table's files."""
    return f"{table_prefix(table)}files/"


def file_path(table: TableId, file: FileName) -> str:
    """Return the object path of a file."""
    if len(file) != FILE_NAME_BYTES:
        raise AssertionError(f"a file name has {FILE_NAME_BYTES} bytes, got {len(file)}")
    return f"{files_prefix(table)}{file.hex()}.parquet"


def file_of(path: str) -> FileName | None:
    """Return the file that lies at `path`, or None if the path is not a file's."""
    stem, dot, suffix = path.rpartition("/")[2].partition(".")
    if not dot or suffix != "parquet" or len(stem) != 2 * FILE_NAME_BYTES:
        return None
    try:
        return FileName(bytes.fromhex(stem))
    except ValueError:
        return None


def runs_prefix(table: TableId) -> str:
    """Return the prefix of sorted runs of a table's bulk imports: nothing ever refers to them."""
    return f"{table_prefix(table)}runs/"


def run_path(table: TableId, name: FileName) -> str:
    """Return the object path of a sorted run; its name is made as that of a file, used once."""
    return f"{runs_prefix(table)}{name.hex()}"


def base_of_run(path: str) -> TransactionNumber | None:
    """Return the base in the path of a sorted run, or None if it is not such a path."""
    name = path.rpartition("/")[2]
    if len(name) != 2 * FILE_NAME_BYTES:
        return None
    try:
        return TransactionNumber(int(name[: 2 * BASE_BYTES], 16))
    except ValueError:
        return None


def base_prefix(base: TransactionNumber) -> str:
    """Return what names of files with this base begin with: names sort by base."""
    return base.to_bytes(BASE_BYTES, "big").hex()


def commits_prefix(table: TableId) -> str:
    """Return the prefix of what holds commits that are too large for a message."""
    return f"{table_prefix(table)}commits/"


def commits_path(table: TableId, base: TransactionNumber, name: str) -> str:
    """Return the object path of commits on their way.

    base: the highest of theirs: below the write floor none can land.
    name: 32 hex digits, used once.
    """
    return f"{commits_prefix(table)}{base_prefix(base)}-{name}"


def base_of_commits(path: str) -> TransactionNumber | None:
    """Return the base in the path of commits on their way, or None if it is not such a path."""
    base, dash, name = path.rpartition("/")[2].partition("-")
    if not dash or len(base) != 2 * BASE_BYTES or len(name) != 32:
        return None
    try:
        return TransactionNumber(int(base, 16))
    except ValueError:
        return None


def snapshots_prefix(table: TableId) -> str:
    """Return the prefix of a table's snapshots."""
    return f"{table_prefix(table)}snapshots/"


def snapshot_path(table: TableId, number: TransactionNumber, digest: bytes) -> str:
    """Return the object path of the snapshot of the state at `number` with logical `digest`."""
    return f"{snapshots_prefix(table)}{snapshot_name(number, digest)}"


def snapshot_name(number: TransactionNumber, digest: bytes) -> str:
    """Return the last part of a snapshot's path."""
    return f"{number:016x}-{digest.hex()}"


def snapshot_of(path: str) -> tuple[TransactionNumber, bytes] | None:
    """Return number and digest of the snapshot at `path`, or None if it is not a snapshot's."""
    number, dash, digest = path.rpartition("/")[2].partition("-")
    if not dash or len(number) != 16 or len(digest) != 32:
        return None
    try:
        return TransactionNumber(int(number, 16)), bytes.fromhex(digest)
    except ValueError:
        return None


def entries_prefix(table: TableId) -> str:
    """Return the prefix of bodies of a table's log."""
    return f"logs/{table}/"


def entry_path(table: TableId, number: TransactionNumber, token: str) -> str:
    """Return the object path of the body of entry `number`, of one try. Paths sort by number."""
    return f"{entries_prefix(table)}{number:016x}-{token}"


def table_of_entry(path: str) -> TableId | None:
    """Return the table to whose log the body at `path` belongs, or None if it is no such path."""
    folder, _, name = path.rpartition("/")
    table = TableId(folder.rpartition("/")[2])
    number, dash, token = name.partition("-")
    is_one = dash and len(number) == 16 and len(token) == 32
    return table if is_one and table and path == entries_prefix(table) + name else None


def entries_end(table: TableId, below: TransactionNumber) -> str:
    """Return what all paths of bodies of entries with numbers below `below` are less than."""
    return f"{entries_prefix(table)}{below:016x}"


def lost_prefix(table: TableId, number: TransactionNumber) -> str:
    """Return the prefix of what a repair took out of a table's log. number: it went on from."""
    return f"lost/{table}/{number:016x}/"


def table_of_lost(path: str) -> TableId | None:
    """Return the table whose log was repaired, or None if the path is not of that."""
    parts = path.split("/")
    return TableId(parts[1]) if len(parts) > 3 and parts[0] == "lost" and parts[1] else None


def manifest_path(table: TableId, job: JobId) -> str:
    """Return the path of what says that the result of a query is there."""
    return f"{_result_prefix(table, job)}manifest.json"


def result_path(table: TableId, job: JobId, run: str, number: int) -> str:
    """Return the path of one of the files that a run of a query wrote."""
    return f"{_result_prefix(table, job)}{run}-{number:05d}.parquet"


def _result_prefix(table: TableId, job: JobId) -> str:
    return f"results/{table}/{digest_of(job.encode()).hex()}/"


FEEDS_PREFIX = "feeds/"
"""Prefix of what belongs to feeds, and to no table."""


def segments_prefix(feed: ConnectionId) -> str:
    """Return the prefix of what was pushed into a feed."""
    return f"{FEEDS_PREFIX}{feed}/segments/"


def segment_path(feed: ConnectionId, name: SegmentName) -> str:
    """Return the path of a segment."""
    return f"{segments_prefix(feed)}{name.item.hex()}-{name.size:x}"


def segment_of(path: str) -> SegmentName | None:
    """Return the name of the segment at `path`, or None if the path is not a segment's."""
    found = _SEGMENT.fullmatch(path.rpartition("/")[2])
    return SegmentName(bytes.fromhex(found[1]), int(found[2], 16)) if found else None
