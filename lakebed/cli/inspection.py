"""`lakebed status` and `lakebed fsck`: look, compare, mend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import EXIT_BUG, Command, Session, counted, pass_session, time_text
from lakebed.cli.progress import ProgressLine
from lakebed.errors import CorruptError, InvalidError, NewerFormatError, TableQuarantinedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebed.inspection.findings import Finding
    from lakebed.inspection.fsck import FsckReport
    from lakebed.inspection.log_repair import LogRepairAction
    from lakebed.inspection.repair import RepairPlan, RepairStep, StepDone
    from lakebed.lake import Lake
    from lakebed.tasks.failed_work import FailedWork

LOST_SHOWN_MAX = 20
"""Commits that the plan of a repair names."""


@click.command(
    cls=Command,
    examples="""
    lakebed status
    lakebed status flights
    lakebed status flights --json
    """,
)
@click.argument("table", required=False)
@pass_session
def status(session: Session, table: str | None) -> None:
    """Draw the partition tree of TABLE, or of all, with rows and files, jobs and garbage.

    A table that cannot be read, or is in quarantine, is named with the reason. The exit code is
    that of the gravest error.
    """
    from lakebed.inspection.drawing import draw_status

    failures: list[FailedWork] = []
    with session.open() as lake:
        found = lake.status(table, failed=failures.append)
    texts = [draw_status(one) for one in found] + [_unread_text(one) for one in failures]
    values = [*msgspec.to_builtins(found), *map(_unread_value, failures)]
    session.give(values, "\n".join(texts).rstrip("\n") or "no tables yet")
    errors = (one.error for one in failures)
    graves = (e for e in errors if table or not isinstance(e, TableQuarantinedError))
    sys.exit(next((getattr(error, "exit_code", EXIT_BUG) for error in graves), 0))


def _unread_text(failed: FailedWork) -> str:
    return f"{failed.table}: {failed.code}: {failed.error}\n"


def _unread_value(failed: FailedWork) -> dict[str, object]:
    return {"name": failed.table, "error": {"code": failed.code, "reason": str(failed.error)}}


@click.command(
    cls=Command,
    examples="""
    lakebed fsck
    lakebed fsck flights --deep
    lakebed fsck --repair --dry-run
    lakebed fsck --repair --yes
    lakebed fsck flights --repair --rebuild-log
    lakebed fsck flights --repair --accept-loss --dry-run
    """,
)
@click.argument("table", required=False)
@click.option("--deep", is_flag=True, help="Read every byte and every row.")
@click.option("--repair", is_flag=True, help="Then repair what cannot get worse by it; ask first.")
@click.option(
    "--rebuild-log",
    is_flag=True,
    help="With --repair: let a log that has lost entries go on from the newest cache or snapshot.",
)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="With --repair: let it go on from its own last entry; says which commits are lost.",
)
@click.option("--dry-run", is_flag=True, help="With --repair: show the plan, change nothing.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@pass_session
def fsck(
    session: Session,
    table: str | None,
    *,
    deep: bool,
    repair: bool,
    rebuild_log: bool,
    accept_loss: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Hold log, state, snapshots and objects of TABLE, or of the whole lake, against each other.

    Says of each finding what it means and what is safe to do, and changes nothing unless asked to
    repair. Exits with the code of `corrupt` if anything that was committed is wrong, gone, or
    cannot be read, after a repair: still; else with that of `newer-format` if a table is of a newer
    release.
    """
    if not repair and (dry_run or yes or rebuild_log or accept_loss):
        options = "--rebuild-log, --accept-loss, --dry-run and --yes"
        raise InvalidError(f"{options} belong to a repair", hint="add --repair")
    log = _log_repair(table, rebuild_log=rebuild_log, accept_loss=accept_loss)
    with session.open() as lake:
        report = _looked(session, lake, table, deep=deep)
        if not repair:
            session.give(msgspec.to_builtins(report), _report_text(report))
        else:
            plan = lake.plan_repair(report, log=log)
            report = _repaired(
                session, lake, report, plan, table, deep=deep, dry_run=dry_run, yes=yes
            )
    if report.is_damaged:
        sys.exit(CorruptError.exit_code)
    if report.is_newer:
        sys.exit(NewerFormatError.exit_code)


