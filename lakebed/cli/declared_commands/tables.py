"""`lakebed diff`, `lakebed apply`: tables become what files declare."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.tables.plan_steps import Loss, Removal, TablesPlan, TableStep

REMOVALS = ("offline", "drop")

_would_remove = click.option(
    "--remove",
    type=click.Choice(REMOVALS),
    help="What becomes of tables that files declared before.  [default: nothing]",
)


@click.command(
    cls=Command,
    examples="""
    lakebed diff prod/tables
    lakebed diff prod/tables --remove drop
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_would_remove
@pass_session
def diff(session: Session, *, folder: Path, remove: Removal | None) -> None:
    """Show what `lakebed apply DIR` would do, and change nothing.

    DIR has a file of TOML for each table: its name, keys, values, settings and processing.
    """
    with session.open() as lake:
        plan = lake.plan_tables(folder, remove=remove)
    session.give(plan_json(plan), _text(plan))


@click.command(
    cls=Command,
    examples="""
    lakebed apply prod/tables
    lakebed apply prod/tables --remove offline
    lakebed apply prod/tables --remove drop --yes
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_would_remove
@click.option("--yes", is_flag=True, help="Do not ask before fields or tables are dropped.")
@pass_session
def apply(session: Session, *, folder: Path, remove: Removal | None, yes: bool) -> None:
    """Make the tables of the lake those that the files in DIR declare, and the lake if there is
    none. `lakebed diff` shows what would be done.

    Tables are made, renamed, changed, taken offline; what cannot be is refused before anything
    changes. Tables that no file ever declared are left alone. Applying again changes nothing, and
    goes on where it was interrupted.
    """
    with session.open(create=True) as lake:
        done = lake.plan_tables(folder, remove=remove)
        losses = done.losses
        if losses and not yes:
            _confirm(session, losses)

        def show(step: TableStep) -> None:
            session.say("\n".join(_step_lines(step)))

        if done.steps:
            done = lake.apply_tables(folder, remove=remove, losses=losses, on_step=show)
    if session.as_json:
        session.give(plan_json(done), "")
    for line in _ending(done, "nothing to do"):
        session.say(line)


def plan_json(plan: TablesPlan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    fields = ("action", "table", "file", "id", "before", "details", "losses")
    steps = [
        {name: msgspec.to_builtins(getattr(step, name)) for name in fields} for step in plan.steps
    ]
    names = ("unchanged", "left_alone", "quarantined")
    return {"steps": steps, **{name: list(getattr(plan, name)) for name in names}}


def _confirm(session: Session, losses: Sequence[Loss]) -> None:
    if session.as_json or not sys.stdin.isatty():
        shown = ", ".join(map(str, losses[:5]))
        raise InvalidError("dropping cannot be undone", drops=shown, hint="add --yes")
    for loss in losses:
        click.echo(f"drops {loss}", err=True)
    click.confirm("go on?", abort=True, err=True)


def _text(plan: TablesPlan) -> str:
    lines = [line for step in plan.steps for line in _step_lines(step)]
    return "\n".join([*lines, *_ending(plan, "nothing would change")])


def _step_lines(step: TableStep) -> list[str]:
    former = f", was {step.before}" if step.before else ""
    file = f"  ({step.file})" if step.file else "  (no file declares it any more)"
    drops = (f"  drops {loss}" for loss in step.losses)
    details = (f"  {line}" for line in step.details)
    return [f"{step.action} table {step.table}{former}{file}", *details, *drops]


def _ending(plan: TablesPlan, empty: str) -> Iterator[str]:
    if not plan.steps:
        yield empty
    if plan.unchanged:
        yield f"{counted(len(plan.unchanged), 'table')} as declared"
    if plan.left_alone:
        names = ", ".join(plan.left_alone)
        yield f"left alone, no file declares them any more: {names}  (--remove offline or drop)"
    if plan.quarantined:
        yield f"left alone, in quarantine: {', '.join(plan.quarantined)}"
