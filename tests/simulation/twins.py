"""Twins of the real parts, each with exactly one rule broken: what the checkers are tested with.

The story of each rule is in `docs/design/simulation.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from lakebed.compaction import run_job
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.deletes import rewrite_leaves
from lakebed.errors import ObjectMissingError
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import SweepObjects
from lakebed.ingest import stage_rows
from lakebed.model.names import (
    MICROS_PER_SECOND,
    CommitId,
    FileName,
    JobId,
    Micros,
    TableId,
    TransactionNumber,
    file_name,
)
from lakebed.model.paths import file_of, files_prefix
from lakebed.ports.object_store import ObjectStore
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.statestore import committer as committer_module
from lakebed.statestore import snapshots as snapshots_module
from lakebed.statestore.committer import Committer
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries import range_deletes
from lakebed.statestore.log_entries.file_changes import ClaimFiles, RaiseFloor, RemoveGarbage
from lakebed.statestore.log_entries.table_changes import Split
from lakebed.statestore.log_entries.time_changes import LeapTime
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state import proven_state
from lakebed.statestore.table_state import state as state_module
from lakebed.statestore.table_state.range_contents import LeafInRanges
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.time_records import Leap, put_leap
from tests.simulation import violation as v
from tests.simulation.machine import Parts
from tests.simulation.new_state import state_in
from tests.simulation.observed import ForgetfulLog, GapLog, LeapingLog, TrustingLog
from tests.simulation.twin_heads import (
    AnswersBeforeAppend,
    BelievesEveryLeap,
    FoundByBytes,
    NewIdAfterNoAnswer,
    TakesWhatComes,
    TimeRunsBack,
    lets_nothing_was_written_escape,
    refuses_without_a_look,
)

Patch = Callable[[pytest.MonkeyPatch], None]


def ids_may_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets one id land twice: the state's own key would notice, and the log's order must."""

    def remember(self: Transaction, state: TableState, moment: Moment) -> None:
        state.write("DELETE FROM commits WHERE id = ?", (self.id,))
        state.put_commit(self.id, self.digest, moment.number, self.base, int(self.user))

    monkeypatch.setattr(Transaction, "remember", remember)


def forgets_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = RaiseFloor.apply

    def forget(self: RaiseFloor, state: TableState, moment: Moment) -> None:
        apply(self, state, moment)
        state.write("DELETE FROM commits")

    monkeypatch.setattr(RaiseFloor, "apply", forget)


def leaps_make_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log time leaps, and what was done before is as old as log time says."""

    def leap(self: LeapTime, state: TableState, moment: Moment) -> None:
        put_leap(state, Leap(self.upto, state.head().at, moment.at))

    monkeypatch.setattr(LeapTime, "apply", leap)


def rows_age_by_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenTable, "_row_time", lambda table, _stage: table.head.times.now())


class SweepsByAge(SweepObjects):
    """Deletes what the state does not know and was put longer ago than a job may take."""

    def run(self, table: OpenTable) -> int:
        now = table.head.log_time()
        put_at = self._objects._objects.put_at
        with table.head.reading() as state:
            age = state.settings().pending_seconds_max * MICROS_PER_SECOND
            paths = [
                path
                for path in self._objects.list(files_prefix(table.id))
                if put_at[path] + age < now and not state.knows_file(file_of(path))
            ]
        self._objects.delete(paths)
        return len(paths)


class SweepsWithoutFloor(SweepObjects):
    """Deletes below the number that it would have raised the floor to, and raises none."""

    def run(self, table: OpenTable) -> int:
        now = table.head.log_time()
        with table.head.reading() as state:
            pending = state.settings().pending_seconds_max * MICROS_PER_SECOND
            wanted = state.number_older_than(Micros(now - pending))
            paths = [
                path
                for path in self._candidates(table.id, wanted)
                if not state.knows_file(file_of(path))
            ]
        self._objects.delete(paths)
        return len(paths)


class SweepsWithOldState(SweepObjects):
    """Raises the floor, then deletes what an older state does not know: that of its last run."""

    def __init__(self, *, objects: ObjectStore) -> None:
        super().__init__(objects=objects)
        self._known: dict[str, set[FileName]] = {}

    def _delete_unknown(self, table: OpenTable) -> int:
        with table.head.reading() as state:
            floor = state.head().floor
            newest = {r.file.name for r in state.all_references()}
            newest |= {g.file for g in state.garbage()}
        known = self._known.get(table.id, newest)
        self._known[table.id] = newest
        paths = [p for p in self._candidates(table.id, floor) if file_of(p) not in known]
        self._objects.delete(paths)
        return len(paths)


class NeverSweeps(SweepObjects):
    """Raises the floor, and leaves everything where it is."""

    def _delete_unknown(self, table: OpenTable) -> int:
        return 0


class DeletesBeforeDelay(CollectGarbage):
    """Deletes files as soon as their last reference is gone."""

    def run(self, table: OpenTable) -> int:
        with table.head.reading() as state:
            start, due = start_of(state), state.garbage()
        self._objects.delete([head_path(table, g.file) for g in due])
        if due:
            table.head.commit(table.own(start, RemoveGarbage(tuple(g.file for g in due))))
        return len(due)


def head_path(table: OpenTable, file: FileName) -> str:
    return f"{files_prefix(table.id)}{file.hex()}.parquet"


class PassesOverMissing(RunQuery[Any]):
    """Gives what it finds."""

    def _rows(self, table: OpenTable, plan: QueryPlan, *_: object, **__: object) -> Iterator[Any]:
        for parts in plan.leaves:
            for part in parts:
                try:
                    yield from self._files.merge(plan.schema, [part], plan.condition)
                except ObjectMissingError:
                    continue


class LeavesOutCommits(Snapshots):
    """Writes a snapshot without the ids of commits."""

    def write(self, state: TableState) -> TransactionNumber:
        copy = state_in(state.connection.serialize())
        copy.write("DELETE FROM commits")  # with its sums: it proves itself
        try:
            return super().write(copy)
        finally:
            copy.connection.close()


def refusals_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses a queued commit, and forgets that it did."""
    monkeypatch.setattr(committer_module, "answers_of", TableHead.commit_group)


