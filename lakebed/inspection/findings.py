"""Defines what fsck can find: each kind with its meaning and with what is safe to do about it."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["damage", "leftover", "notice"]
"""damage: something that was committed is wrong, gone, or cannot be read. leftover: a killed
worker's remains, which no reader sees. notice: worth knowing, perhaps work in progress."""

Fact = str | int

RepairAction = Literal[
    "bring-back-files",
    "renew-snapshots",
    "rebuild-cache",
    "sweep-objects",
    "sweep-leftovers",
    "delete-dropped",
    "name-again",
    "set-time-back",
]
"""A repair by `lakebed fsck --repair`; each can be repeated, and touches nothing committed."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it should be.

    safe: what may be done without making it worse.
    """

    code: str
    severity: Severity
    means: str
    safe: str
    facts: dict[str, Fact]


class Kind(msgspec.Struct, frozen=True):
    """A kind of finding.

    repair: what mends it; None: nothing that cannot make it worse.
    """

    severity: Severity
    means: str
    safe: str
    repair: RepairAction | None = None


_RESTORE = "restore the object from a copy or the bucket's versions; then run fsck again"
_GO_ON = (
    "restore the log from a copy; keep caches and snapshots, they may be all that is whole; without"
    " a copy `lakebed fsck TABLE --repair` names the ways that are open"
)
_REBUILD = "delete the table's cache file while no process runs: it is rebuilt from the log"
_REFUSED = (
    "mend what the problem names (who may read it, the disk, the store), then run fsck again; it"
    " may be whole: restore it from a copy only if it stays unreadable"
)
_SWEPT = "nothing: the sweep of `lakebed run` removes it"
_REPORT = "keep a copy of the lake and report it: only a bug or an edit by hand makes this"

