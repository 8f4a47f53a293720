"""`lakebed upgrade`: from one release to the next, while work goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import (
    CommandGroup,
    Session,
    aligned,
    pass_session,
    time_text,
)

if TYPE_CHECKING:
    from lakebed.upgrades.judge_upgrade import UpgradeStatus


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed upgrade plan
    lakebed --at dev upgrade status
    lakebed --at dev upgrade finish
    """,
)
def upgrade() -> None:
    """Bring a lake to this release.

    Both releases work side by side until `finish`; from then on older ones cannot open what is
    written.
    """


@upgrade.command(examples="lakebed upgrade plan")
@pass_session
def plan(session: Session) -> None:
    """Say what is to be done next, or why nothing may be. Changes nothing."""
    with session.open() as lake:
        found = lake.plan_upgrade()
    steps = [f"{number}. {step}" for number, step in enumerate(found.steps, start=1)]
    text = "\n".join(steps) or f"nothing is to be done: all is of release {found.status.release}"
    value = {"steps": found.steps, **_as_json(found.status)}
    session.give(value, text)


@upgrade.command(
    examples="""
    lakebed upgrade status
    lakebed --at dev upgrade status --json
    """
)
@pass_session
def status(session: Session) -> None:
    """Show which forms may be written, and each process that may live, with its release."""
    with session.open() as lake:
        found = lake.upgrade_status()
    session.give(_as_json(found), status_text(found))


@upgrade.command(examples="lakebed upgrade finish")
@pass_session
def finish(session: Session) -> None:
    """Allow all forms that this release writes, for ever.

    Refused while a process of an older release may live, or one is deployed. Older releases cannot
    open what is written from then on, and may not be deployed again.
    """
    with session.open() as lake:
        found = lake.finish_upgrade()
    session.give(_as_json(found), f"finished: all may be written that {found.release} writes")


def status_text(found: UpgradeStatus) -> str:
    """Return what people see: releases, forms, processes."""
    lines = [f"this program is of release {found.release}"]
    if found.deployed is not None:
        lines.append(f"the instance was deployed of release {_named(found.deployed)}")
    lines.append(f"what may be written is of release {found.gate}")
    allowed, newest = map(msgspec.structs.asdict, (found.allowed, found.newest))
    forms = [(name, str(allowed[name]), str(newest[name])) for name in sorted(newest)]
    older = {one.process for one in found.older()}
    living = [
        (
            one.program,
            _named(one.release) + (", older" if one.process in older else ""),
            time_text(one.started),
            time_text(one.at),
        )
        for one in found.processes
    ]
    return "\n".join(
        [
            *lines,
            "",
            aligned(("form", "allowed", "newest"), forms),
            "",
            aligned(("process", "release", "since", "reported"), living),
        ]
    )


def _named(release: str) -> str:
    return release or "unknown"


def _as_json(found: UpgradeStatus) -> dict[str, object]:
    older = {one.process for one in found.older()}
    value: dict[str, object] = msgspec.to_builtins(found)
    value["processes"] = [
        {**msgspec.to_builtins(one), "older": one.process in older} for one in found.processes
    ]
    return {**value, "finished": found.is_finished()}
