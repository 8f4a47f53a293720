"""Defines what can happen to a table's files: they are added, claimed, replaced, given up, removed.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.errors import ClaimLostError, ConflictError, InvalidError
from lakebed.model.files import FileReference
from lakebed.model.names import FileName, JobId, PartitionId, TransactionNumber
from lakebed.statestore.table_state.placing import add_references, check_references
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.sums import damaged


def refuse_known(state: TableState, name: FileName) -> None:
    """Refuse a file that the table knows. Raises: InvalidError."""
    if state.knows_file(name):
        hint = "store the rows under a new name: a file is added once"
        raise InvalidError("the table knows this file already", file=name.hex(), hint=hint)


class AddFiles(msgspec.Struct, frozen=True, array_like=True, tag="add"):
    """New rows. A reference to a partition that has been split enters its leaves (H17)."""

    files: tuple[FileReference, ...]

    def check(self, state: TableState) -> None:
        for name in {r.file.name for r in self.files}:
            refuse_known(state, name)
        check_references(state, self.files)

    def apply(self, state: TableState, moment: Moment) -> None:
        add_references(state, self.files)


class ClaimFiles(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """A compaction job takes files of a leaf; no other job takes them until the claim ends
    (H21)."""

    job: JobId
    partition: PartitionId
    inputs: tuple[FileName, ...]

    def check(self, state: TableState) -> None:
        if state.job(self.job) is not None:
            raise InvalidError(
                "the job has a claim: a job claims once", job=self.job, hint="claim for another job"
            )
        if not self.inputs or len(set(self.inputs)) < len(self.inputs):
            raise InvalidError(
                "a job claims no file, or one twice",
                job=self.job,
                hint="name at least one file, and each once",
            )
        held = {r.file.name: job for r, job in state.references(self.partition)}
        for name in self.inputs:
            if name not in held:
                hint = "plan again: it was replaced or cleared, or its leaf was split"
                raise ConflictError("the leaf does not hold this file", file=name.hex(), hint=hint)
            if held[name] is not None:
                hint = "plan again with what is free"
                raise ConflictError(
                    "another job holds this file", file=name.hex(), job=held[name], hint=hint
                )

    def apply(self, state: TableState, moment: Moment) -> None:
        key = state.write(
            "INSERT INTO jobs(id, partition, number, at) VALUES (?, ?, ?, ?)",
            (self.job, self.partition, moment.number, moment.at),
        ).lastrowid
        for name in self.inputs:
            state.write(
                "UPDATE file_references SET job = ? WHERE partition = ? AND file = ?",
                (key, self.partition, name),
            )


class ReplaceFiles(msgspec.Struct, frozen=True, array_like=True, tag="replace"):
    """A compaction job finished: its inputs leave, its output enters.

    The claim may lie on leaves of `partition` by now: inputs leave each of them, and the output
    enters those that its keys reach.

    output: None when every row was filtered away.
    """

    job: JobId
    partition: PartitionId
    inputs: tuple[FileName, ...]
    output: FileReference | None

    def check(self, state: TableState) -> None:
        # ended by giving up, dead letters, clear or another run: refused, not passed over
        job = state.job(self.job)
        if job is None:
            raise ClaimLostError("the job holds no claim", job=self.job)
        held = {r.file.name for r in state.claimed(self.job)}
        if held != set(self.inputs):
            raise ClaimLostError("the job does not hold its inputs", job=self.job)
        if self.output is None:
            return
        if not job.partition == self.partition == self.output.partition:
            raise InvalidError(
                "a job's output does not belong where it claimed",
                job=self.job,
                hint=f"write it to partition {job.partition}",
            )
        refuse_known(state, self.output.file.name)
        check_references(state, (self.output,))

    def apply(self, state: TableState, moment: Moment) -> None:
        inputs = state.claimed(self.job)
        change_each(state, "DELETE FROM file_references", inputs)
        for file in {r.file.name: r.file for r in inputs}.values():
            collect_if_unreferenced(state, file.name, file.size, moment)
        if self.output is not None:
            add_references(state, (self.output,))
        state.write("DELETE FROM jobs WHERE id = ?", (self.job,))


class ReleaseClaim(msgspec.Struct, frozen=True, array_like=True, tag="give_up"):
    """A claim ends without a commit: the task, the dead letters or an operator gave the job up
    (H21)."""

    job: JobId

    def check(self, state: TableState) -> None:
        if state.job(self.job) is None:
            raise ClaimLostError("the job holds no claim", job=self.job)

    def apply(self, state: TableState, moment: Moment) -> None:
        held = state.claimed(self.job)
        change_each(state, "UPDATE file_references SET job = NULL", held)
        state.write("DELETE FROM jobs WHERE id = ?", (self.job,))


class RemoveGarbage(msgspec.Struct, frozen=True, array_like=True, tag="remove"):
    """The objects of these files are deleted (objects first, then this entry: H23)."""

    files: tuple[FileName, ...]

    def check(self, state: TableState) -> None:
        for name in self.files:
            if state.references_of(name):
                raise InvalidError(
                    "a referenced file is no garbage",
                    file=name.hex(),
                    hint="remove files that no leaf refers to",
                )

    def apply(self, state: TableState, moment: Moment) -> None:
        for name in self.files:
            state.write("DELETE FROM garbage WHERE file = ?", (name,))


class RaiseFloor(msgspec.Struct, frozen=True, array_like=True, tag="floor"):
    """Nothing with a base below `floor` may be committed any more (H11).

    Ids of commits below it are forgotten, of users' jobs those in entries below `users_below` (H6).
    """

    floor: TransactionNumber
    users_below: TransactionNumber = TransactionNumber(0)

    def check(self, state: TableState) -> None:
        if self.floor > state.head().number:
            raise InvalidError(
                "the floor lies above the log",
                floor=self.floor,
                hint=f"give a number of the log, at most {state.head().number}",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("UPDATE head SET floor = max(floor, ?)", (self.floor,))
        floor = state.head().floor
        below = min(self.users_below, floor)
        state.write("DELETE FROM commits WHERE NOT user AND base < ?", (floor,))
        state.write("DELETE FROM commits WHERE user AND base < ? AND number < ?", (floor, below))
        state.write("DELETE FROM entry_times WHERE number < ?", (below,))
        state.write("DELETE FROM pins WHERE until < ?", (moment.at,))


def change_each(state: TableState, change: str, references: Sequence[FileReference]) -> None:
    """Run a statement on the rows of references, each found by its key.

    Raises:
        CacheDamagedError: a reference is not there.
    """
    for reference in references:
        where = "WHERE partition = ? AND file = ?"
        key = (reference.partition, reference.file.name)
        if not state.write(f"{change} {where}", key).rowcount:
            raise damaged("file_references", partition=reference.partition)


def collect_if_unreferenced(state: TableState, file: FileName, size: int, moment: Moment) -> None:
    """Let a file be garbage, unless it has a reference."""
    state.write(
        "INSERT INTO garbage SELECT ?1, ?2, ?3, ?4"
        " WHERE NOT EXISTS (SELECT 1 FROM file_references WHERE file = ?1)",
        (file, moment.number, moment.at, size),
    )