def _log_repair(
    table: str | None, *, rebuild_log: bool, accept_loss: bool
) -> LogRepairAction | None:
    """Return the way on for a log that was asked for."""
    if not rebuild_log and not accept_loss:
        return None
    if table is None or (rebuild_log and accept_loss):
        hint = "`lakebed fsck TABLE --repair --rebuild-log`, or `--accept-loss`"
        raise InvalidError("a log repair takes one table and one method", hint=hint)
    return "rebuild-log" if rebuild_log else "accept-loss"


def _looked(session: Session, lake: Lake, table: str | None, *, deep: bool) -> FsckReport:
    with ProgressLine(silent=session.as_json) as line:
        return lake.fsck(
            table,
            deep=deep,
            on_progress=lambda name, done, total: line.show(f"{name}: {done:,} of {total:,} files"),
        )


def _repaired(
    session: Session,
    lake: Lake,
    report: FsckReport,
    plan: RepairPlan,
    table: str | None,
    *,
    deep: bool,
    dry_run: bool,
    yes: bool,
) -> FsckReport:
    """Show the plan, carry it out if that is wanted, and return what is found then."""
    shown = {"before": msgspec.to_builtins(report), "plan": msgspec.to_builtins(plan)}
    session.say(f"{_report_text(report)}\n\n{_plan_text(plan)}")
    if dry_run or not plan.steps:
        session.give(shown, "nothing was changed")
        return report
    if not yes:
        if session.as_json or not sys.stdin.isatty():
            hint = "add --yes, or --dry-run"
            raise InvalidError("a repair asks for confirmation: this is not a terminal", hint=hint)
        click.confirm("\ncarry it out?", abort=True, err=True)
    done = lake.repair(plan)
    session.say("\n" + "\n".join(map(_done_text, done)) + "\n")
    after = _looked(session, lake, table, deep=deep)
    shown |= {"done": msgspec.to_builtins(done), "after": msgspec.to_builtins(after)}
    session.give(shown, _report_text(after))
    return after


def _report_text(report: FsckReport) -> str:
    text = "\n\n".join(_finding_text(one) for one in report.findings)
    checked = f"{counted(report.tables, 'table')} and {counted(report.files, 'file')} checked"
    whole = f"{text}\n\n{checked}" if text else f"{checked}: clean"
    if report.deep or not report.files:
        return whole
    return f"{whole}\nnot read: the pages and rows of files; `lakebed fsck --deep` reads them"


def _finding_text(one: Finding) -> str:
    facts = " ".join(f"{name}={value}" for name, value in one.facts.items())
    return f"{one.severity}: {one.code} ({facts})\n  means: {one.means}\n  safe: {one.safe}"


def _plan_text(plan: RepairPlan) -> str:
    lines = ["the plan:" if plan.steps else "nothing that could be repaired"]
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"  {number}. {_step_name(step)}: {step.does}")
        lines += _lost_lines(step)
    for left in plan.left:
        times = f" ({left.findings} times)" if left.findings > 1 else ""
        lines.append(f"  left alone: {left.code} {left.about}{times}: {left.why}")
    return "\n".join(lines)


def _lost_lines(step: RepairStep) -> Iterator[str]:
    """Yield which commits a repair of a log loses, as far as that is known."""
    if step.lost is None:
        return
    commits, files = step.lost.commits, step.lost.files
    if step.action == "accept-loss":
        yield f"     lost, as far as known: {counted(len(commits), 'commit')}"
    for one in commits[:LOST_SHOWN_MAX]:
        when = "at an unknown time" if one.at is None else time_text(one.at)
        yield f"       entry {one.number}  {when}  {one.id}"
    if len(commits) > LOST_SHOWN_MAX:
        yield f"       and {len(commits) - LOST_SHOWN_MAX:,} more; --json shows all"
    if files:
        yield f"     {counted(len(files), 'file')} of them become unreferenced objects"


def _done_text(done: StepDone) -> str:
    said = f"not done: {done.problem}" if done.problem else counted(done.count, "thing") + " done"
    return f"{_step_name(done.step)}: {said}"


def _step_name(step: RepairStep) -> str:
    return f"{step.action} {step.about}".rstrip()
