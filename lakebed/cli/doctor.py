"""`lakebed doctor`: whatever is wrong, with its cure."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.errors import InvalidError, LakebedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebed.bootstrap.doctor.examinations import Examination
    from lakebed.doctor.check import CheckOutcome, Cure, DoctorReport

EXIT_FOUND = 20
"""Something is wrong. No error has this code: a command that fails is told apart from a lake that
does."""


@click.command(
    cls=Command,
    examples="""
    lakebed doctor
    lakebed --at dev doctor
    lakebed --at dev doctor --fix --dry-run
    lakebed doctor --fix --yes
    lakebed doctor --json
    """,
)
@click.option("--fix", is_flag=True, help="Then do what cannot harm; ask first.")
@click.option("--dry-run", is_flag=True, help="With --fix: show the plan, change nothing.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--all", "every", is_flag=True, help="Name the checks that found nothing, too.")
@pass_session
def doctor(session: Session, *, fix: bool, dry_run: bool, yes: bool, every: bool) -> None:
    """Look for what is wrong with this machine, who you are, what was deployed, and how it goes.

    Says of each finding what it means and what cures it (`lakebed explain doctor`), in less than
    twenty seconds, and changes nothing unless asked to. Exits with 20 if anything was found, else
    with the code of `unavailable` if a check could not look.
    """
    if not fix and (dry_run or yes):
        raise InvalidError("--dry-run and --yes belong to a fix", hint="add --fix")
    from lakebed.bootstrap.doctor.examinations import Examination

    examination = Examination(session.lake_path)
    try:
        report = examination.run()
        if not fix:
            session.give(msgspec.to_builtins(report), report_text(report, every=every))
        else:
            report = _fixed(session, examination, report, dry_run=dry_run, yes=yes, every=every)
    finally:
        has_ended = examination.close()
    code = exit_code_of(report)
    if not has_ended:  # a thread that hangs in a request would hold up the interpreter's end
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _fixed(
    session: Session,
    examination: Examination,
    report: DoctorReport,
    *,
    dry_run: bool,
    yes: bool,
    every: bool,
) -> DoctorReport:
    """Show the plan, carry it out if that is wanted, and return what is found then."""
    cures = examination.cures()
    shown: dict[str, object] = {
        "before": msgspec.to_builtins(report),
        "plan": [cure.does for cure in cures],
    }
    session.say(f"{report_text(report, every=every)}\n\n{_plan_text(cures)}")
    if dry_run or not cures:
        session.give(shown, "nothing was changed")
        return report
    if not yes:
        if session.as_json or not sys.stdin.isatty():
            hint = "add --yes, or --dry-run"
            raise InvalidError("a fix asks for confirmation: this is not a terminal", hint=hint)
        click.confirm("\ncarry it out?", abort=True, err=True)
    done = [_done(cure) for cure in cures]
    session.say("\n" + "\n".join(done) + "\n")
    after = _again(session)
    shown |= {"done": done, "after": msgspec.to_builtins(after)}
    session.give(shown, report_text(after, every=every))
    return after


def _again(session: Session) -> DoctorReport:
    """Look once more, with nothing remembered."""
    from lakebed.bootstrap.doctor.examinations import Examination

    examination = Examination(session.lake_path)
    try:
        return examination.run()
    finally:
        examination.close()


def _done(cure: Cure) -> str:
    try:
        cure.act()
    except LakebedError as error:
        return f"not done: {cure.does}: {error}"
    return f"done: {cure.does}"


def _plan_text(cures: Sequence[Cure]) -> str:
    if not cures:
        return "nothing that could be fixed without harm"
    lines = [f"  {number}. {cure.does}" for number, cure in enumerate(cures, 1)]
    return "\n".join(["the plan:", *lines])


def exit_code_of(report: DoctorReport) -> int:
    """Return 20 if anything was found, else the code of `unavailable` if a check could not look."""
    if report.of("found"):
        return EXIT_FOUND
    return 0 if report.is_healthy else UnavailableError.exit_code


def report_text(report: DoctorReport, *, every: bool) -> str:
    """Return what people read: what was found, what could not be looked at, and how many looked."""
    lines: list[str] = []
    section = None
    for one in report.outcomes:
        if one.state == "healthy" and not every:
            continue
        if one.section != section:
            section = one.section
            lines += ["", section] if lines else [section]
        lines += _outcome_lines(one)
    states = [
        f"{len(report.of('found')):,} found something",
        f"{len(report.of('could not look')):,} could not look",
    ]
    said = f"{counted(len(report.outcomes), 'check')} in {report.seconds:.1f} s"
    end = f"{said}: all is well" if report.is_healthy else f"{said}: {', '.join(states)}"
    return "\n".join([*lines, "", end] if lines else [end])


def _outcome_lines(one: CheckOutcome) -> list[str]:
    if one.state == "healthy":
        return [f"  well: {one.id}"]
    why = [f"    could not look at all of it: {one.why}"] if one.why and one.signs else []
    if one.state == "could not look":
        return [f"  could not look: {one.id}: {one.why}"]
    signs = [f"    {sign}" for sign in one.signs]
    return [f"  found: {one.id}: {one.found_when}", *signs, *why, f"    cure: {one.cure}"]