KINDS = {
    "log-damaged": Kind(
        "damage",
        "an entry of the log cannot be read or applied; later entries are out of reach",
        _GO_ON,
    ),
    "log-gap": Kind(
        "damage",
        "entries of the log are missing, and later ones or a newer state are there",
        _GO_ON,
    ),
    "table-quarantined": Kind(
        "notice",
        "the table was set aside; it is not looked at",
        "`lakebed fsck TABLE --deep` looks at it; `lakebed table online TABLE` brings it back",
    ),
    "log-behind": Kind(
        "damage",
        "a cache, a snapshot or the log's last entry knows of more entries than the log holds: it"
        " was cut, or restored to an earlier time; nothing is committed until this is mended, and"
        " until then queries are refused, or answer from the entries that are left",
        _GO_ON,
    ),
    "log-missing": Kind(
        "damage",
        "the log is not there; a cache or a snapshot still knows what it led to",
        _GO_ON,
    ),
    "log-differs": Kind(
        "damage",
        "a cache or a snapshot was made from another log than this one: the log was restored to an"
        " earlier time and has gone on; each may know commits that the other has lost",
        _GO_ON,
    ),
    "log-time-ahead": Kind(
        "notice",
        "log time is more than a day ahead of this machine's clock: until the clock gets there no"
        " garbage is collected, nothing is swept, and no id is forgotten",
        "see that this machine's clock is right, then `lakebed fsck --repair` sets log time back",
        "set-time-back",
    ),
    "log-time-backwards": Kind("damage", "an entry is older than the one before it", _REPORT),
    "no-base": Kind(
        "damage",
        "the log was truncated and no good snapshot reaches its oldest entry",
        "do not delete the cache, it is the only whole state; restore snapshots from a copy",
    ),
    "snapshot-damaged": Kind(
        "damage",
        "a snapshot cannot be opened, or does not say what its name promises",
        "delete the object: the next snapshot replaces it, readers pass it over",
        "renew-snapshots",
    ),
    "snapshot-lost": Kind(
        "damage",
        "the log was truncated, which needs two good snapshots, and fewer are there",
        "restore it from a copy; `lakebed run` writes new ones as the log grows",
        "renew-snapshots",
    ),
    "snapshot-differs": Kind(
        "damage", "a good snapshot and the log lead to different states", _REPORT
    ),
    "version-lost": Kind(
        "damage",
        "a version that a tag, a pin or a follower keeps cannot be read; other versions are not"
        " harmed",
        "mend what the problem names, or restore the version's snapshot from a copy or the bucket's"
        " versions; else drop what keeps it: `lakebed table untag`, or a new follower",
    ),
    "snapshot-unreadable": Kind(
        "damage",
        "a disk, a permission or the store refuses a snapshot; readers may be refused, too",
        _REFUSED,
    ),
    "snapshot-old": Kind(
        "leftover", "a snapshot that the log no longer needs", _SWEPT, "renew-snapshots"
    ),
    "cache-damaged": Kind(
        "damage", "the local cache of the state is damaged", _REBUILD, "rebuild-cache"
    ),
    "cache-differs": Kind(
        "damage",
        "the local cache of the state and the log lead to different states",
        _REBUILD,
        "rebuild-cache",
    ),
    "cache-unreadable": Kind(
        "damage",
        "the local cache of the state cannot be read, or made: a disk, a permission or the store"
        " refuses; it was not compared with the log",
        "mend what the problem names, then run fsck again; if it is the cache itself and stays so,"
        " delete its file while no process runs: it is rebuilt from the log",
    ),
    "queue-damaged": Kind(
        "damage",
        "messages of the queues are lost or changed: what they asked for is not done",
        "send again what was sent since the last good copy; a job is done once under its id",
    ),
    "registry-damaged": Kind(
        "damage",
        "the names of tables cannot be read; tables themselves are not harmed",
        "restore the registry from a copy (`tables.sqlite` of a directory)",
    ),
    "table-unreadable": Kind(
        "damage",
        "a table cannot be looked at to the end: it is damaged, or a disk, a permission or the"
        " store refuses",
        "mend what the problem names, then run fsck again; if it stays so keep a copy of the lake,"
        " and restore what the problem names from a copy",
    ),
    "lake-unreadable": Kind(
        "damage",
        "what lies beside the tables cannot be listed to the end",
        "mend what the problem names, then run fsck again: tables without a name and strangers may"
        " be found then",
    ),
    "table-newer": Kind(
        "notice",
        "a newer release wrote to a table: this one cannot look at it to the end",
        "run the newer release's `lakebed fsck`",
    ),
    "tree-broken": Kind("damage", "the leaves do not tile the key space", _REPORT),
    "reference-not-on-leaf": Kind(
        "damage",
        "a file reference lies on a partition that is no leaf: its rows are not read",
        _REPORT,
    ),
    "reference-outside": Kind("damage", "a file's key bounds do not reach its leaf", _REPORT),
    "reference-contradicts": Kind(
        "damage", "references to one file have different sizes or checksums", _REPORT
    ),
    "reference-impossible": Kind(
        "damage", "a reference holds numbers that no commit could have written", _REPORT
    ),
    "garbage-referenced": Kind(
        "damage",
        "a file is both referenced and garbage: collecting it would lose rows",
        "stop `lakebed run` for this table, keep a copy of the lake, and report it",
    ),
    "claim-without-job": Kind(
        "damage", "a file is claimed by a job that is not there: it is never compacted", _REPORT
    ),
    "job-without-claim": Kind("damage", "a job claims no file", _REPORT),
    "number-impossible": Kind("damage", "the state holds numbers beyond its own entry", _REPORT),
    "position-damaged": Kind(
        "damage",
        "it cannot be read how far a source was taken: its feed stops",
        _REPORT,
    ),
    "windows-wrong": Kind(
        "damage",
        "a feed's watermark or one of its windows contradicts itself, or is of a connection that"
        " the table does not know",
        _REPORT,
    ),
    "ledger-wrong": Kind(
        "damage",
        "a feed's ledger does not add up, or is of a connection that the table does not know",
        _REPORT,
    ),
    "file-unreadable": Kind(
        "damage",
        "a disk, a permission or the store refuses a referenced file: queries that need it fail",
        _REFUSED,
    ),
    "file-missing": Kind(
        "damage",
        "a referenced file is not there: its rows are lost",
        _RESTORE,
        "bring-back-files",
    ),
    "file-damaged": Kind("damage", "a referenced file's bytes contradict its reference", _RESTORE),
    "file-unsorted": Kind("damage", "a file contradicts itself: order, sample or notes", _RESTORE),
    "rows-differ": Kind("damage", "a reference marked exact counts other rows", _REPORT),
    "bounds-differ": Kind(
        "damage", "a file holds keys outside of its reference's bounds: queries miss rows", _REPORT
    ),
    "object-unreferenced": Kind(
        "leftover",
        "a file that can no longer be committed, left by a killed worker",
        _SWEPT,
        "sweep-objects",
    ),
    "object-pending": Kind(
        "notice",
        "a file that is not committed: of a job under way, or of one that was killed",
        "nothing: when the write floor has passed it, the sweep of `lakebed run` removes it",
    ),
    "object-stray": Kind(
        "notice",
        "an object that Lakebed did not name; it reads and deletes nothing of that name",
        "look at it, and delete it by hand if it is not needed",
    ),
    "log-stray": Kind(
        "notice",
        "a file among the logs that Lakebed did not name, perhaps a copy of a log; it reads and"
        " deletes nothing of that name",
        "keep copies in another folder: move it away, or delete it by hand if it is not needed",
    ),
    "unfinished-upload": Kind(
        "leftover", "what a killed writer had written of an object", _SWEPT, "sweep-leftovers"
    ),
    "spill-left": Kind(
        "leftover", "rows that a killed process was sorting", _SWEPT, "sweep-leftovers"
    ),
    "name-without-log": Kind(
        "damage",
        "a table's name leads to no log",
        "restore the log from a copy, or drop the name",
    ),
    "log-without-name": Kind("leftover", "a table that was created and never got its name", _SWEPT),
    "name-lost": Kind(
        "damage",
        "a table that was in use has no name: its rows cannot be found",
        "nothing is swept of it; `lakebed fsck --repair` gives it a name",
        "name-again",
    ),
    "dropped-table-objects": Kind(
        "leftover", "objects of a table that was dropped", _SWEPT, "delete-dropped"
    ),
}
"""Every kind, by its code."""


def finding(code: str, **facts: Fact) -> Finding:
    """Return a finding of a known kind."""
    kind = KINDS[code]
    return Finding(code=code, severity=kind.severity, means=kind.means, safe=kind.safe, facts=facts)