def a_group_has_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers_of = committer_module.answers_of

    def one(head: TableHead, transactions: Sequence[Transaction]) -> list[Any]:
        answers = answers_of(head, transactions)
        return answers[:1] * len(answers)

    monkeypatch.setattr(committer_module, "answers_of", one)


class NewIdWithEachDelivery(Committer):
    """Takes what a message brings for something new."""

    def _commit(self, table: TableId, arrived: Sequence[Any]) -> int:
        for one in arrived:
            for n, commit in enumerate(one.commits):
                id_ = CommitId(f"{one.message.receipt}/{n}/{commit.transaction.id}")
                anew = msgspec.structs.replace(commit.transaction, id=id_)
                one.commits[n] = msgspec.structs.replace(commit, transaction=anew)
        return super()._commit(table, arrived)


class AnswersBeforeCommit(Committer):
    """Tells all that they are in, then commits."""

    def _commit(self, table: TableId, arrived: Sequence[Any]) -> int:
        number = TransactionNumber(self._heads(table).state.head().number + 1)
        for one in arrived:
            for commit in one.commits:
                self._tracker.report(self._report(table, commit.requester, number))
        return super()._commit(table, arrived)


class ProvesNothing(Snapshots):
    """Takes it that what was put can be read."""

    def prove(self, path: str) -> bool:
        return True


def keeps_one_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "SNAPSHOTS_KEPT", 1)


