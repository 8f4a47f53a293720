"""Every error this system raises, grouped by what the catcher should do next.

LakebedError
├── ConflictError        another commit was first   -> refresh the state, plan again, retry
├── UnavailableError     throttled or timed out     -> retry the same call after a wait
├── UnknownOutcomeError  the write may have landed  -> read back by id, then decide
├── FencedError          newer owner or write floor -> end this run, keep its files
├── DeniedError          a permission is missing    -> alarm an operator, retry later
├── InvalidError         the request can never work -> reject it, never retry
├── NewerFormatError     a newer release wrote it   -> give the work back, upgrade
└── CorruptError         stored bytes do not verify -> quarantine, alarm, never retry

A subclass exists only where a caller acts differently or an operator looks for other help. The
first docstring paragraph of a class is its cause; `What is done`, `What you can do` follow. From
these the page `docs/reference/errors.md` and `lakebed explain CODE` are made.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import ClassVar


class LakebedError(Exception):
    """Something Lakebed could not do; a subclass says what.

    What is done: what the subclass says. What you can do: what its hint says.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        """message: the problem, in lower case. facts: fields for logs. hint: what to do next."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    @classmethod
    def code(cls) -> str:
        """Return the kebab-case name to search for, such as `log-conflict`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __str__(self) -> str:
        facts = " ".join(f"{name}={value}" for name, value in self.facts.items())
        text = f"{self.message} ({facts})" if facts else self.message
        return f"{text}: {self.hint}" if self.hint else text


class ConflictError(LakebedError):
    """Another commit was first, so the plan no longer fits the table.

    What is done: nothing was written. What you can do: run it again; it plans anew.
    """

    exit_code = 3


class UnavailableError(LakebedError):
    """A store was busy, throttled the request, or timed out before it was sent.

    What is done: this call wrote nothing. What you can do: wait, then send the same request again.
    """

    exit_code = 4


class UnknownOutcomeError(LakebedError):
    """A write was sent and no answer came: it may have landed, or may land later.

    What is done: nothing that was written is taken back. What you can do: send the same request
    again with the same id; it is found if it landed, and done once.
    """

    exit_code = 5


class FencedError(LakebedError):
    """This run took too long, or a newer owner exists: what it wrote may no longer be committed.

    What is done: the run ends, its files are swept later. What you can do: run the job again.
    """

    exit_code = 6


class InvalidError(LakebedError):
    """The request can never work as it is.

    What is done: nothing was changed. What you can do: mend the request as the hint says.
    """

    exit_code = 2


class DeniedError(LakebedError):
    """A store refuses our credentials: a permission is missing, or they are not valid any more.

    What is done: nothing was changed by this call; a message comes back, and is a dead letter after
    some tries. What you can do: permit what the error names there (a role that was changed by hand:
    deploy again), then send the same request again.
    """

    exit_code = 8


class CorruptError(LakebedError):
    """Stored bytes contradict their checksum or the schema.

    What is done: the read was stopped; no rows were made up or left out. What you can do: run
    `lakebed fsck`, restore the object from its bucket's versions or a backup.
    """

    exit_code = 7


class NewerFormatError(LakebedError):
    """A lake, log entry, snapshot or message was written by a newer Lakebed than this one.

    What is done: nothing was changed, and no job was rejected; a message goes back to its queue, a
    task ends. What you can do: upgrade this installation; what waits is then done.
    """

    exit_code = 9

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        super().__init__(message, hint=hint or "upgrade this installation of lakebed", **facts)


class LogRolledBackError(CorruptError):
    """The log does not hold what this state has read: it was cut, or restored to an earlier time.

    What is done: nothing was changed or shown; a commit that was under way may be in the log. What
    you can do: keep caches and snapshots, they may be all that knows the entries that are gone; run
    `lakebed fsck`, which says what is there and how to go on.
    """

    def __init__(self, number: int, **facts: object) -> None:
        hint = "the log was cut or restored from a copy: keep the cache, run `lakebed fsck`"
        problem = "the log does not hold an entry that this state has applied"
        super().__init__(problem, entry=number, hint=hint, **facts)
        self.number = number


