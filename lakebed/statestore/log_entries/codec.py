"""Bytes of log entries. Byte 0: format number, the lowest that knows all changes in the entry.
Byte 1: 1 if the entry is compressed with zstd. Bytes 2 to 5: CRC-32 of byte 1 and of the entry,
which follows.

Not every log's store verifies its bytes: SQLite does not, and a flipped bit would lead all readers
that come later to another state than those before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import zstandard

from lakebed.config.settings import OUR_STRATEGIES
from lakebed.errors import CorruptError, NewerFormatError
from lakebed.model.formats import NEWEST
from lakebed.model.group_ages import format_of_processing
from lakebed.model.names import Micros
from lakebed.statestore.log_entries.feed_changes import (
    FEED_FORMAT,
    BeginAgain,
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    ForgetOldItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.log_changes import LOG_FORMAT, ResumeLog
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.range_deletes import DELETE_FORMAT, DeleteRanges, RecordDeleted
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
    CreateTable,
    SetProcessing,
)
from lakebed.statestore.log_entries.time_changes import (
    TIME_FORMAT,
    LeapTime,
    ReportTime,
    SetTimeBack,
)
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.log_entries.version_changes import (
    VERSION_FORMAT,
    BeginFollowing,
    DropFollower,
    DropTag,
    MoveFollower,
    PinVersion,
    PutTag,
    RaiseHorizon,
)
from lakebed.statestore.log_entries.window_changes import Advance

ENTRY_FORMAT = NEWEST.entry
_FORMATS: dict[type, int] = {
    ChangeSchema: 2,
    SetProcessing: 2,
    ChangeProcessing: 3,
    ReportTime: TIME_FORMAT,
    LeapTime: TIME_FORMAT,
    SetTimeBack: TIME_FORMAT,
    ResumeLog: LOG_FORMAT,
    Define: FEED_FORMAT,
    Count: FEED_FORMAT,
    TakeItems: FEED_FORMAT,
    ForgetItems: FEED_FORMAT,
    ForgetOldItems: FEED_FORMAT,
    RecordGap: FEED_FORMAT,
    ForgetConnection: FEED_FORMAT,
    Advance: FEED_FORMAT,
    ResetPosition: FEED_FORMAT,
    DropPosition: FEED_FORMAT,
    BeginAgain: FEED_FORMAT,
    DeleteRanges: DELETE_FORMAT,
    RecordDeleted: DELETE_FORMAT,
    RaiseHorizon: VERSION_FORMAT,
    PutTag: VERSION_FORMAT,
    DropTag: VERSION_FORMAT,
    PinVersion: VERSION_FORMAT,
    BeginFollowing: VERSION_FORMAT,
    MoveFollower: VERSION_FORMAT,
    DropFollower: VERSION_FORMAT,
}
"""Formats of entries with changes that older formats did not know: older programs say that they are
too old."""

_FORMATS_OF_SETTINGS = dict.fromkeys(
    ("follower_seconds_max", "leaves_min", "scan_bytes_max"), VERSION_FORMAT
)
"""Formats of entries that name a setting that older releases do not know."""
_STRATEGY, STRATEGY_FORMAT = "compaction_strategy", 6
"""Setting and format of entries that name a user's strategy: older releases know only their own."""

HEAD_BYTES = 6
COMPRESSED_FROM = 512
"""Bytes. Below it compression saves less than it costs."""

_ENCODER = msgspec.msgpack.Encoder()


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One log entry: transactions that were committed together, in order, and the log time."""

    at: Micros
    transactions: tuple[Transaction, ...]


_DECODER = msgspec.msgpack.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry, the same for the same entry."""
    raw = _ENCODER.encode(entry)
    compressed = len(raw) >= COMPRESSED_FROM
    rest = zstandard.compress(raw, 1) if compressed else raw
    return bytes((format_of(entry.transactions), compressed)) + _checksum(compressed, rest) + rest


def check_number(number: int, *, wanted: int) -> None:
    """Refuse an entry that is not the next (H9). Raises: CorruptError."""
    if number != wanted:
        hint = "run `lakebed fsck`"
        raise CorruptError("the log skips an entry", wanted=wanted, got=number, hint=hint)


def decode_entry(body: bytes, number: int) -> Entry:
    """Return the entry. number: of it, for errors.

    Raises:
        NewerFormatError: a newer Lakebed wrote it; nothing was changed.
        CorruptError: the bytes are not an entry.
    """
    if body and body[0] > ENTRY_FORMAT:
        hint = "upgrade this installation of lakebed"
        raise NewerFormatError("a newer log entry", number=number, format=body[0], hint=hint)
    if len(body) < HEAD_BYTES or body[0] < 1 or body[1] > 1:
        raise CorruptError("not a log entry", number=number)
    rest = body[HEAD_BYTES:]
    if body[2:HEAD_BYTES] != _checksum(body[1], rest):
        raise CorruptError("a log entry contradicts its checksum", number=number)
    try:
        entry = _DECODER.decode(zstandard.decompress(rest) if body[1] else rest)
    except (msgspec.DecodeError, zstandard.ZstdError) as error:
        raise CorruptError("not a log entry", number=number, reason=error) from None
    if body[0] != format_of(entry.transactions):  # which the checksum leaves out
        raise CorruptError("a log entry contradicts its format", number=number, format=body[0])
    return entry


def format_of(transactions: Sequence[Transaction]) -> int:
    """Return the lowest format of an entry that knows all changes of some transactions."""
    return max((_format_of(change) for t in transactions for change in t.changes), default=1)


def _format_of(change: Change) -> int:
    names: Iterable[str] = ()
    of_processing = 1
    if isinstance(change, CreateTable):
        names = change.settings
    elif isinstance(change, ChangeSettings):
        names = change.changes
    elif isinstance(change, SetProcessing | ChangeProcessing):
        of_processing = format_of_processing(change.processing)
    of_settings = (_FORMATS_OF_SETTINGS.get(name, 1) for name in names)
    if isinstance(names, Mapping) and names.get(_STRATEGY, "basic") not in OUR_STRATEGIES:
        of_processing = max(of_processing, STRATEGY_FORMAT)
    return max((_FORMATS.get(type(change), 1), of_processing, *of_settings))


def _checksum(compressed: int, rest: bytes) -> bytes:
    return zlib.crc32(rest, zlib.crc32(bytes((compressed,)))).to_bytes(4, "big")
