"""Objects below a prefix, or files in a folder, as a source of feeds: each is an item, which is
taken whole and once. What a listing shows is the truth; no notification is needed.

A first listing takes what is there, by name. Later listings look at all again and take what is new:
nothing that was modified long before the newest of an earlier listing, and no item that is known.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Annotated, Literal

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta

from lakebed.decoding.raw_records import lines_as_records, raw_records
from lakebed.errors import DeniedError, InvalidError, LakebedError, UnreadableInputError
from lakebed.model.names import ITEM_BYTES, Micros
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.ports.source_files import SourceFile, SourceFiles

MICROS = 1_000_000

Taken = Callable[[bytes], bool]
"""Says of an item whether the table knows it."""
News = Callable[[], int]
"""Returns a number, which rises when something was said to have come: a hint."""


class ObjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source of objects or files.

    folder: `s3://BUCKET/PREFIX/`, or a folder of this machine. Names below it that begin with `_`
        or `.` are skipped, in folders too: write under such a name, then rename.
    pattern: of names below the folder, as a shell has it; `*` stands for slashes, too. "": all.
    records: `lines`: each line is a record; `whole`: each object is one, and its key is its name.
    order: `name`: names rise with time, so the last one is remembered and no items. A name that
        appears before it is never taken: let `settle_seconds` be longer than writers are apart.
    parts: source splits, by hash of the name. Another number makes other source splits.
    list_seconds: between two listings.
    settle_seconds: an object is taken when it has been as it is for so long. Files that are
        written in their folder need it; objects of S3 appear whole.
    once_seconds: an object that was modified so long before the newest one of an earlier listing
        was taken then. A shorter one holds at once. A longer one holds for what comes from then on.
    object_bytes_max: of one object, which is committed at once; larger ones are for bulk import.
    """

    folder: Annotated[str, Meta(min_length=1, max_length=400)]
    pattern: Annotated[str, Meta(max_length=4_096)] = ""
    records: Literal["lines", "whole"] = "lines"
    order: Literal["any", "name"] = "any"
    parts: Annotated[int, Meta(ge=1, le=1_000)] = 1
    list_seconds: Annotated[float, Meta(ge=0.05, le=86_400)] = 30.0
    settle_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    once_seconds: Annotated[int, Meta(ge=60, le=10 * 365 * 86_400)] = 14 * 86_400
    object_bytes_max: Annotated[int, Meta(ge=1, le=1 << 30)] = 256 << 20


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The progress of taking listed objects.

    after: the name that was given last; "": none yet.
    since: what was modified before that was taken by earlier listings.
    newest: when the newest object that this listing and earlier ones have seen was modified.
    before: the same of earlier listings alone; 0: there was none.
    """

    after: str = ""
    since: int = 0
    newest: int = 0
    before: int = 0


class ListedObjects:
    """The objects below one folder: one source split, or several by hash of their names.

    is_taken: asked before an object is read. Without it an object that an earlier process gave may
        be read again, and its item is refused then.
    news: lets a listing come sooner. It may be wrong, late, or say nothing ever.
    """

    def __init__(
        self,
        files: SourceFiles,
        settings: ObjectSettings,
        *,
        clock: Clock,
        is_taken: Taken = lambda _: False,
        news: News = lambda: 0,
    ) -> None:
        self._files = files
        self._settings = settings
        self._clock = clock
        self._is_taken = is_taken
        self._news = news

    def splits(self) -> list[SourceSplit]:
        """Return the folder, or its parts."""
        folder, parts = self._settings.folder, self._settings.parts
        if parts == 1:
            return [SourceSplit(folder, folder)]
        return [
            SourceSplit(f"{folder}#{part}/{parts}", f"{folder}, part {part} of {parts}")
            for part in range(parts)
        ]

    def start(self, split: SourceSplit) -> int:
        """Return 0: a position counts records that were taken."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> ListedObjectReader:
        """Return a reader of objects that were not taken yet.

        resume: the cursor of the listing that goes on.
        """
        return ListedObjectReader(
            self._files,
            self._settings,
            self._clock,
            self._is_taken,
            self._news,
            begin=begin,
            cursor=_cursor_of(resume, self._settings.once_seconds),
            part=_part_of(split, self._settings),
        )

    def close(self) -> None:
        """Nothing is held."""