def states_trust_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes a state for what was written, whatever its sums say."""
    monkeypatch.setattr(proven_state, "verify_at_open", lambda _: True)
    monkeypatch.setattr(proven_state, "verify_all", lambda _: None)
    monkeypatch.setattr(snapshots_module, "verify_rows", lambda _: None)
    monkeypatch.setattr(state_module, "verify_node", lambda *_: None)
    monkeypatch.setattr(TableState, "_verify_references", lambda *_: None)


def split_drops_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Split.apply

    def drop(self: Split, state: TableState, moment: Moment) -> None:
        held = [job.id for job in state.jobs() if job.partition == self.partition]
        apply(self, state, moment)
        for job in held:
            statement = "UPDATE file_references SET job = NULL WHERE job ="
            state.write(f"{statement} (SELECT key FROM jobs WHERE id = ?)", (job,))

    monkeypatch.setattr(Split, "apply", drop)


def split_loses_a_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Split.apply

    def lose(self: Split, state: TableState, moment: Moment) -> None:
        apply(self, state, moment)
        state.write("UPDATE partitions SET right = left WHERE id = ?", (self.partition,))

    monkeypatch.setattr(Split, "apply", lose)


def claims_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClaimFiles, "check", lambda _self, _state: None)


def merges_all_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = run_job._inputs

    def fewer(*given: Any) -> Any:  # noqa: ANN401 - as the function it replaces
        found = inputs(*given)
        return _Short(found) if len(found) > 2 else found

    monkeypatch.setattr(run_job, "_inputs", fewer)


class _Short(dict[Any, Any]):
    """All names, and not all values."""

    def values(self) -> Any:  # noqa: ANN401 - a view or a list
        return list(super().values())[:-1]


def never_sends_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateCompactionJobs, "_send_again", lambda *_, **__: None)


def deletes_end_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_deletes, "end_claims", lambda *_: None)


def deletes_take_whole_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeafInRanges, "points", ())


def deletes_look_at_files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite_leaves._AskedLeaf, "folds", False)


def names_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    def guessed(**given: Any) -> FileName:  # noqa: ANN401 - as the function it replaces
        return file_name(**given | {"job": JobId("job"), "run": 0})

    for module in (stage_rows, run_job):
        monkeypatch.setattr(module, "file_name", guessed)


class Twin(msgspec.Struct, frozen=True):
    """One broken rule, and the checkers of which one must notice it."""

    checkers: frozenset[str]
    theme: str
    parts: Parts = Parts()
    patches: tuple[Patch, ...] = ()


def _twin(
    theme: str,
    *checkers: str,
    patches: tuple[Patch, ...] = (),
    **parts: Any,  # noqa: ANN401 - the fields of Parts
) -> Twin:
    return Twin(frozenset(checkers), theme, Parts(**parts), patches)


TWINS: dict[str, Twin] = {
    "found by bytes": _twin("again", v.LANDED_ONCE, head=FoundByBytes, patches=(ids_may_return,)),
    "forgotten id": _twin("again", v.LANDED_ONCE, patches=(forgets_ids,)),
    "new id after no answer": _twin("again", v.LANDED_ONCE, head=NewIdAfterNoAnswer),
    "reused number": _twin("log", v.NO_GAP, log=ForgetfulLog),
    "leap over what was truncated": _twin(
        "log", v.REPLAY, v.EXISTS, log=LeapingLog, head=TakesWhatComes
    ),
    "append behind a gap": _twin("log", v.BEHIND_GAP, log=GapLog),
    "a state newer than its log": _twin("log", v.SHOWN, log=TrustingLog),
    "answer before the append": _twin("again", v.TRUTH, head=AnswersBeforeAppend),
    "nothing was written": _twin("again", v.TRUTH, patches=(lets_nothing_was_written_escape,)),
    "refused without a look": _twin(
        "idle", v.TRUTH, v.LANDED_ONCE, patches=(refuses_without_a_look,)
    ),
    "time runs back": _twin("all", v.TIME, head=TimeRunsBack),
    "believes every leap": _twin("clocks", v.TIME, head=BelievesEveryLeap),
    "a leap makes all old": _twin("leaps", v.LANDED_ONCE, v.DELAY, patches=(leaps_make_old,)),
    "rows age by own clock alone": _twin(
        "clocks", v.ROWS, v.READERS, patches=(rows_age_by_own_clock,)
    ),
    "sweep by age": _twin("sweep", v.EXISTS, sweep=SweepsByAge),
    "sweep without the floor": _twin("sweep", v.EXISTS, sweep=SweepsWithoutFloor),
    "sweep with a state older than the floor": _twin("sweep", v.EXISTS, sweep=SweepsWithOldState),
    "never sweeps": _twin("sweep", v.LEAKS, sweep=NeverSweeps),
    "delete before the delay": _twin("readers", v.DELAY, collect=DeletesBeforeDelay),
    "reader passes over missing files": _twin("readers", v.READERS, query=PassesOverMissing),
    "snapshot leaves something out": _twin("log", v.REPLAY, snapshots=LeavesOutCommits),
    "truncation below what nobody proved": _twin("log", v.STARTS, snapshots=ProvesNothing),
    "truncation below the newest snapshot": _twin("log", v.STARTS, patches=(keeps_one_snapshot,)),
    "state that trusts itself": _twin(
        "caches", v.REPLAY, v.READERS, v.LANDED_ONCE, v.EXISTS, patches=(states_trust_themselves,)
    ),
    "split that drops a claim": _twin("jobs", v.CLAIMS, patches=(split_drops_claims,)),
    "split that loses a leaf": _twin("jobs", v.TILES, patches=(split_loses_a_leaf,)),
    "claim of what is held": _twin("jobs", v.CLAIMS, patches=(claims_what_is_held,)),
    "merge of all but one": _twin("jobs", v.ROWS, v.READERS, patches=(merges_all_but_one,)),
    "refusal that may end": _twin("claims", v.TRUTH, patches=(refusals_may_end,)),
    "a group has one answer": _twin("queued", v.TRUTH, patches=(a_group_has_one_answer,)),
    "new id with each delivery": _twin(
        "queued", v.LANDED_ONCE, committer=NewIdWithEachDelivery, patches=(ids_may_return,)
    ),
    "answer before the commit": _twin("queued", v.TRUTH, committer=AnswersBeforeCommit),
    "job never sent again": _twin("jobs", v.ENDS, patches=(never_sends_again,)),
    "a late compaction brings deleted rows back": _twin(
        "deletes", v.ROWS, v.READERS, patches=(deletes_end_no_claim,)
    ),
    "a delete takes whole leaves": _twin(
        "deletes", v.ROWS, v.READERS, patches=(deletes_take_whole_leaves,)
    ),
    "a delete looks at a part of a leaf that folds": _twin(
        "values", v.ROWS, v.READERS, v.TRUTH, patches=(deletes_look_at_files_alone,)
    ),
    "names are guessed": _twin("all", v.NAMES, patches=(names_are_guessed,)),
}
