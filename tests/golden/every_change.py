"""One transaction of every kind of change, with each field set to something that shows."""

from __future__ import annotations

from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.feeds.positions import Position, encode_position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import (
    CommitId,
    ConnectionId,
    FileName,
    Generation,
    JobId,
    Micros,
    PartitionId,
    RequestDigest,
    TransactionNumber,
)
from lakebed.statestore.log_entries.codec import Entry
from lakebed.statestore.log_entries.feed_changes import (
    BeginAgain,
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    ForgetOldItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import (
    AddFiles,
    ClaimFiles,
    RaiseFloor,
    ReleaseClaim,
    RemoveGarbage,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.log_changes import ResumeLog
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.range_deletes import DeleteRanges, RecordDeleted
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
    Clear,
    CreateTable,
    DropPin,
    DropTable,
    MarkUnsplittable,
    PutPin,
    SetProcessing,
    Split,
)
from lakebed.statestore.log_entries.time_changes import LeapTime, ReportTime, SetTimeBack
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropFollower,
    DropTag,
    MoveFollower,
    PinVersion,
    PutTag,
    RaiseHorizon,
)
from lakebed.statestore.log_entries.window_changes import Advance

SCHEMA = {
    "format": 1,
    "row_keys": [{"name": "key", "type": "string", "number": 1}],
    "sort_keys": [],
    "values": [{"name": "value", "type": "int64", "number": 2, "nullable": True}],
}

PROCESSING = {
    "filter": {"test": "compare", "field": "key", "is": ">", "value": "a"},
    "aggregate": {"value": "sum"},
}


def name(place: int) -> FileName:
    return FileName(bytes([0, 0, 0, 0, 0x55, *range(10), place]))


def reference(place: int, *, exact: bool = True, end: bytes | None = b"\xff") -> FileReference:
    stored = StoredFile(name(place), 1_000_000, 900_000, (1 << 64) - place, (1 << 32) - place)
    return FileReference(stored, PartitionId(3), 12_345, KeyBounds(b"a\x00", end), exact)


CHANGES: tuple[Change, ...] = (
    CreateTable(SCHEMA, {"job_files_max": 5}, (b"m\x00\x00",)),
    SetProcessing(PROCESSING),
    AddFiles((reference(1), reference(2, exact=False, end=None))),
    ClaimFiles(JobId("job"), PartitionId(3), (name(1), name(2))),
    ReplaceFiles(JobId("job"), PartitionId(3), (name(1), name(2)), reference(3)),
    ReplaceFiles(JobId("job"), PartitionId(3), (name(1),), None),
    ReleaseClaim(JobId("job")),
    Split(PartitionId(3), (b"c\x00\x00", b"d\x00\x00"), ((name(1), (1, 2, 3)),), 1),
    MarkUnsplittable(PartitionId(3), 20_000_000),
    RemoveGarbage((name(1),)),
    RaiseFloor(TransactionNumber(80), TransactionNumber(70)),
    Clear(None),
    Clear((b"q\x00\x00",)),
    ChangeSettings({"size_ratio": 2}),
    PutPin("reader", Micros(1_800_000_000_000_000)),
    DropPin("reader"),
    DropTable(),
    ChangeSchema(
        1,
        (
            FieldChange("add", 3, "tags", '{"list": "string"}'),
            FieldChange("rename", 2, "value", "price"),
            FieldChange("widen", 2, "value", "int64"),
            FieldChange("drop", 2, "value"),
        ),
    ),
    ChangeProcessing(PROCESSING),
    ChangeProcessing(None),
    ReportTime("machine", Micros(1_800_000_000_000_000), Micros(3_600_000_000)),
    LeapTime(TransactionNumber(81)),
    SetTimeBack(),
    ResumeLog(TransactionNumber(86), True),
    Define(ConnectionId("feed"), 3, ("orders/0",)),
    Count(ConnectionId("feed"), 3, "orders/0", Tally(21, 1, 2, 3, 4, 5, 6, 2_000), 2),
    TakeItems(ConnectionId("feed"), (bytes(range(16)),)),
    ForgetItems(TransactionNumber(70)),
    RecordGap(ConnectionId("feed"), 3, "orders/0", b"\x01", b"\x09", "no longer kept"),
    ForgetConnection(ConnectionId("feed")),
    Advance(
        ConnectionId("feed"),
        3,
        WindowRules(60, 1, 2, 30, 3_600, "divert"),
        (SplitTime("orders/0", Micros(1_800_000_000_000_000), True, True),),
        (WindowCount(Micros(1_799_999_940_000_000), 7, 2),),
    ),
    ResetPosition(
        *(ConnectionId("feed"), "orders/0", encode_position(Position(4, 9))),
        *(encode_position(Position(5, 7)), "alice", "two records were spoiled\x1b"),
    ),
    DropPosition(
        *(ConnectionId("feed"), "orders/0", encode_position(Position(5, 7)), "bob", "it is gone"),
    ),
    BeginAgain(),
    ForgetOldItems(ConnectionId("feed"), 14_400),
    DeleteRanges(((b"", b"d\x00\x00"),)),
    DeleteRanges(
        *(((b"c\x00\x00", b"d\x00\x00"), (b"e\x00\x00", None)), bytes(range(16))),
        ((PartitionId(3), ((name(1), (1, 2)), (name(2), (0, 5)))),),
        17,
    ),
    RecordDeleted(reference(3).file, 3),
    RaiseHorizon(TransactionNumber(84)),
    PutTag("2026-q3"),
    PutTag("older", TransactionNumber(84)),
    DropTag("2026-q3"),
    PinVersion("export", TransactionNumber(84), Micros(1_800_000_000_000_000)),
    BeginFollowing("mirror", None, Micros(1_800_000_000_000_000)),
    BeginFollowing("mirror", TransactionNumber(84), Micros(1_800_000_000_000_000)),
    MoveFollower(
        *("mirror", TransactionNumber(84), TransactionNumber(85), Micros(1_800_000_000_000_000)),
    ),
    DropFollower("mirror"),
)


def every_change() -> Entry:
    """Return an entry with a transaction per kind of change, the drop with positions too."""
    transactions = [
        Transaction(
            CommitId(f"id-{place}"),
            RequestDigest(bytes([place] * 16)),
            TransactionNumber(85),
            Generation(2),
            (change,),
            (PositionChange("topic/0", None, b"\x07", 3),) if change == DropTable() else (),
            place == 1,
        )
        for place, change in enumerate(CHANGES)
    ]
    return Entry(Micros(1_767_225_600_000_001), tuple(transactions))