class ListedObjectReader:
    """Gives whole objects, one after the other."""

    def __init__(
        self,
        files: SourceFiles,
        settings: ObjectSettings,
        clock: Clock,
        is_taken: Taken,
        news: News,
        *,
        begin: int,
        cursor: Cursor,
        part: int,
    ) -> None:
        self._files = files
        self._settings = settings
        self._clock = clock
        self._is_taken = is_taken
        self._news, self._heard = news, 0
        self._position = begin
        self._cursor = cursor
        self._part = part
        self._waiting: deque[SourceFile] = deque()
        self._given: set[bytes] = set()
        self._unread: set[bytes] = set()
        self._listed: float | None = None
        self._is_announced = False

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the records of the next objects. At least one object comes, however large."""
        end = self._clock.monotonic() + wait_seconds
        while True:
            records = self._next(bytes_max)
            if records is not None or not self._may_list(end):
                return records
            self._list()

    def behind(self) -> int | None:
        """Return 0 or nothing: how many records objects have is known when they are read."""
        return None if self._waiting or self._listed is None else 0

    def acknowledge(self, end: int) -> None:
        """Do nothing: objects stay. Rules of a bucket may delete them later."""

    def close(self) -> None:
        """Nothing is held."""

    def _may_list(self, end: float) -> bool:
        """Return whether it is time for a listing, after a wait if need be."""
        if self._listed is None:
            return True
        due = self._listed + self._settings.list_seconds
        if self._is_announced:  # what was said to have come had not settled
            due = min(due, self._listed + self._settings.settle_seconds)
        now = self._clock.monotonic()
        if due > max(now, end):
            return self._has_news()
        if due > now:
            self._clock.sleep(due - now)
        return True

    def _has_news(self) -> bool:
        before, self._heard = self._heard, self._news()
        self._is_announced |= self._heard != before
        return self._heard != before

    def _list(self) -> None:
        """Begin a listing, or go on with that of an earlier process."""
        is_first, self._listed = self._listed is None, self._clock.monotonic()
        files = sorted(self._found(), key=lambda file: file.name)
        cursor = self._cursor
        self._is_announced &= not all(map(self._is_settled, files))
        if self._settings.order == "name":
            self._waiting = deque(
                file
                for file in takewhile(self._is_settled, files)
                if file.name > cursor.after and self._is_wanted(file)
            )
            return
        since = max(cursor.since, cursor.newest - self._settings.once_seconds * MICROS)
        if is_first and cursor.after:
            left = [file for file in files if file.name > cursor.after and self._is_new(file)]
            if any(0 < file.modified < since for file in left):  # a new listing would not give them
                self._waiting.extend(left)
                return
        self._cursor = Cursor("", since, cursor.newest, cursor.newest)
        self._given &= {item_of(file) for file in files}
        self._waiting.extend(file for file in files if self._is_new(file))

    def _is_new(self, file: SourceFile) -> bool:
        if not (self._is_wanted(file) and self._is_settled(file)):
            return False
        if 0 < file.modified < self._cursor.since:
            return False
        item = item_of(file)
        return item not in self._given and not self._is_taken(item)

    def _is_wanted(self, file: SourceFile) -> bool:
        pattern, parts = self._settings.pattern, self._settings.parts
        if pattern and not fnmatchcase(_below(file.name, self._settings.folder), pattern):
            return False
        return parts == 1 or int.from_bytes(_digest(file.name)) % parts == self._part

    def _is_settled(self, file: SourceFile) -> bool:
        settle = int(self._settings.settle_seconds * MICROS)
        return not settle or file.modified <= self._clock.now() - settle

    def _found(self) -> list[SourceFile]:
        try:
            return self._files.find(self._settings.folder)
        except UnreadableInputError:
            raise
        except InvalidError as error:
            if "permission" in error.facts:
                raise DeniedError(error.message, hint=error.hint, **error.facts) from None
            if "files_max" in error.facts:  # there are too many
                raise
            return []  # nothing is there yet

    def _next(self, bytes_max: int) -> Records[pa.RecordBatch] | None:
        begin, size = self._position, 0
        batches: list[pa.RecordBatch] = []
        items: list[bytes] = []
        while self._waiting and (not batches or size + self._waiting[0].size <= bytes_max):
            file = self._waiting[0]
            newest = max(self._cursor.newest, file.modified)
            try:
                batch = self._records(file)
            except LakebedError:
                if batches:  # they come first, and the error with the next read
                    break
                raise
            if batch is None and self._settings.order == "name":
                self._waiting.clear()  # nothing behind it before it
                break
            self._waiting.popleft()
            self._cursor = Cursor(file.name, self._cursor.since, newest, self._cursor.before)
            if batch is not None and batch.num_rows:
                batches.append(batch)
                items.append(item_of(file))
                size += file.size
                self._position += batch.num_rows
        if not batches:
            return None
        return Records(
            begin=begin,
            end=self._position,
            count=self._position - begin,
            size=size,
            batch=pa.concat_batches(batches),
            resume=msgspec.msgpack.encode(self._cursor),
            items=() if self._settings.order == "name" else tuple(items),
            item_counts=()
            if self._settings.order == "name"
            else tuple(batch.num_rows for batch in batches),
        )

    def _records(self, file: SourceFile) -> pa.RecordBatch | None:
        """Return an object's records. None: it was changed or removed since it was listed."""
        item = item_of(file)
        if file.size > self._settings.object_bytes_max:
            hint = "take it in by a bulk import, or raise object_bytes_max"
            raise InvalidError(
                "an object is too large", object=file.name, bytes=file.size, hint=hint
            )
        try:
            with self._files.on_disk(file) as path:
                held = path.read_bytes()
        except UnreadableInputError:
            if item in self._unread:  # it is there as it was, and still cannot be read
                raise
            self._unread.add(item)
            return None
        self._given.add(item)
        return _batch(held, file, self._position, is_whole=self._settings.records == "whole")


