"""Mending what fsck found, as far as that cannot make anything worse: planned, shown, then done.

Nothing that was committed is touched. What is mended can be made again from the log (a cache, a
snapshot), has no owner (leftovers), or is a name that leads to what is there. A table whose log or
state is damaged is left alone: its cache may be the only whole state. What may be done about a log
that has lost entries is done only when it is asked for by name (`log_repair.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from lakebed.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    NewerFormatError,
)
from lakebed.inspection.findings import KINDS, Fact, Finding, RepairAction
from lakebed.inspection.log_repair import LOG_DOES, LOST_ENTRIES, LogRepair, LogRepairAction
from lakebed.inspection.lost_history import LostHistory
from lakebed.inspection.replay import Replay, ReplayLog
from lakebed.model.names import TableId, TableName
from lakebed.model.paths import lost_prefix, snapshot_path
from lakebed.observe import events
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.format_gate import AskFormats, newest_formats
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.warm_heads import WarmHeads

RECOVERED = "recovered-"
"""Prefix of the name that a table gets which lost its own: the beginning of its id follows."""

UNREPAIRED = (ConflictError, CorruptError, DeniedError, InvalidError, NewerFormatError)
"""Errors by which one step of a plan may fail while the rest go on."""

HARMLESS: frozenset[str] = frozenset(
    {
        "snapshot-damaged",
        "snapshot-lost",
        "snapshot-old",
        "snapshot-unreadable",
        "version-lost",
        "cache-damaged",
        "cache-differs",
        "file-missing",
        "file-damaged",
        "file-unreadable",
        "object-unreferenced",
        "object-pending",
        "object-stray",
        "log-time-ahead",
    }
)
"""Findings beside which a table's log and state are whole, so that the rest can be mended."""


class RepairStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a repair, for some findings.

    about: a table's name, or its id where it has none.
    paths: of the objects that it is about, where it matters.
    lost: by the repair of a log.
    """

    action: RepairAction | LogRepairAction
    about: str
    does: str
    findings: int
    paths: tuple[str, ...] = ()
    lost: LostHistory | None = None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Findings that are left to people.

    why: not mended here.
    safe: what they may do.
    """

    code: str
    about: str
    why: str
    safe: str
    findings: int


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a repair, in order, and the findings that it would leave."""

    steps: tuple[RepairStep, ...]
    left: tuple[Left, ...]


class StepDone(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was carried out.

    count: of things it made or removed.
    problem: it was not.
    """

    step: RepairStep
    count: int = 0
    problem: str = ""


DOES: dict[RepairAction, str] = {
    "bring-back-files": "take the deletion of files back, where the bucket keeps old versions",
    "renew-snapshots": "write a snapshot of what the log leads to, prove it, then delete damaged"
    " and outdated ones",
    "rebuild-cache": "delete the local cache of the state; it is made again from the log",
    "sweep-objects": "delete files that can no longer be committed, as the sweep would",
    "sweep-leftovers": "remove what dead processes left",
    "delete-dropped": "delete objects of a table whose log ends with its drop",
    "set-time-back": "set log time back to this machine's clock; what was done is as young as that",
    "name-again": f"give the table a name, {RECOVERED} and the beginning of its id",
}


def plan_repair(findings: Sequence[Finding], *, has_versions: bool = False) -> RepairPlan:
    """Return what can be done about findings without making anything worse. Changes nothing.

    has_versions: whether what was deleted can be brought back.
    """
    broken = {_about(f): f.code for f in findings if _breaks(f)}
    steps: dict[tuple[RepairAction, str], list[Finding]] = {}
    left: dict[tuple[str, str, str], int] = {}
    for one in findings:
        action, about = _action(one), _about(one)
        why = ""
        if action is None:
            why = "no repair is known that cannot make it worse"
        elif about in broken:
            why = f"the table has {broken[about]}"
        elif action == "bring-back-files" and not has_versions:
            why = "its store keeps no old versions"
        if why or action is None:
            left[one.code, about, why] = left.get((one.code, about, why), 0) + 1
        else:
            steps.setdefault((action, about), []).append(one)
    return RepairPlan(
        steps=tuple(_step(*step) for step in sorted(steps.items(), key=_order)),
        left=tuple(
            Left(code=code, about=about, why=why, safe=KINDS[code].safe, findings=count)
            for (code, about, why), count in left.items()
        ),
    )