class LogMissingError(CorruptError):
    """A table has a name and no log: the log was deleted, or never restored.

    What is done: nothing was changed; no new log is begun. What you can do: restore the log from a
    copy, or run `lakebed fsck`, which says what snapshots and caches still know.
    """


class LogConflictError(ConflictError):
    """The log already holds a transaction with this number, perhaps by an earlier try of this call.

    What is done: nothing was written. What you can do: read the log and plan again.
    """

    def __init__(self, number: int) -> None:
        super().__init__("number is taken", number=number, hint="read the log, plan again")


class LogTruncatedError(ConflictError):
    """Bodies of the log that far back are gone.

    What is done: nothing. What you can do: nothing; the reader starts from a snapshot.
    """

    def __init__(self, oldest: int) -> None:
        super().__init__("the log starts later", oldest=oldest, hint="start from a snapshot")
        self.oldest = oldest


class ObjectMissingError(ConflictError):
    """An object is not there (any more).

    What is done: nothing. What you can do: read the state again; it says whether it should be.
    """

    def __init__(self, path: str) -> None:
        super().__init__("no such object", path=path)


class ObjectExistsError(ConflictError):
    """An object of this name exists; names are used once.

    What is done: that object is untouched. What you can do: compare; it may be of an earlier try.
    """

    def __init__(self, path: str) -> None:
        super().__init__("object exists", path=path)


class TableExistsError(InvalidError):
    """A table of this name exists already.

    What is done: that table is untouched. What you can do: choose another name, or drop it first.
    """


class TableMissingError(InvalidError):
    """No table has this name.

    What is done: nothing. What you can do: take the name of the hint, or see `lakebed table list`.
    """


class TableQuarantinedError(InvalidError):
    """The table was set aside: nothing is done on it or with it until it is brought back.

    What is done: nothing; all of its bytes stay. What you can do: find what is damaged (`lakebed
    fsck TABLE --deep`), restore it, then `lakebed table online TABLE`; or drop the table.
    """


class JobIdReusedError(InvalidError):
    """A job id was used again for another request.

    What is done: the first request stands, this one changed nothing. What you can do: choose a new
    id, for instance with the day in it.
    """


class ClaimLostError(ConflictError):
    """The job no longer holds its inputs: it was given up, cleared, or another run finished first.

    What is done: the table is untouched; files of the late run are swept. What you can do: nothing.
    """


class GenerationError(ConflictError):
    """The table was cleared since this work was planned.

    What is done: nothing was written; the rows that were cleared stay away. What you can do: send
    it again if it was meant for the table as it is now.
    """


class TableBusyError(UnavailableError):
    """A leaf holds more files than `leaf_files_max`, or a table as many items of a feed as it may.

    What is done: nothing was written. What you can do: let `lakebed run` work, then send it again;
    of a feed of objects, say a shorter `once_seconds` within a day.
    """


class StorageFullError(UnavailableError):
    """The disk is full.

    What is done: nothing was committed, half-written objects are removed. What you can do: free
    space, then send the same request again.
    """


class OutOfMemoryError(UnavailableError):
    """There was not enough memory.

    What is done: nothing was committed. After some tries a compaction job is rejected and keeps its
    files. What you can do: give the worker more memory, or write smaller rows; then compact.
    """


class CacheDamagedError(UnavailableError):
    """The local cache of a table's state does not prove itself: a disk or a hand has changed it.

    What is done: nothing was written. The cache is set aside and rebuilt from snapshot and log, and
    most calls go on by themselves. What you can do: send the same request again; look at the disk.
    """


class ClockAheadError(UnavailableError):
    """This machine's clock is more than ten minutes ahead of the store's.

    What is done: nothing was written. What you can do: set the clock.
    """