def passed_before(resume: bytes, once_seconds: int) -> Micros:
    """Return a time: no reader that goes on at a cursor, or later, gives what was modified before
    it. 0: there is none yet, as the first listing was not taken to its end.

    resume: the cursor; empty: nothing was given.
    once_seconds: as in the settings.
    """
    return Micros(_cursor_of(resume, once_seconds).since)


def _cursor_of(resume: bytes, once_seconds: int) -> Cursor:
    cursor = msgspec.msgpack.decode(resume, type=Cursor) if resume else Cursor()
    since = max(cursor.since, cursor.before - once_seconds * MICROS)
    return msgspec.structs.replace(cursor, since=since)


def item_of(file: SourceFile) -> bytes:
    """Return the name of a version of an object, as a table remembers it."""
    return _digest(f"{file.name}\0{file.version}")


def _digest(text: str) -> bytes:
    named = text.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(named, digest_size=ITEM_BYTES).digest()


def _part_of(split: SourceSplit, settings: ObjectSettings) -> int:
    """Return which part a source split is. Raises: InvalidError: it is none of these."""
    name = split.name.removeprefix(settings.folder)
    known = {"": 0} if settings.parts == 1 else {}
    known |= {f"#{part}/{settings.parts}": part for part in range(settings.parts)}
    if not split.name.startswith(settings.folder) or name not in known:
        hint = "let `parts` and the folder be as they were when the feed began"
        raise InvalidError("not a source split of this folder", source_split=split.name, hint=hint)
    return known[name]


def _below(name: str, folder: str) -> str:
    return name.removeprefix(folder).lstrip("/")


def _batch(held: bytes, file: SourceFile, begin: int, *, is_whole: bool) -> pa.RecordBatch:
    key = None
    if is_whole:
        value = pa.array([held], pa.binary())
        key = pa.array([file.name.encode("utf-8", "surrogateescape")], pa.binary())
    else:
        ended = held if not held or held.endswith(b"\n") else held + b"\n"
        value = lines_as_records(ended, 0)["value"]
    count = len(value)
    time = pa.array(np.full(count, file.modified), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    position = pa.array(np.arange(begin, begin + count, dtype=np.int64))
    return raw_records(
        value=value, key=key, time=time if file.modified else None, position=position
    )