def _step(key: tuple[RepairAction, str], findings: Sequence[Finding]) -> RepairStep:
    action, about = key
    paths = [str(one.facts["path"]) for one in findings if action == "bring-back-files"]
    return RepairStep(
        action=action, about=about, does=DOES[action], findings=len(findings), paths=tuple(paths)
    )


class Remedies(msgspec.Struct, frozen=True, kw_only=True):
    """The remedies that other rooms provide for a repair. Each may be repeated, and returns how
    many things it removed or made.

    rebuild_cache, sweep_objects, delete_objects, set_time_back: of a table.
    sweep_leftovers: of this machine.
    bring_back: takes the deletion of an object back; None: no versions are kept.
    """

    rebuild_cache: Callable[[TableId], int]
    sweep_objects: Callable[[TableName], int]
    sweep_leftovers: Callable[[], int]
    delete_objects: Callable[[TableId], int]
    set_time_back: Callable[[TableName], int]
    bring_back: Callable[[str], bool] | None = None


class Repair:
    """Carries out a plan. formats: for the repair of a log."""

    def __init__(
        self,
        *,
        registry: TableRegistry,
        logs: TransactionLogs,
        objects: ObjectStore,
        heads: WarmHeads,
        remedies: Remedies,
        formats: AskFormats = newest_formats,
    ) -> None:
        self._registry = registry
        self._logs = logs
        self._objects = objects
        self._heads = heads
        self._remedies = remedies
        self._formats = formats

    def plan(
        self, findings: Sequence[Finding], *, log: LogRepairAction | None = None
    ) -> RepairPlan:
        """Return what can be done about findings of this lake. Changes nothing.

        log: a way on for logs that have lost entries; then nothing else is done.

        Raises:
            InvalidError: this way is not open for a table, or no log has lost any.
        """
        plan = plan_repair(findings, has_versions=self._remedies.bring_back is not None)
        damaged = {one.about for one in plan.left if one.code in LOST_ENTRIES}
        if log is None:
            left = tuple(self._with_ways(one) for one in plan.left)
            return msgspec.structs.replace(plan, left=left)
        if not damaged:
            raise InvalidError("no log has lost entries", hint="`lakebed fsck --repair` does more")
        return RepairPlan(
            steps=tuple(self._log_step(log, TableName(name), plan) for name in sorted(damaged)),
            left=tuple(one for one in plan.left if one.about not in damaged),
        )

    def _with_ways(self, left: Left) -> Left:
        """Name the commands that are open for a log that has lost entries."""
        if left.code not in LOST_ENTRIES:
            return left
        ways = []
        for action in LOG_DOES:
            with suppress(*UNREPAIRED):
                self._log_repair(TableName(left.about)).plan(action)
                ways.append(f"`lakebed fsck {left.about} --repair --{action}`")
        why = f"{left.why} by itself; see {' or '.join(ways)}" if ways else left.why
        return msgspec.structs.replace(left, why=why)

    def _log_step(self, action: LogRepairAction, name: TableName, plan: RepairPlan) -> RepairStep:
        found = self._log_repair(name).plan(action)
        return RepairStep(
            action=action,
            about=name,
            does=f"{LOG_DOES[action]}: from entry {found.state.head().number}, at"
            f" {found.number + 1}; {lost_prefix(self._id_of(name), found.number)} keeps what is"
            " taken out",
            findings=sum(one.findings for one in plan.left if one.about == name),
            lost=found.lost,
        )

    def _log_repair(self, name: TableName) -> LogRepair:
        entry = self._entry(name)
        return LogRepair(
            entry,
            log=self._logs.open(entry.id),
            snapshots=self._heads.snapshots(entry.id),
            objects=self._objects,
            open_head=self._heads,
            problem_of_cache=self._heads.problem_of_cache,
            formats=self._formats,
        )

    def run(self, plan: RepairPlan) -> list[StepDone]:
        """Carry out each step; one that does not succeed does not hold up the others.

        Raises:
            UnavailableError, UnknownOutcomeError: a store is busy; run it again.
        """
        done = []
        for step in plan.steps:
            try:
                one = StepDone(step=step, count=self._carry_out(step))
            except UNREPAIRED as error:
                one = StepDone(step=step, problem=str(error))
            events.emit(
                events.REPAIR_DONE,
                action=step.action,
                about=step.about,
                count=one.count,
                problem=one.problem,
            )
            done.append(one)
        return done

    def _carry_out(self, step: RepairStep) -> int:
        match step.action:
            case "bring-back-files":
                return self._bring_back_all(step.paths)
            case "renew-snapshots":
                return self._renew_snapshots(TableName(step.about))
            case "rebuild-cache":
                name = TableName(step.about)
                self._replayed(name, self._id_of(name))  # else the cache is the only whole state
                return self._remedies.rebuild_cache(self._id_of(name))
            case "sweep-objects":
                return self._remedies.sweep_objects(TableName(step.about))
            case "sweep-leftovers":
                return self._remedies.sweep_leftovers()
            case "delete-dropped":
                return self._remedies.delete_objects(TableId(step.about))
            case "set-time-back":
                return self._remedies.set_time_back(TableName(step.about))
            case "rebuild-log" | "accept-loss":
                assert step.lost is not None, "it was planned"
                self._log_repair(TableName(step.about)).run(step.action, step.lost)
                return 1
            case "name-again":
                id_ = TableId(step.about)
                self._registry.claim(TableName(RECOVERED + id_[:8]), id_)
                return 1

    def _bring_back_all(self, paths: Sequence[str]) -> int:
        bring_back = self._remedies.bring_back
        assert bring_back is not None, "else it is not planned"
        back = [path for path in paths if bring_back(path)]
        if len(back) < len(paths):
            hint = "restore the rest from a copy"
            raise ConflictError(
                "some objects have no old version",
                brought_back=len(back),
                wanted=len(paths),
                hint=hint,
            )
        return len(back)

    def _entry(self, name: TableName) -> TableEntry:
        entry = self._registry.find(name)
        if entry is None:
            raise ConflictError("the table was dropped meanwhile", table=name)
        return entry

    def _id_of(self, name: TableName) -> TableId:
        return self._entry(name).id

    def _replayed(self, name: TableName, id_: TableId) -> tuple[Replay, TableState]:
        """Return what the log leads to. Raises: ConflictError, if it is not whole."""
        replay = ReplayLog(name, self._logs.open(id_), self._heads.snapshots(id_)).run(None)
        if replay.state is None or not replay.whole or any(map(_breaks, replay.findings)):
            raise ConflictError("the log is not whole any more", table=name, hint="run fsck again")
        return replay, replay.state

    def _renew_snapshots(self, name: TableName) -> int:
        """Write and prove one, then delete those that readers pass over or that lie before the
        log. Returns how many were written and deleted."""
        id_ = self._id_of(name)
        snapshots = self._heads.snapshots(id_)
        replay, state = self._replayed(name, id_)
        path = snapshot_path(id_, state.head().number, state.digest())
        useless = [
            str(f.facts["path"])
            for f in replay.findings
            if f.code in {"snapshot-damaged", "snapshot-old"}
        ]
        if path in useless:  # it has the name of the one that is written
            self._objects.delete([path])
        there = self._objects.size_of(path) is not None
        snapshots.write(state)
        if not snapshots.prove(path):
            raise CorruptError("the snapshot that was written is damaged", path=path)
        others = [one for one in useless if one != path]
        self._objects.delete(others)
        return len(others) + (not there)


def _about(one: Finding) -> str:
    fact: Fact = one.facts.get("table", one.facts.get("id", ""))
    return str(fact)


def _action(one: Finding) -> RepairAction | None:
    return "rebuild-cache" if _is_of_cache(one) else KINDS[one.code].repair


def _is_of_cache(one: Finding) -> bool:
    """Return whether only the local cache shows a finding; the log leads to another state."""
    return one.facts.get("where") == "cache"


def _breaks(one: Finding) -> bool:
    return "table" in one.facts and one.code not in HARMLESS and not _is_of_cache(one)


def _order(item: tuple[tuple[RepairAction, str], list[Finding]]) -> tuple[int, str]:
    (action, about), _ = item
    return list(DOES).index(action), about