class VersionExpiredError(ConflictError):
    """The version of the table that was being read has been collected as garbage.

    What is done: the read stopped; rows given so far are right. What you can do: query again.
    """


class FollowerBehindError(ConflictError):
    """A follower of a table's changes read nothing for longer than `follower_seconds_max`, so that
    changes it has not read are not kept for it any more.

    What is done: nothing; its position stays where it was. What you can do: read the table as it
    is, then follow under this name from that version's number.
    """


class FormatGateError(NewerFormatError):
    """The lake does not allow a form yet that this needs: older releases may still work on it.

    What is done: nothing. What you can do: upgrade each process, then `lakebed upgrade finish`.
    """

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        wanted = "upgrade every process of this lake, then run `lakebed upgrade finish`"
        super().__init__(message, hint=hint or wanted, **facts)


class OlderProcessError(UnavailableError):
    """An upgrade cannot be finished: an older release is deployed, or a process of one may live.

    What is done: nothing. What you can do: deploy this release, end what is older, then finish.
    """


class ReleaseSkippedError(InvalidError):
    """A release that is deployed, or lives, is two releases older: such two may not work together.

    What is done: nothing. What you can do: upgrade to the release that the hint names, and finish.
    """


class TagExistsError(InvalidError):
    """The table has a tag of this name.

    What is done: that tag stays. What you can do: choose another name, or drop that tag first.
    """


class UnreadableInputError(InvalidError):
    """An input file cannot be read as what it is said to be.

    What is done: no row of the request was taken in. What you can do: mend or replace the file that
    the error names, then send the same request again.
    """


class SumTooLargeError(InvalidError):
    """Values of one key add up to more than their field's type holds.

    What is done: nothing was changed. A compaction job keeps its files and is tried again when the
    table is changed, or when asked. What you can do: widen the field (`lakebed table alter`).
    """


class ObjectTooLargeError(InvalidError):
    """A file grew beyond what the object store keeps as one object.

    What is done: nothing of the file is kept, and no row was lost. A compaction job keeps its files
    and stays rejected. What you can do: let leaves, and so merges, be smaller (`leaf_bytes_max`).
    """

    def __init__(self, path: str, bytes_max: int) -> None:
        hint = "let leaves be smaller: lower leaf_bytes_max"
        super().__init__("an object is too large", path=path, bytes_max=bytes_max, hint=hint)


class MergeMemoryError(InvalidError):
    """A merge needs more memory than `merge_bytes` lets it take.

    What is done: nothing was merged; a compaction job stays rejected. What you can do: open the
    lake with what `smallest` says, then `Table.compact`; or set a smaller `job_files_max`.
    """


class QueryTooLargeError(InvalidError):
    """A query reads more bytes than it may: more than the setting `scan_bytes_max` of its table, or
    than it said itself.

    What is done: it was refused before it read rows, or stopped on the way; nothing was changed.
    What you can do: ask for keys, a range of row keys or fewer columns, or raise the cap.
    """


class IteratorError(InvalidError):
    """A user's iterator raised, or gave other columns, rows out of order or row keys outside its
    range.

    What is done: no file was written, no row was lost. What you can do: mend the iterator and
    install it where Lakebed runs, then run the same again.
    """


class StrategyError(InvalidError):
    """A user's strategy of compaction is missing, raised, took too long or gave a wrong answer.

    What is done: no job was made for the table; other tables go on. What you can do: mend the
    strategy, or choose another one (`lakebed table set`, setting `compaction_strategy`).
    """


def did_you_mean(name: str, known: Iterable[str], *, what: str) -> str:
    """Return a hint that names the nearest known name, or lists what is known (at most ten)."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return f"there is no {what} yet"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    several = f"{what[:-1]}ies" if what.endswith(("cy", "gy")) else f"{what}s"
    return f"known {several}: {', '.join(names[:10])}{more}"
